package upgrade

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/upgrade/converge"
	"github.com/changeover-dev/changeover/upgrade/crd"
	"github.com/changeover-dev/changeover/upgrade/manifest"
	"github.com/changeover-dev/changeover/upgrade/plan"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
	"github.com/changeover-dev/changeover/upgrade/verify"
)

// FieldManager names this program in managedFields.
const FieldManager = "kubectl-changeover"

// changeover is what one run knows; each phase reads what those before it found. For one goroutine.
type changeover struct {
	Options
	clients
	result   *Result
	readOnly bool // no phase changes anything that needs permissions

	manifest *manifest.Manifest         // from read
	live     map[string]*crd.Definition // from read: the wanted CRDs as they were before, where they existed
	siblings []string                   // from read: all CRDs of the wanted groups that exist, by name
	servers  converge.Servers           // from preflight: those that have to agree
	planned  *plan.Plan                 // from plan; preflight marks what is unchanged
	fleet    *quiesce.Fleet             // from plan
	before   *verify.Observation        // from preflight

	stopped  bool             // quiesce began to scale down
	applying bool             // apply began: from now on a failure leaves the controllers down
	resumed  bool             // resume brought controllers back
	downFrom time.Time        // when quiesce began to scale down
	restarts map[string]int32 // from resume, when all were ready
}

// clients of one API server, over one HTTP client.
type clients struct {
	config        *rest.Config
	crds          dynamic.ResourceInterface
	metadata      metadata.Interface
	apps          *appsclient.AppsV1Client
	core          *coreclient.CoreV1Client
	authorization *authorizationclient.AuthorizationV1Client
}

func newChangeover(config *rest.Config, o Options, readOnly bool) (*changeover, error) {
	config = rest.CopyConfig(config)
	// client-go's default of 5 requests a second would be most of the time that controllers are down.
	config.QPS, config.Burst = 200, 400
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	c := &changeover{Options: o, readOnly: readOnly, live: map[string]*crd.Definition{}, result: &Result{
		Phases: []PhaseResult{}, CRDs: []plan.Change{}, Controllers: []*quiesce.Controller{}}}
	if c.clients, err = newClients(config, httpClient, warnings(c.Progress)); err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	return c, nil
}

// warnings passes on what the API server says about CRDs; what it says about lists of objects in deprecated versions is
// no news to whoever changes these versions.
type warnings func(string)

func (w warnings) HandleWarningHeader(_ int, _ string, text string) {
	w("the API server warns: " + text)
}

func newClients(config *rest.Config, h *http.Client, crdWarnings rest.WarningHandler) (clients, error) {
	c := clients{config: config}
	config.WarningHandler = rest.NoWarnings{}
	loud := rest.CopyConfig(config)
	loud.WarningHandler = crdWarnings
	dynamicClient, err := dynamic.NewForConfigAndClient(loud, h)
	if err != nil {
		return c, err
	}
	c.crds = dynamicClient.Resource(crd.Resource)
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), h); err != nil {
		return c, err
	}
	if c.apps, err = appsclient.NewForConfigAndClient(config, h); err != nil {
		return c, err
	}
	if c.core, err = coreclient.NewForConfigAndClient(config, h); err != nil {
		return c, err
	}
	c.authorization, err = authorizationclient.NewForConfigAndClient(config, h)
	return c, err
}

func (c *changeover) close() {
	if c.before != nil {
		c.before.Stop()
	}
}

// steady gives a context for writes: an interrupt does not end it, so that a step which was begun is finished, but the
// phase's time limit does.
func steady(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	return context.WithDeadlineCause(context.WithoutCancel(ctx), deadline, errTimeout)
}

// changesAnything says whether a CRD has to be written; before preflight, whether one may have to be.
func (c *changeover) changesAnything() bool {
	return c.planned != nil && slices.ContainsFunc(c.planned.Changes, func(change plan.Change) bool { return change.Action != plan.Unchanged })
}

// groups of the wanted CRDs, sorted.
func (c *changeover) groups() []string {
	var groups []string
	for _, w := range c.manifest.CRDs {
		groups = append(groups, w.Typed.Spec.Group)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

func (c *changeover) wantedNames() []string {
	names := make([]string, len(c.manifest.CRDs))
	for i, w := range c.manifest.CRDs {
		names[i] = w.Name()
	}
	return names
}

// findSiblings lists all CRDs of the wanted groups, by metadata alone: a cluster's CRDs are tens of megabytes, and the API
// server guarantees that the name ends with the group.
func (c *changeover) findSiblings(ctx context.Context) ([]string, error) {
	groups := c.groups()
	var names []string
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := c.metadata.Resource(crd.Resource).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing CRDs: %w", err)
		}
		for _, item := range page.Items {
			if _, group, _ := strings.Cut(item.Name, "."); slices.Contains(groups, group) {
				names = append(names, item.Name)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return names, nil
		}
	}
}

// fetch reads CRDs in full; those that do not exist are left out.
func (c *changeover) fetch(ctx context.Context, names []string) ([]*crd.Definition, error) {
	var found []*crd.Definition
	for _, name := range names {
		object, err := c.crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("crd %s: %w", name, err)
		}
		d, err := crd.Parse(object, "the cluster")
		if err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, nil
}
