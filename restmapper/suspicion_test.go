//go:build go1.25

package restmapper

import (
	"fmt"
	"math/rand"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestRaceOfTheReport: the list of versions still has v1alpha4 when its resources answer 404 already. That is what controller-runtime
// v0.16.3 keeps for ever.
func TestRaceOfTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(before())
		s.legacy, s.gone = true, map[string]bool{docker + "/v1alpha4": true}
		m := s.mapper(t, Options{})
		wantVersion(t, m, "v1beta1", machine)
		e := wantNoMatch(t, m, machine, "v1alpha4")
		if len(e.Served) != 1 || e.Served[0] != "v1beta1" {
			t.Errorf("served: got %q", e.Served)
		}
		time.Sleep(3 * time.Second)
		s.set(func(s *server) { s.groups[1] = after() })
		time.Sleep(versionPace + time.Millisecond)
		if _, listed := m.current.Load().groups[docker].source.Version("v1alpha4"); listed {
			t.Error("a second after the list has changed, the group was not read anew")
		}
		n := s.requests("")
		time.Sleep(time.Hour)
		if got := s.requests("") - n; got != 0 {
			t.Errorf("with nothing in doubt, %d requests were made", got)
		}
		wantVersion(t, m, "v1beta1", machine)
	})
}

// TestListedBeforeReadable is the opposite race: a version is listed a moment before its resources can be read.
func TestListedBeforeReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(before())
		s.legacy, s.gone = true, map[string]bool{docker + "/v1beta1": true}
		m := s.mapper(t, Options{})
		wantVersion(t, m, "v1alpha4", machine)
		s.set(func(s *server) { s.gone = nil })
		time.Sleep(300 * time.Millisecond)
		wantVersion(t, m, "v1beta1", machine)
		time.Sleep(time.Minute)
	})
}

// TestEvidenceHeals: the handler stops serving up to 9 s before discovery says so. One 404 is enough for the mapper to be right soon
// after discovery is, without any lookup or interval.
func TestEvidenceHeals(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{Interval: time.Hour})
		wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		s.set(func(s *server) { s.gone = map[string]bool{docker + "/v1alpha4": true} })
		time.Sleep(time.Second)
		n := s.requests("/api")
		if code := s.list(t, m, machines); code != 404 {
			t.Fatalf("listing answers %d", code)
		}
		time.Sleep(9 * time.Second)
		if !s.legacy {
			wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		}
		if got := s.requests("/api") - n; got > 160 {
			t.Errorf("%d requests in 9 s of suspicion", got)
		}
		s.set(func(s *server) { s.groups[1] = after() })
		// In legacy form, what answers 404 is out already by then.
		time.Sleep(250 * time.Millisecond)
		if got := m.current.Load().groups[docker].allVersions(); len(got) != 1 {
			t.Errorf("250 ms after discovery has changed, the mapper knows %q", got)
		}
		time.Sleep(time.Second)
		n = s.requests("")
		time.Sleep(time.Hour)
		if got := s.requests("") - n; got != 0 {
			t.Errorf("%d requests after the suspicion was settled", got)
		}
		wantVersion(t, m, "v1beta1", machine)
	})
}

// TestEvidenceIsCapped: a resource that always answers like that costs little in the long run.
func TestEvidenceIsCapped(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{Interval: time.Hour})
		wantVersion(t, m, "v1beta1", machine)
		s.set(func(s *server) { s.gone = map[string]bool{docker + "/v1alpha4": true} })
		lists := 0
		for range 600 {
			s.list(t, m, machines)
			lists++
			time.Sleep(time.Second)
		}
		if got := s.requests("") - lists; got > 3000 {
			t.Errorf("in 10 minutes of evidence: %d requests", got)
		}
		time.Sleep(suspicionLimit)
	})
}

// TestNoEvidence lists what must not start a read.
func TestNoEvidence(t *testing.T) {
	metrics := groupOf("metrics.k8s.io", crd("v1beta1", "Node"))
	metrics.Versions[0].Resources[0].Verbs = []string{"get", "list"}
	synctest.Test(t, func(t *testing.T) {
		s := serving(before(), metrics, groupOf("apps", crd("v1", "Deployment")))
		m := s.mapper(t, Options{Interval: time.Hour})
		wantVersion(t, m, "v1beta1", machine)
		time.Sleep(time.Second)
		status := respond(404, "application/json", `{"kind":"Status","reason":"NotFound"}`)
		for _, c := range []struct {
			path string
			resp *http.Response
		}{
			{machines, status},
			{machines, respond(503, "text/plain", "404 page not found\n")},
			{machines, respond(404, "text/plain", "404 page not found, says the proxy, at length\n")},
			{machines, respond(404, "text/html", "404 page not found\n")},
			{machines + "/one/scale", notFound()},
			{"/apis/" + docker + "/v1alpha4", notFound()},
			{"/apis/" + docker + "/v1alpha3/dockermachines", notFound()},
			{"/apis/" + docker + "/v1alpha4/absents", notFound()},
			{"/apis/metrics.k8s.io/v1beta1/nodes", notFound()},
			{"/apis/apps/v1/deployments", notFound()},
			{"/api/v1/pods", notFound()},
			{"/healthz", notFound()},
		} {
			s.set(func(s *server) { s.answer = func(*http.Request) *http.Response { return c.resp } })
			n := s.requests("")
			observed := http.Client{Transport: m.WrapTransport(s)}
			resp, err := observed.Get("http://server.test" + c.path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			time.Sleep(time.Second)
			if got := s.requests("") - n; got != 1 {
				t.Errorf("%d, %s for %s made %d reads", resp.StatusCode, resp.Header.Get("Content-Type"), c.path, got-1)
			}
		}
	})
}

func TestParsePath(t *testing.T) {
	for path, want := range map[string]suspect{
		"/apis/g.io/v1/widgets":                         {"g.io", "v1", "widgets"},
		"/apis/g.io/v1/widgets/":                        {"g.io", "v1", "widgets"},
		"/apis/g.io/v1/widgets/one":                     {"g.io", "v1", "widgets"},
		"/apis/g.io/v1/namespaces/default/widgets":      {"g.io", "v1", "widgets"},
		"/apis/g.io/v1/namespaces/default/widgets/one":  {"g.io", "v1", "widgets"},
		"/apis/g.io/v1/watch/widgets":                   {"g.io", "v1", "widgets"},
		"/apis/g.io/v1/watch/namespaces/ns/widgets/one": {"g.io", "v1", "widgets"},
		"/api/v1/pods":                                  {"", "v1", "pods"},
		"/api/v1/namespaces/default/pods":               {"", "v1", "pods"},
		"/api/v1/namespaces/default":                    {"", "v1", "namespaces"},
		"/apis/g.io/v1/widgets/one/status":              {},
		"/apis/g.io/v1/namespaces/ns/widgets/one/scale": {},
		"/apis/g.io/v1":                                 {},
		"/apis/g.io":                                    {},
		"/apis":                                         {},
		"/api/v1":                                       {},
		"/":                                             {},
		"/metrics":                                      {},
		"/openapi/v3/apis/g.io/v1/widgets/x":            {},
	} {
		if got, ok := parsePath(path); got != want || ok != (want != suspect{}) {
			t.Errorf("%s: got %v, %v, want %v", path, got, ok, want)
		}
	}
}

// pair is two API servers behind one address, taking turns.
type pair struct {
	mu   sync.Mutex
	turn int
	of   [2]*server
}

func (p *pair) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.turn++
	s := p.of[p.turn%2]
	p.mu.Unlock()
	return s.RoundTrip(req)
}

// TestStorm: mappers are created all through an upgrade, and do what controllers do. Discovery follows the handlers late, and one
// server follows the other; yet 5 s after the last of them none is stuck and none is stale. That goes for mappers that list
// what they map, in whatever version, and for those that only look up.
func TestStorm(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		for _, window := range []time.Duration{20 * time.Millisecond, 2 * time.Second, 9 * time.Second} {
			t.Run(fmt.Sprintf("legacy=%v/window=%v", legacy, window), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { storm(t, legacy, window) })
			})
		}
	}
}

func storm(t *testing.T, legacy bool, window time.Duration) {
	const mappers = 100
	p := &pair{of: [2]*server{serving(before()), serving(before())}}
	for _, s := range p.of {
		s.legacy, s.delay = legacy, time.Millisecond
	}
	random := rand.New(rand.NewSource(1))
	converged := time.Now().Add(window)
	var all sync.WaitGroup
	for i := range mappers {
		m, err := New(&rest.Config{Host: "http://server.test"}, &http.Client{Transport: p}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		born := time.Duration(random.Int63n(int64(window)))
		all.Go(func() {
			time.Sleep(born)
			live(t, m, p, i%3, converged.Add(5*time.Second))
			check(t, m, born)
		})
	}
	// The handlers go first, then one server's discovery, then the other's.
	for _, s := range p.of {
		s.set(func(s *server) { s.gone = map[string]bool{docker + "/v1alpha4": true} })
	}
	time.Sleep(window / 2)
	p.of[0].set(func(s *server) { s.groups[1] = after() })
	time.Sleep(window / 2)
	p.of[1].set(func(s *server) { s.groups[1] = after() })
	all.Wait()
	time.Sleep(suspicionLimit)
}

// live maps and lists, as a controller does, until the deadline.
func live(t *testing.T, m *Mapper, p *pair, habit int, until time.Time) {
	c := http.Client{Transport: m.WrapTransport(p)}
	for time.Now().Before(until) {
		var versions []string
		if habit == 1 {
			versions = []string{"v1alpha4"}
		}
		mapping, err := m.RESTMapping(machine, versions...)
		if err == nil && habit < 2 {
			resp, err := c.Get("http://server.test/apis/" + docker + "/" + mapping.Resource.Version + "/" + mapping.Resource.Resource)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func check(t *testing.T, m *Mapper, born time.Duration) {
	if got := versionOf(m, machine); got != "v1beta1" {
		t.Errorf("mapper of %v: stuck: %s", born, got)
	}
	if got, err := m.RESTMappings(machine); err != nil || len(got) != 1 {
		t.Errorf("mapper of %v: stale: %d mappings, error %v", born, len(got), err)
	}
	if got, err := m.RESTMapping(machine, "v1alpha4"); err == nil {
		t.Errorf("mapper of %v: stale: %v", born, got.Resource)
	}
	kinds, err := m.KindsFor(schema.GroupVersionResource{Resource: "dockermachines"})
	if err != nil || len(kinds) != 1 {
		t.Errorf("mapper of %v: stale: kinds %v, error %v", born, kinds, err)
	}
}
