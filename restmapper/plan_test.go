package restmapper

import (
	"errors"
	"testing"
	"time"
)

// at returns a moment so many milliseconds after some beginning.
func at(ms int) time.Time { return time.UnixMilli(1_000_000).Add(time.Duration(ms) * time.Millisecond) }

func TestOnMiss(t *testing.T) {
	broken := errors.New("connection refused")
	for _, c := range []struct {
		name       string
		h          history
		asked, now int
		want       verdict
		after      time.Duration
	}{
		{"nothing was ever read", history{}, 0, 0, begin, 0},
		{"the first read is in flight", history{reading: true, began: at(0)}, 5, 5, join, 0},
		{"a read that began with the question has ended", history{began: at(10), known: at(10)}, 10, 12, settle, 0},
		{"an older read does not do, and there is budget", history{began: at(0), known: at(0)}, 200, 200, begin, 0},
		{"over budget, a read of a moment ago must do", history{began: at(0), known: at(0)}, 50, 50, settle, 0},
		{"over budget, and the newest read failed long after the last good one",
			history{began: at(1000), known: at(0), failed: at(1001), err: broken}, 1010, 1010, settle, 0},
		{"over budget, nothing known since Reset", history{began: at(0)}, 50, 50, wait, spacing - 50*time.Millisecond},
		{"over budget while the next read is in flight: the one before must do",
			history{reading: true, began: at(150), known: at(0)}, 160, 160, settle, 0},
		{"a read that hangs is waited for", history{reading: true, began: at(0)}, 5000, 5000, join, 0},
		{"that it failed is the answer for all who waited",
			history{began: at(0), failed: at(10_000), err: broken}, 5000, 10_000, settle, 0},
		{"an old failure is no answer", history{began: at(0), failed: at(10), err: broken}, 400, 400, begin, 0},
	} {
		got, after := c.h.onMiss(at(c.asked), at(c.now), spacing)
		if got != c.want || after != c.after {
			t.Errorf("%s: got verdict %d after %v, want %d after %v", c.name, got, after, c.want, c.after)
		}
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name string
		f    facts
		now  int
		want plan
	}{
		{"nothing is known", facts{}, 0, plan{}},
		{"fresh", facts{due: at(1000)}, 400, plan{after: 600 * time.Millisecond}},
		{"old, without Start", facts{due: at(1000), inUse: true}, 1000, plan{old: true}},
		{"old, with Start, in use", facts{due: at(1000), inUse: true, started: true}, 1000, plan{begin: forInterval}},
		{"old, with Start, but not used", facts{due: at(1000), started: true}, 1000, plan{old: true}},
		{"old, but being read", facts{due: at(1000), inUse: true, started: true, reading: true}, 1000, plan{}},
		{"a suspicion comes first", facts{due: at(900), check: at(1000), started: true, inUse: true}, 1000, plan{begin: forSuspicion}},
		{"a suspicion waits for its turn", facts{due: at(2000), check: at(1100)}, 1000, plan{after: 100 * time.Millisecond}},
		{"old while a suspicion waits", facts{due: at(1000), check: at(1100)}, 1000, plan{old: true, after: 100 * time.Millisecond}},
	} {
		if got := c.f.next(at(c.now)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestFreshFor counts the reads that a change costs, and proves that one which follows within 15 s is seen within 5 s.
func TestFreshFor(t *testing.T) {
	var reads int
	for age := time.Duration(0); ; reads++ {
		d := freshFor(age, 30*time.Second)
		if age <= 15*time.Second && d > 5*time.Second {
			t.Errorf("%v after a change the next read is %v away", age, d)
		}
		if d == 30*time.Second {
			break
		}
		age += d
	}
	if reads > 20 {
		t.Errorf("a change costs %d reads before the interval is reached", reads)
	}
	if d := freshFor(0, 200*time.Millisecond); d != 200*time.Millisecond {
		t.Errorf("an interval of 200 ms is drawn out to %v", d)
	}
}

func TestSuspicion(t *testing.T) {
	var s suspicion
	s = s.onEvidence(at(0))
	if got := s.readAt(at(-1000)); got != at(0) {
		t.Errorf("evidence asks for a read at %v, want at once", got)
	}
	if got := s.readAt(at(-25)); got != at(100) {
		t.Errorf("with a read 25 ms ago the next one is at %v, want the budget kept", got)
	}
	if got := s.onRead(at(-25), at(10), resourcePace); got.check != at(10) {
		t.Errorf("a read that began before the evidence puts the next one off to %v", got.check)
	}
	reads := 0
	for now := 0; s.given.IsZero(); reads++ {
		next := s.readAt(at(now))
		if gap := next.Sub(at(now)); reads > 0 && gap > 210*time.Millisecond {
			t.Fatalf("read %d comes %v after the one before", reads, gap)
		}
		now = int(next.Sub(at(0)).Milliseconds())
		s = s.onRead(at(now), at(now+2), resourcePace)
	}
	if reads > 90 {
		t.Errorf("a suspicion costs %d reads", reads)
	}
	if got := s.onEvidence(s.given.Add(suspicionRest - 1)); got != s {
		t.Error("given up, the suspicion is open again before its rest has passed")
	}
	if got := s.onEvidence(s.given.Add(suspicionRest)); !got.given.IsZero() {
		t.Error("after its rest, evidence does not count")
	}
}
