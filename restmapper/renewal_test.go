//go:build go1.25

package restmapper

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is known must be renewed whatever else happens: these are the ways in which a renewal was once lost for good.

var other = schema.GroupKind{Group: "other.example.com", Kind: "Other"}

// inBothForms runs a test against a server with aggregated discovery and one without, in time that passes when all wait.
func inBothForms(t *testing.T, test func(t *testing.T, s *server)) {
	for name, legacy := range map[string]bool{"aggregated": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serving(before(), groupOf("other.example.com", crd("v1", "Other")))
				s.legacy = legacy
				test(t, s)
				// Whatever is still detached must have ended by its deadline: synctest reports goroutines that are left.
				time.Sleep(defaultTimeout + time.Second)
			})
		})
	}
}

// looksUntilGone looks a kind up every 50 ms until it is gone; false when that takes longer than limit.
func looksUntilGone(m *Mapper, gk schema.GroupKind, limit time.Duration, meanwhile func()) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		meanwhile()
		if _, err := m.RESTMapping(gk); meta.IsNoMatchError(err) {
			return true
		}
	}
	return false
}

// forget makes the server replace the kind Other in a version that stays: in legacy form the list of groups shows no difference.
func (s *server) forget() {
	s.set(func(s *server) {
		for i, g := range s.groups {
			if g.Name == other.Group {
				s.groups[i] = groupOf(other.Group, crd("v1", "Another"))
			}
		}
	})
}

// TestHitsRenewAfterStartEnded: a mapper whose Start has ended is one that was never started. Start ends at all kinds of moments, also
// in the midst of a read.
func TestHitsRenewAfterStartEnded(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		for i := range 10 {
			s.set(func(s *server) { s.delay = 30 * time.Millisecond })
			m := s.mapper(t, Options{Interval: 200 * time.Millisecond})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- m.Start(ctx) }()
			for end := time.Now().Add(2*time.Second + time.Duration(i)*27*time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				versionOf(m, other)
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			s.forget()
			if !looksUntilGone(m, other, 5*time.Second, func() {}) {
				t.Errorf("case %d: a kind that is gone is still known 5 s later, with an interval of 200 ms", i)
			}
			s.set(func(s *server) { s.groups[len(s.groups)-1] = groupOf(other.Group, crd("v1", "Other")) })
		}
	})
}

// TestHitsRenewAfterCutRead: the end of Start cuts the read short that a hit has just begun.
func TestHitsRenewAfterCutRead(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *server) {
		m := s.mapper(t, Options{Interval: 200 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Start(ctx) }()
		versionOf(m, other)
		time.Sleep(10 * time.Second) // not in use: it grows old
		s.set(func(s *server) { s.delay = 30 * time.Millisecond })
		read := s.requests("/apis")
		versionOf(m, other)
		time.Sleep(10 * time.Millisecond)
		if s.requests("/apis") == read {
			t.Fatal("the hit began no read, so that there is none to cut short")
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.forget()
		if !looksUntilGone(m, other, 5*time.Second, func() {}) {
			t.Error("a kind that is gone is still known 5 s later, with an interval of 200 ms")
		}
	})
}

// TestMissesDoNotPutOffRenewal: somebody who asks for an absent group in a loop must not keep the groups that are known from being
// read again.
func TestMissesDoNotPutOffRenewal(t *testing.T) {
	for name, started := range map[string]bool{"started": true, "not started": false} {
		t.Run(name, func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *server) {
				m := s.mapper(t, Options{Interval: 500 * time.Millisecond})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if started {
					go func() { _ = m.Start(ctx) }()
				}
				miss := func() { _, _ = m.RESTMapping(schema.GroupKind{Group: "absent.example.com", Kind: "Nope"}) }
				versionOf(m, other)
				looksUntilGone(m, other, 3*time.Second, miss) // past the time in which young knowledge is looked at again soon
				s.forget()
				if !looksUntilGone(m, other, 5*time.Second, miss) {
					t.Error("a kind that is gone is still known 5 s later, with an interval of 500 ms")
				}
			})
		})
	}
}

// TestRenewalOutlastsOtherReads: an index is found old at the moment at which reading some other group puts a new index in its place.
func TestRenewalOutlastsOtherReads(t *testing.T) {
	s := serving(before())
	m := s.mapper(t, Options{})
	versionOf(m, machine)
	old := m.current.Load()
	old.mark.Store(markOld)
	m.mu.Lock()
	m.due = time.Time{}
	next := &index{tables: old.tables, asOf: old.asOf, snapshot: old.snapshot}
	next.mark.Store(markOld)
	m.last = next
	m.current.Store(next)
	m.touch(old) // the lock is taken: the hit must neither wait nor take the mark off
	m.mu.Unlock()
	if next.mark.Load() != markOld {
		t.Fatal("a hit that could not begin a read took the mark off")
	}
	m.touch(old)
	m.mu.Lock()
	reading, flight := m.whole.reading, m.whole.flight
	m.mu.Unlock()
	if !reading {
		t.Fatal("a hit on the index before the current one began no read, though the current one is old, too")
	}
	<-flight.done
}
