package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/changeover-dev/changeover/upgrade/quiesce"
)

// Error is a changeover that did not come to its end.
type Error struct {
	// Phase that it ended in.
	Phase string
	// Interrupted: the caller's context ended, nothing else went wrong.
	Interrupted bool
	// Where says in words how the cluster was left, and how to go on.
	Where []string
	Err   error
}

func (e *Error) Error() string {
	if e.Interrupted {
		return e.Phase + ": interrupted"
	}
	return e.Phase + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Hints gives what the cause advises, then Where.
func (e *Error) Hints() []string {
	var cause interface{ Hints() []string }
	var hints []string
	if !e.Interrupted && errors.As(e.Err, &cause) {
		hints = append(hints, cause.Hints()...)
	}
	return append(hints, e.Where...)
}

// finish turns how the phases ended into the result, and after a failure leaves the cluster in a state that can be
// explained: as before, when no CRD was touched; else waiting for the same call again.
func (c *changeover) finish(err error) (*Result, error) {
	var failure *Error
	if !errors.As(err, &failure) {
		c.result.Outcome = Done
		if !c.changesAnything() && !c.resumed && c.planned != nil {
			c.result.Outcome = NothingToDo
		}
		return c.result, nil
	}
	c.result.Outcome = Failed
	if failure.Interrupted {
		c.result.Outcome = Interrupted
	}
	failure.Where = c.leave()
	return c.result, failure
}

// leave puts controllers back where that is safe and says how things stand.
func (c *changeover) leave() []string {
	if c.fleet == nil {
		return nil
	}
	var where []string
	if c.stopped && !c.applying {
		ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
		defer cancel()
		if err := c.fleet.Undo(ctx); err != nil {
			where = append(where, "putting the controllers back did not work either: "+err.Error())
		} else {
			where = append(where, "no CRD was changed, and the controllers that this run had stopped are back at their replicas")
		}
	}
	held := c.fleet.Held()
	if len(held) == 0 && c.applying {
		where = append(where, "the CRDs are changed and the controllers started: run the same command again to have the rest done and verified")
	}
	if len(held) == 0 {
		return where
	}
	if c.applying {
		where = append(where, "CRDs may be changed already, so the controllers stay stopped: run the same command again, and it goes on from here")
	} else {
		where = append(where, "controllers are stopped since an earlier run; the same command, once it gets through, starts them again")
	}
	return append(where, "stopped: "+describe(held))
}

func describe(held []*quiesce.Controller) string {
	names := make([]string, len(held))
	for i, c := range held {
		names[i] = fmt.Sprintf("%s (had %d)", c.Ref, c.Replicas)
	}
	return strings.Join(names, ", ")
}
