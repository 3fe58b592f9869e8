package facts

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
)

// TestFacts runs the subjects one after the other on one control plane. Each leaves other subjects' groups alone; they take turns because
// the ETags of discovery are about all groups, and because the last one makes a server lag.
func TestFacts(t *testing.T) {
	p := newPlane(t, lab.Options{Lag: []int{lagging}, APIServerFlags: newFrontProxy(t).flags()})
	for _, subject := range []struct {
		name  string
		facts func(*testing.T, *plane)
	}{
		{"what is not there", notFound},
		{"what is forbidden", forbidden},
		{"watches that are open", openWatches},
		{"ETags and forms of discovery", discoveryForms},
		{"an aggregated API without a server", aggregatedWithoutServer},
		{"an aggregated API whose server dies", aggregatedServerDies},
		{"server-side apply and conversion", applyConversion},
		{"rewriting stored objects", rewriting},
		{"stored versions", storedVersions},
		{"managedFields at a version that is gone", managedFieldsOfGoneVersion},
		{"a conversion webhook that is down", deadConversion},
		{"a conversion webhook that goes down", dyingConversion},
		{"writes in flight", writesInFlight},
		{"a CRD with another scope", otherScope},
		{"a server that lags", laggingServer},
	} {
		t.Run(subject.name, func(t *testing.T) { subject.facts(t, p) })
	}
}

// lagging is the index of the API server that can be made to lag.
const lagging = 1

// plane is the control plane under test, with the ways in.
type plane struct {
	*lab.Cluster
	release release
	wires   []wire // by API server, as administrator
	crds    apiextensionsclient.CustomResourceDefinitionInterface
}

func newPlane(t *testing.T, o lab.Options) *plane {
	t.Helper()
	o.Kubernetes = os.Getenv("LAB_KUBERNETES")
	if o.Kubernetes == "" {
		o.Kubernetes = "1.37"
	}
	r, ok := releases[o.Kubernetes]
	if !ok {
		t.Fatalf("Kubernetes %s has no row in the table of releases", o.Kubernetes)
	}
	o.NoControllerManager = true
	o.APIServerFlags = append(o.APIServerFlags, r.flags...)
	c := lab.ForTest(t, o)
	client, err := apiextensionsclient.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{Cluster: c, release: r, crds: client.CustomResourceDefinitions()}
	for _, s := range c.Servers() {
		p.wires = append(p.wires, newWire(t, s.Config()))
	}
	return p
}

// first is the API server that most facts are asked of.
func (p *plane) first() wire { return p.wires[0] }

// deleteAfter deletes the object at path when the test has ended.
func (p *plane) deleteAfter(t testing.TB, path string) {
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if a, err := p.first().try(ctx, request{Method: http.MethodDelete, Path: path}); err != nil || a.Status != http.StatusOK {
			t.Errorf("deleting %s: %v, %v", path, a, err)
		}
	})
}

// await waits for up to a minute. What check sees when the minute ends in the middle of it counts for nothing.
func (p *plane) await(t testing.TB, what string, check func(context.Context) (seen string, ok bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last string
	if err := lab.Await(ctx, what, func(ctx context.Context) (string, bool) {
		seen, ok := check(ctx)
		if ctx.Err() == nil {
			last = seen
		}
		return last, ok
	}); err != nil {
		t.Fatal(err)
	}
}
