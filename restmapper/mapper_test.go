//go:build go1.25

// The module is at go 1.22, whose timers testing/synctest cannot drive.
//go:debug asynctimerchan=0

package restmapper

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/changeover-dev/changeover/discovery"
)

const docker = "infrastructure.cluster.x-k8s.io"

var (
	machine  = schema.GroupKind{Group: docker, Kind: "DockerMachine"}
	absent   = schema.GroupKind{Group: docker, Kind: "Absent"}
	machines = "/apis/" + docker + "/v1alpha4/dockermachines"
)

// before and after are the group of the report, before and after v1alpha4 ceases to be served.
func before() discovery.Group {
	return groupOf(docker, crd("v1beta1", "DockerMachine"), crd("v1alpha4", "DockerMachine"))
}
func after() discovery.Group { return groupOf(docker, crd("v1beta1", "DockerMachine")) }

// versionOf returns the version in which the mapper answers, or the error.
func versionOf(m *Mapper, gk schema.GroupKind, versions ...string) string {
	mapping, err := m.RESTMapping(gk, versions...)
	if err != nil {
		return err.Error()
	}
	return mapping.Resource.Version
}

func wantVersion(t *testing.T, m *Mapper, want string, gk schema.GroupKind, versions ...string) {
	t.Helper()
	if got := versionOf(m, gk, versions...); got != want {
		t.Errorf("RESTMapping(%v, %q): got %s, want %s", gk, versions, got, want)
	}
}

func wantNoMatch(t *testing.T, m *Mapper, gk schema.GroupKind, versions ...string) *NoMatchError {
	t.Helper()
	mapping, err := m.RESTMapping(gk, versions...)
	var e *NoMatchError
	if !meta.IsNoMatchError(err) || !errors.As(err, &e) {
		t.Fatalf("RESTMapping(%v, %q): got %v and error %v, want no match", gk, versions, mapping, err)
	}
	return e
}

func TestHitsDoNoRequests(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{})
		wantVersion(t, m, "v1beta1", machine)
		n := s.requests("")
		first, _ := m.RESTMapping(machine)
		first.Resource.Resource = "scribble"
		for range 100 {
			wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		}
		if again, _ := m.RESTMapping(machine); again.Resource.Resource != "dockermachines" {
			t.Errorf("a caller's change to its mapping shows in another's: %v", again.Resource)
		}
		if got := s.requests(""); got != n {
			t.Errorf("hits made %d requests", got-n)
		}
	})
}

func TestMissSeesWhatIsNew(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{})
		wantNoMatch(t, m, absent)
		time.Sleep(time.Second)
		s.set(func(s *server) {
			s.groups[1] = groupOf(docker, crd("v2", "Absent"), crd("v1beta1", "DockerMachine"))
			s.groups = append(s.groups, groupOf("new.example.com", crd("v1", "New")))
		})
		wantVersion(t, m, "v2", absent)
		time.Sleep(time.Second)
		wantVersion(t, m, "v1", schema.GroupKind{Group: "new.example.com", Kind: "New"})
		kind, err := m.KindFor(schema.GroupVersionResource{Resource: "news"})
		if err != nil || kind.Group != "new.example.com" {
			t.Errorf("KindFor(news): got %v, error %v", kind, err)
		}
	})
}

func TestNoMatchSaysWhatIsServed(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{})
		e := wantNoMatch(t, m, machine, "v1alpha3")
		if got := strings.Join(e.Served, " "); got != "v1beta1 v1alpha4" {
			t.Errorf("served: got %q", got)
		}
		want := `no matches for kind "DockerMachine" in version "infrastructure.cluster.x-k8s.io/v1alpha3": ` +
			`served in v1beta1, v1alpha4, as of 0s ago`
		if e.Error() != want {
			t.Errorf("error:\n got %s\nwant %s", e, want)
		}
		var kind *meta.NoKindMatchError
		if !errors.As(e, &kind) || kind.GroupKind != machine {
			t.Errorf("the error does not unwrap to a NoKindMatchError for %v", machine)
		}
		_, err := m.ResourceFor(schema.GroupVersionResource{Group: docker, Resource: "absents"})
		var resource *meta.NoResourceMatchError
		if !meta.IsNoMatchError(err) || !errors.As(err, &resource) || resource.PartialResource.Resource != "absents" {
			t.Errorf("ResourceFor(absents): got error %v", err)
		}
	})
}

// TestOldKnowledgeIsRevalidated: without Start, the first hit on old knowledge begins a refresh and does not wait for it.
func TestOldKnowledgeIsRevalidated(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{Interval: time.Second})
		wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		s.set(func(s *server) { s.groups[1] = after() })
		time.Sleep(time.Minute)
		n := s.requests("")
		wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		synctest.Wait()
		wantNoMatch(t, m, machine, "v1alpha4")
		wantVersion(t, m, "v1beta1", machine)
		if got := s.requests("") - n; got > 8 {
			t.Errorf("%d requests for one revalidation and one miss", got)
		}
	})
}

// TestStartRevalidatesAhead: with Start, knowledge in use does not get old.
func TestStartRevalidatesAhead(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{Interval: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Start(ctx) }()
		synctest.Wait()
		wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		s.set(func(s *server) { s.groups[1] = after() })
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		wantNoMatch(t, m, machine, "v1alpha4")
		if err := m.Start(ctx); err == nil {
			t.Error("Start runs twice")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start ended with %v", err)
		}
	})
}

// TestStartWaitsForItsReads: no goroutine survives the context, even when the server hangs; and lookups that waited for the
// cancelled read begin their own.
func TestStartWaitsForItsReads(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		s.delay = 3 * time.Second
		m := s.mapper(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Start(ctx) }()
		synctest.Wait()
		answer := make(chan string)
		go func() { answer <- versionOf(m, machine) }()
		synctest.Wait()
		began := time.Now()
		cancel()
		<-ended
		if d := time.Since(began); d > 0 {
			t.Errorf("Start ended %v after its context", d)
		}
		if got := <-answer; got != "v1beta1" {
			t.Errorf("the lookup that waited got %s", got)
		}
	})
}

func TestStartTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(before())
		s.answer = func(*http.Request) *http.Response { return respond(503, "text/plain", "starting") }
		m := s.mapper(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go m.Start(ctx)
		time.Sleep(time.Second / 2)
		s.set(func(s *server) { s.answer = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		n := s.requests("")
		wantVersion(t, m, "v1beta1", machine)
		if got := s.requests(""); got != n {
			t.Error("nothing was known before the first lookup")
		}
	})
}

func TestStormOfMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(before())
		s.delay = 2 * time.Millisecond
		m := s.mapper(t, Options{})
		wantVersion(t, m, "v1beta1", machine)
		time.Sleep(time.Second)
		n := s.requests("")
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				gk := absent
				if i%2 == 0 {
					gk.Group = "absent.example.com"
				}
				wantNoMatch(t, m, gk)
			})
		}
		all.Wait()
		if got := s.requests("") - n; got > 20 {
			t.Errorf("1,000 misses in a second made %d requests", got)
		}
	})
}

// TestAppearsUnderMisses: however many others miss, what has appeared is found by a miss half a second later.
func TestAppearsUnderMisses(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for range 10 {
			others.Go(func() {
				for ctx.Err() == nil {
					wantNoMatch(t, m, schema.GroupKind{Group: docker, Kind: "Never"})
					time.Sleep(7 * time.Millisecond)
				}
			})
		}
		time.Sleep(3 * time.Second)
		s.set(func(s *server) { s.groups[1] = groupOf(docker, crd("v1beta1", "DockerMachine", "Absent")) })
		time.Sleep(500 * time.Millisecond)
		wantVersion(t, m, "v1beta1", absent)
		cancel()
		others.Wait()
	})
}

func TestHangingServer(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{})
		wantVersion(t, m, "v1beta1", machine)
		time.Sleep(time.Second)
		s.set(func(s *server) { s.delay = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := m.RESTMappingWithContext(ctx, absent)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || meta.IsNoMatchError(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want an UnknownError for the caller's deadline", err)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("the lookup came back after %v, not with its context", d)
		}
		wantVersion(t, m, "v1beta1", machine)
		if d := time.Since(began); d != time.Second {
			t.Errorf("a hit waited for a hanging refresh")
		}
		if _, err := m.RESTMapping(absent); !errors.As(err, &unknown) || meta.IsNoMatchError(err) {
			t.Errorf("got error %v, want an UnknownError", err)
		}
		if d := time.Since(began); d > 11*time.Second {
			t.Errorf("a lookup without context came back after %v, not with our deadline", d)
		}
	})
}

func TestServerDown(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		s.answer = func(*http.Request) *http.Response { return respond(503, "text/plain", "no") }
		m := s.mapper(t, Options{})
		_, err := m.RESTMapping(machine)
		var unknown *UnknownError
		var response *discovery.ResponseError
		if !errors.As(err, &unknown) || !errors.As(err, &response) || meta.IsNoMatchError(err) {
			t.Fatalf("got error %v, want an UnknownError that unwraps to the server's answer", err)
		}
		s.set(func(s *server) { s.answer = nil })
		time.Sleep(time.Second)
		wantVersion(t, m, "v1beta1", machine)
	})
}

func TestReset(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{})
		wantVersion(t, m, "v1alpha4", machine, "v1alpha4")
		s.set(func(s *server) { s.groups[1] = after() })
		m.Reset()
		wantNoMatch(t, m, machine, "v1alpha4")

		// A read that began before Reset does not count.
		s.set(func(s *server) { s.delay = time.Second })
		m.Reset()
		answer := make(chan string)
		go func() { answer <- versionOf(m, machine, "v1beta1") }()
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		m.Reset()
		if got := <-answer; got != "v1beta1" || time.Since(began) < 1500*time.Millisecond {
			t.Errorf("got %s %v after Reset, by a read that began before it", got, time.Since(began))
		}
	})
}

func TestRecreatedWithAnotherScopeAndPlural(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{Interval: time.Second})
		wantVersion(t, m, "v1beta1", machine)
		s.set(func(s *server) {
			gv := crd("v1beta1", "DockerMachine")
			gv.Resources[0].Name, gv.Resources[0].Namespaced = "dockmachines", false
			s.groups[1] = groupOf(docker, crd("v1alpha4", "DockerMachine"), gv)
		})
		time.Sleep(2 * time.Second)
		wantVersion(t, m, "v1beta1", machine)
		synctest.Wait()
		wantVersion(t, m, "v1alpha4", machine)
		got, err := m.RESTMapping(machine, "v1beta1")
		if err != nil || got.Resource.Resource != "dockmachines" || got.Scope.Name() != meta.RESTScopeNameRoot {
			t.Errorf("got %v, error %v", got, err)
		}
	})
}

// TestUnavailableGroup: an aggregated API that is down keeps what was known of it, and nobody else notices.
func TestUnavailableGroup(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		metrics := schema.GroupKind{Group: "metrics.k8s.io", Kind: "NodeMetrics"}
		up := groupOf(metrics.Group, crd("v1beta1", "NodeMetrics"))
		down := groupOf(metrics.Group, discovery.GroupVersion{Version: "v1beta1", State: discovery.Stale})
		s.groups = append(s.groups, up)
		m := s.mapper(t, Options{Interval: time.Second})
		wantVersion(t, m, "v1beta1", metrics)
		s.set(func(s *server) { s.groups[3] = down })
		for range 10 {
			time.Sleep(2 * time.Second)
			wantVersion(t, m, "v1beta1", metrics)
			wantNoMatch(t, m, absent)
		}
		fresh := s.mapper(t, Options{})
		_, err := fresh.RESTMapping(metrics)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || meta.IsNoMatchError(err) {
			t.Errorf("a mapper that never knew the group: got error %v, want an UnknownError", err)
		}
		wantVersion(t, fresh, "v1beta1", machine)
		if kind, err := fresh.KindFor(schema.GroupVersionResource{Resource: "dockermachines"}); err != nil || kind.Kind != machine.Kind {
			t.Errorf("KindFor beside an unavailable group: got %v, error %v", kind, err)
		}
	})
}
