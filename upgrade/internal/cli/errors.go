package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/changeover-dev/changeover/discovery"
	"github.com/changeover-dev/changeover/upgrade"
	"github.com/changeover-dev/changeover/upgrade/access"
	"github.com/changeover-dev/changeover/upgrade/apply"
	"github.com/changeover-dev/changeover/upgrade/converge"
	"github.com/changeover-dev/changeover/upgrade/manifest"
	"github.com/changeover-dev/changeover/upgrade/plan"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
)

// Exit codes. Scripts rely on them.
const (
	exitFailed       = 1
	exitUsage        = 2 // the command line, or files that it names, cannot be understood
	exitRefused      = 3 // understood, and refused before anything changed
	exitNotConverged = 4
	exitInterrupted  = 5 // the same command continues
)

// usageError is a command line that cannot be understood.
type usageError struct {
	command string
	err     error
}

func usage(cmd *cobra.Command, err error) error { return &usageError{cmd.CommandPath(), err} }

func (e *usageError) Error() string   { return e.err.Error() }
func (e *usageError) Unwrap() error   { return e.err }
func (e *usageError) Hints() []string { return []string{"see " + e.command + " --help"} }

func exitCode(err error) int {
	var failure *upgrade.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failure) && failure.Interrupted:
		return exitInterrupted
	case is[*usageError](err) || is[*kubeconfigError](err) || is[*manifest.Error](err):
		return exitUsage
	case is[*quiesce.ScaledUpError](err):
		return exitFailed
	case is[*discovery.NotConvergedError](err):
		return exitNotConverged
	case failure != nil && (failure.Phase == "apply" || failure.Phase == "verify"):
		return exitFailed
	case is[*plan.Refusal](err) || is[*access.MissingError](err) || is[*apply.Refusal](err) || is[*quiesce.UnknownError](err) ||
		is[*upgrade.UnreadableError](err) || is[*converge.UnreachableError](err):
		return exitRefused
	}
	return exitFailed
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// report prints an error and what to do about it.
func report(w io.Writer, err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(w, "error:", line)
	}
	for _, hint := range hints(err) {
		fmt.Fprintln(w, "hint:", hint)
	}
}

func hints(err error) []string {
	var known interface{ Hints() []string }
	var list []string
	if errors.As(err, &known) {
		list = known.Hints()
	}
	var unreachable *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		list = append([]string{"the API server does not know these credentials; log in again or choose another --context"}, list...)
	case is[*converge.UnreachableError](err): // says so itself
	case is[*tls.CertificateVerificationError](err):
		list = append([]string{"something answers with a certificate that the kubeconfig's CA does not vouch for: is it the right --context?"}, list...)
	case errors.As(err, &unreachable) && !apierrors.IsForbidden(err):
		list = append([]string{"the API server does not answer: is it up, and is it the right --context?"}, list...)
	}
	return list
}
