// Package cli is the command line of kubectl-changeover: each verb's file reads flags, calls one function of package
// upgrade and renders its result. Results go to stdout, everything else to stderr.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Main runs the command and gives its exit code. The first SIGINT or SIGTERM lets the step that is under way finish; a second
// one ends the process at once, which the next run copes with as well.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		cancel(errors.New((<-signals).String()))
		fmt.Fprintln(errOut, "interrupted: finishing the step that is under way; once more stops at once")
		<-signals
		os.Exit(exitInterrupted)
	}()
	root := newRoot(genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut})
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	report(errOut, err)
	return exitCode(err)
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-changeover",
		Short: "Change CRD versions without a window in which controllers see half of it",
		// The command prints its own errors, with hints; usage follows a wrong command line only.
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(cmd, fmt.Errorf("unknown command %q", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	root.AddCommand(newUpgrade(streams), newPlan(streams), newWait(streams), newVersion(streams))
	return root
}
