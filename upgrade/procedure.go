package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// phase is one step of the procedure. It returns a summary of what it did, "" when there was nothing to do.
type phase struct {
	name string
	run  func(*changeover, context.Context) (string, error)
}

// The procedure. Up to preflight nothing changes. Until apply begins, a failure puts the controllers back; from then on they
// stay down until every API server serves the new versions, and the same call again goes on.
var (
	procedure = [...]phase{
		{"read", (*changeover).read},           // the manifests, and what the cluster has of it
		{"plan", (*changeover).plan},           // pure: one legal stage, or a refusal with the way out
		{"preflight", (*changeover).preflight}, // permissions, a dry run of every CRD, a count of every object
		{"quiesce", (*changeover).quiesce},     // controllers to zero, until their Pods are gone
		{"apply", (*changeover).apply},         // all CRDs
		{"converge", (*changeover).converge},   // until every API server serves exactly the new versions
		{"resume", (*changeover).resume},       // controllers back to what they were, until they are ready
		{"verify", (*changeover).verify},       // every object readable in every served version, none lost
	}
	waiting = [...]phase{procedure[0], procedure[5]}
)

// Run carries out a whole changeover. The result says how far it came, whatever the error. When ctx ends, the run finishes the
// write that it is in, stops at a point from which the same call goes on, and returns an *Error with Interrupted set.
//
// Errors are of type *Error and unwrap to the phase's own.
func Run(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	return start(ctx, config, o, procedure[:], false)
}

// Plan finds out what Run would do and changes nothing. Errors are as of Run.
func Plan(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	return start(ctx, config, o, procedure[:3], false)
}

// Wait waits until every API server serves what the sources' CRDs say. Errors are as of Run.
func Wait(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	return start(ctx, config, o, waiting[:], true)
}

func start(ctx context.Context, config *rest.Config, o Options, phases []phase, readOnly bool) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c, err := newChangeover(config, o.withDefaults(), readOnly)
	if err != nil {
		return nil, err
	}
	defer c.close()
	for _, p := range phases {
		if err := c.step(ctx, p); err != nil {
			return c.finish(err)
		}
	}
	return c.finish(nil)
}

// errTimeout is the cause when a phase takes longer than Options.Timeout.
var errTimeout = errors.New("the time is over")

// step runs one phase under its time limit and notes how it went.
func (c *changeover) step(ctx context.Context, p phase) error {
	if ctx.Err() != nil {
		return &Error{Phase: p.name, Interrupted: true, Err: context.Cause(ctx)}
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
	defer cancel()
	began := time.Now()
	c.Progress(p.name + " …")
	summary, err := p.run(c, limited)
	took := time.Since(began)
	result := PhaseResult{Name: p.name, Outcome: Done, Seconds: took.Seconds(), Summary: summary}
	var failure *Error
	switch {
	case err != nil:
		failure = &Error{Phase: p.name, Interrupted: ctx.Err() != nil, Err: err}
		result.Outcome = Failed
		if failure.Interrupted {
			result.Outcome = Interrupted
		}
	case summary == "":
		result.Outcome = Skipped
	}
	c.result.Phases = append(c.result.Phases, result)
	if summary != "" {
		summary = ": " + summary
	}
	c.Progress(fmt.Sprintf("%s %s after %.1f s%s", p.name, result.Outcome, took.Seconds(), summary))
	if failure != nil {
		return failure
	}
	return nil
}
