package node

import (
	"testing"
	"time"
)

// TestStep walks every combination of what a worker can observe and holds each decision against the rules that a caller of the API relies on.
func TestStep(t *testing.T) {
	flags := func(n int) observed {
		return observed{
			grace: 7 * time.Second, deleting: n&1 != 0, gone: n&2 != 0, running: n&4 != 0, reported: n&8 != 0, finalised: n&16 != 0,
		}
	}
	for n := range 32 {
		o := flags(n)
		got := step(o)
		rules := []struct {
			name  string
			holds bool
		}{
			{"never finalised while something runs", !got.finalise || !o.running},
			{"never forgotten while something runs", !got.forget || !o.running},
			{"stopped when it is to end and runs", got.stop == (o.running && (o.deleting || o.gone))},
			{"stopped with the grace that the API server granted", !got.stop || o.gone || got.grace == o.grace},
			{"killed at once when gone", !got.stop || !o.gone || got.grace == 0},
			{"finalised when deleted and nothing runs", got.finalise == (o.deleting && !o.running && !o.gone && !o.finalised)},
			{"finalised with its last status reported", !got.finalise || o.reported || got.report},
			{"nothing is written for a Pod that is gone", !o.gone || !got.report && !got.finalise},
			{"a live Pod's status is reported, and nothing else happens", o.deleting || o.gone || got == next{report: !o.reported}},
			{"forgotten when gone and nothing runs", got.forget == (o.gone && !o.running)},
		}
		for _, r := range rules {
			if !r.holds {
				t.Errorf("%+v: step gives %+v: not so: %s", o, got, r.name)
			}
		}
	}
}

func TestBackoff(t *testing.T) {
	b := backoff{base: time.Second}
	for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30, 30} {
		if got := b.next(time.Millisecond); got != want*time.Second {
			t.Errorf("restart %d after a short run: delay %s, want %s", i+1, got, want*time.Second)
		}
	}
	if got := b.next(time.Minute); got != 0 {
		t.Errorf("restart after a run of a minute: delay %s, want 0", got)
	}
	if got := b.next(time.Millisecond); got != time.Second {
		t.Errorf("second restart after that: delay %s, want 1s", got)
	}
}
