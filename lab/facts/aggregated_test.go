package facts

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab"
)

const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"

// aggregate registers a group-version that another server is to serve: the one on localhost at port, which the Service of this name leads to.
func (p *plane) aggregate(t testing.TB, group, version, service string, port int) (name string) {
	t.Helper()
	name = version + "." + group
	p.first().must(t, post(apiServices, fmt.Sprintf(`{"metadata":{"name":"%s"},"spec":{"group":"%s","version":"%s","groupPriorityMinimum":1000,"versionPriority":10,
		"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"%s","port":%d}}}`, name, group, version, service, port)))
	p.deleteAfter(t, apiServices+"/"+name)
	return name
}

// aggregatedWithoutServer pins what is seen of a registered API whose Service does not exist: it never answered.
func aggregatedWithoutServer(t *testing.T, p *plane) {
	const group = "serverless.facts.example.com"
	p.aggregate(t, group, "v1", "absent", 443)
	for i, w := range p.wires {
		p.await(t, fmt.Sprintf("API server %d lists the group", i), func(ctx context.Context) (string, bool) {
			a, err := w.try(ctx, request{Path: "/apis", Accept: legacyForm})
			doc, docErr := w.document(ctx)
			seen := fmt.Sprintf("%v %v %+v", err, docErr, doc.versionsOf(group))
			return seen, err == nil && docErr == nil && strings.Contains(a.Body, group) && len(doc.versionsOf(group)) == 1
		})
	}
	t.Run("every request is a 503 in plain text", func(t *testing.T) {
		for _, w := range p.wires {
			for _, r := range append(everyVerb(widgets(group, "v1")), request{Path: "/apis/" + group + "/v1"}) {
				want503(t, w.send(t, r), unavailable)
			}
		}
	})
	t.Run("the aggregated document keeps the group, Stale and without resources, and is a 200", func(t *testing.T) {
		for _, w := range p.wires {
			doc, err := w.document(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v := doc.version(group, "v1"); v.Freshness != "Stale" || len(v.Resources) != 0 {
				t.Errorf("%+v; want Stale, no resources", v)
			}
			if v := doc.version("apps", "v1"); v.Freshness != "Current" || !v.serves("deployments") {
				t.Errorf("apps/v1: %+v; want Current", v)
			}
		}
	})
	t.Run("the legacy group is a 200 and lists the version", func(t *testing.T) {
		if a := p.first().get(t, "/apis/"+group); a.Status != http.StatusOK || !strings.Contains(a.Body, group+"/v1") {
			t.Errorf("%v", a)
		}
	})
}

func want503(t testing.TB, a answer, body string) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable || a.ContentType != plainText || !strings.Contains(a.Body, body) {
		t.Errorf("%d %v; want 503 in plain text: %q", a.Status, a, body)
	}
}

// The API that Kubernetes' example of an aggregated API server serves.
const (
	wardle   = "wardle.example.com"
	flunders = "/apis/" + wardle + "/v1alpha1/namespaces/default/flunders"

	unavailable = "service unavailable\n"
)

// aggregatedServerDies pins what is seen of an aggregated API while its server is up, after it was killed, and when it is back (design D3, M5, M8).
func aggregatedServerDies(t *testing.T, p *plane) {
	p.first().must(t, post("/api/v1/namespaces/default/services", `{"metadata":{"name":"wardle"},"spec":{"type":"ExternalName","externalName":"localhost"}}`))
	binary, err := lab.Build(t.Context(), "controlplane-"+p.Kubernetes(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	server := p.startWardle(t, binary, port)
	name := p.aggregate(t, wardle, "v1alpha1", "wardle", port)
	p.awaitWardle(t, name, "Current")

	t.Run("up: it is served and discovered like any other", func(t *testing.T) {
		for _, w := range p.wires {
			if a := w.get(t, flunders); a.Status != http.StatusOK {
				t.Errorf("%v", a)
			}
			if f, err := w.lists(t.Context(), wardle, "v1alpha1", "flunders"); err != nil || !f.aggregated || !f.legacy {
				t.Errorf("discovery: %+v, %v", f, err)
			}
		}
	})
	t.Run("up: its own answer to an unknown plural is a Status without details", func(t *testing.T) {
		for _, r := range everyVerb("/apis/" + wardle + "/v1alpha1/gadgets") {
			wantNoSuchResource(t, p.first().send(t, r))
		}
	})
	t.Run("up: an absent object is its Status", func(t *testing.T) {
		wantStatus(t, p.first().get(t, flunders+"/absent"), 404, "NotFound", `flunders.wardle.example.com "absent" not found`)
	})
	t.Run("up: a version that it serves and nobody registered is the API server's plain 404", func(t *testing.T) {
		wantPlain404(t, p.first().get(t, "/apis/"+wardle+"/v1beta1/namespaces/default/flunders"))
	})

	before := p.root(t, aggregated, "")
	server.Kill()
	wardleDown(t, p, name)
	if p.root(t, aggregated, "").ETag == before.ETag {
		t.Error("down: the ETag is the same")
	}
	t.Run("back: the entry is Current, and the old ETag is back", func(t *testing.T) {
		p.startWardle(t, binary, port)
		p.awaitWardle(t, name, "Current")
		if a := p.first().get(t, flunders); a.Status != http.StatusOK {
			t.Errorf("%v", a)
		}
		if after := p.root(t, aggregated, ""); after.ETag != before.ETag {
			t.Errorf("ETag %s; before %s", after.ETag, before.ETag)
		}
	})
}

func wardleDown(t *testing.T, p *plane, apiService string) {
	t.Run("down: every request is a 503 in plain text", func(t *testing.T) {
		for _, w := range p.wires {
			for _, r := range append(everyVerb(flunders), request{Path: "/apis/" + wardle + "/v1alpha1"}) {
				want503(t, w.send(t, r), "")
			}
		}
	})
	t.Run("down: the aggregated document keeps the version, Stale, but drops its resources", func(t *testing.T) {
		p.awaitWardle(t, apiService, "Stale")
		for _, w := range p.wires {
			doc, err := w.document(t.Context())
			if v := doc.version(wardle, "v1alpha1"); err != nil || v.Version == "" || len(v.Resources) != 0 {
				t.Errorf("%+v, %v; want the version without resources", doc.versionsOf(wardle), err)
			}
		}
	})
	t.Run("down: legacy lists the group, and its version's document is a 503", func(t *testing.T) {
		if a := p.root(t, legacyForm, ""); a.Status != http.StatusOK || !strings.Contains(a.Body, wardle+"/v1alpha1") {
			t.Errorf("/apis: %v", a)
		}
		if a := p.first().get(t, "/apis/"+wardle); a.Status != http.StatusOK {
			t.Errorf("the group: %v", a)
		}
		want503(t, p.first().get(t, "/apis/"+wardle+"/v1alpha1"), unavailable)
	})
}

// startWardle starts the aggregated API server and waits until it is ready.
func (p *plane) startWardle(t testing.TB, binary string, port int) *lab.Process {
	t.Helper()
	process, err := p.Process(lab.Command{Name: "sample-apiserver", Path: binary, Args: []string{
		"sample-apiserver",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + filepath.Join(p.Dir(), "sample-apiserver"),
		"--etcd-servers=" + p.Etcd().Endpoint(),
		"--kubeconfig=" + p.Kubeconfig(),
		"--authentication-kubeconfig=" + p.Kubeconfig(),
		"--authorization-kubeconfig=" + p.Kubeconfig(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := p.Config()
	cfg.Host, cfg.CAData, cfg.Insecure = fmt.Sprintf("https://127.0.0.1:%d", port), nil, true
	direct := newWire(t, cfg)
	p.await(t, "the sample API server ready", func(ctx context.Context) (string, bool) {
		a, err := direct.try(ctx, request{Path: "/readyz"})
		return fmt.Sprint(a, err, process.Tail(3)), err == nil && a.Status == http.StatusOK
	})
	return process
}

// awaitWardle waits until every API server's aggregated document flags the wardle API so, and requests for it get what belongs to that: the two do
// not change together. An API server looks at an aggregated one every 30 s, and when its APIService changes: each look of ours changes that first.
func (p *plane) awaitWardle(t testing.TB, apiService, freshness string) {
	t.Helper()
	n := 0
	for i, w := range p.wires {
		p.await(t, fmt.Sprintf("API server %d shows %s as %s", i, apiService, freshness), func(ctx context.Context) (string, bool) {
			n++
			touch := mergePatch(apiServices+"/"+apiService, fmt.Sprintf(`{"metadata":{"annotations":{"look":"%s %d"}}}`, freshness, n))
			if a, err := p.first().try(ctx, touch); err != nil || a.Status != http.StatusOK {
				return fmt.Sprint(a, err), false
			}
			doc, err := w.document(ctx)
			if err != nil {
				return err.Error(), false
			}
			list, err := w.try(ctx, request{Path: flunders})
			answered := list.Status == http.StatusOK
			if freshness == "Stale" {
				answered = list.Body == unavailable
			}
			v := doc.version(wardle, "v1alpha1")
			return fmt.Sprintf("%+v, list %v, %v", v, list, err), err == nil && answered && v.Freshness == freshness
		})
	}
}

// freePort finds a port for a server that is started, killed and started again on it; below the range from which systems take the ports of outgoing
// connections.
func freePort(t testing.TB) int {
	t.Helper()
	for port := 19000; port < 20000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port between 19000 and 20000")
	return 0
}
