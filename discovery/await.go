package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// An Endpoint is one API server, at an address of its own.
type Endpoint struct {
	// Name is what reports and errors call it, such as its address.
	Name   string
	Config *rest.Config
	// Shared says that several API servers may answer at this address. Then each round uses a fresh connection and more
	// rounds are asked for, and yet the result is only likely: see Report.Sampled.
	Shared bool
}

// AwaitOptions of Await. The zero value is fit for use.
type AwaitOptions struct {
	// Interval between rounds; 200 ms when zero. While rounds disagree, it grows to five times that.
	Interval time.Duration
	// Rounds that must agree in a row; 2 when zero.
	Rounds int
	// SharedRounds replaces Rounds where an endpoint is Shared; 10 when zero.
	SharedRounds int
	// Timeout of each single request for discovery; 10 s when zero.
	Timeout time.Duration
	// ListTimeout of each list request; 35 s when zero. It is longer than the 30 s that an API server waits for a conversion
	// webhook: until then, a list says nothing.
	ListTimeout time.Duration
	// Parallel is the number of requests at a time at each endpoint; 8 when zero.
	Parallel int
	// OnProgress is called after each round, from Await's own goroutine.
	OnProgress func(Progress)
}

func (o AwaitOptions) validate() error {
	switch {
	case o.Interval < 0 || o.Timeout < 0 || o.ListTimeout < 0:
		return errors.New("await options: a duration is negative")
	case o.Rounds < 0 || o.SharedRounds < 0:
		return errors.New("await options: a number of rounds is negative")
	case o.Parallel < 0:
		return errors.New("await options: parallel is negative")
	}
	return nil
}

func (o AwaitOptions) withDefaults() AwaitOptions {
	if o.Interval == 0 {
		o.Interval = 200 * time.Millisecond
	}
	if o.Rounds == 0 {
		o.Rounds = 2
	}
	if o.SharedRounds == 0 {
		o.SharedRounds = 10
	}
	if o.ListTimeout == 0 {
		o.ListTimeout = 35 * time.Second
	}
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	return o
}

// Progress tells about a round of Await that has just ended.
type Progress struct {
	// Round counts from 1.
	Round int
	// Agreed is the number of rounds in a row, this one included, without a difference; Needed is how many there must be.
	Agreed, Needed int
	Elapsed        time.Duration
	// Differences that this round found, ordered by endpoint.
	Differences []Difference
}

// A Report says on what grounds Await came to its end.
type Report struct {
	Endpoints []EndpointReport
	// Rounds that were made, and requests in all of them.
	Rounds, Requests int
	Elapsed          time.Duration
	// Sampled says that at least one endpoint is shared by an unknown number of API servers, so that one which was never hit may
	// lag still.
	Sampled bool
}

// An EndpointReport says in which forms one endpoint was looked at. Legacy form and list requests always were.
type EndpointReport struct {
	Name string
	// Aggregated is the form of its aggregated document, or empty where the server has none.
	Aggregated Form
	Shared     bool
}

// Await waits until every endpoint serves what is wanted: in its aggregated document, where it has one, spoken for itself and
// not for its peers; in its legacy list of groups, its groups and its group-versions; and for a list request with limit 1 on
// every resource in every version named. All of it must agree in several rounds in a row, at all endpoints in the same round.
//
// A list request proves that a version is not served by the plain 404, and that it is served by a list or by an error that only
// the resource's own handler writes: a conversion webhook that is down makes it a 500, and the version is served all the same. A
// 403 proves nothing, because authorization comes first, whether or not the version exists.
//
// When ctx ends first, the error is a *NotConvergedError. When nothing but missing permissions is left, it is a
// *PermissionError, and there is no waiting for the end of ctx. The report is filled in as far as it goes in any case.
func Await(ctx context.Context, endpoints []Endpoint, want []Want, o AwaitOptions) (Report, error) {
	if err := o.validate(); err != nil {
		return Report{}, err
	}
	if err := validateWants(want); err != nil {
		return Report{}, err
	}
	o = o.withDefaults()
	observers, err := newObservers(endpoints, o)
	if err != nil {
		return Report{}, err
	}
	defer closeAll(observers)
	w := wait{observers: observers, want: want, options: o, needed: o.Rounds, start: time.Now()}
	for _, e := range endpoints {
		if e.Shared {
			w.report.Sampled = true
			w.needed = max(w.needed, o.SharedRounds)
		}
	}
	err = w.run(ctx)
	w.report.Elapsed = time.Since(w.start)
	for _, ob := range observers {
		w.report.Endpoints = append(w.report.Endpoints, ob.report())
	}
	return w.report, err
}

// wait is one call of Await.
type wait struct {
	observers []*observer
	want      []Want
	options   AwaitOptions
	needed    int
	start     time.Time
	report    Report
	// last holds the differences of the last round that the context did not cut short.
	last []Difference
}

func (w *wait) run(ctx context.Context) error {
	agreed, refused := 0, 0
	pause := w.options.Interval
	for {
		found := w.round(ctx)
		if ctx.Err() != nil {
			return w.notConverged(ctx, found)
		}
		w.last = found
		w.report.Rounds++
		agreed, refused = agreed+1, refused+1
		if len(found) > 0 {
			agreed = 0
		}
		if !onlyRefusals(found) {
			refused = 0
		}
		if w.options.OnProgress != nil {
			w.options.OnProgress(Progress{
				Round: w.report.Rounds, Agreed: agreed, Needed: w.needed,
				Elapsed: time.Since(w.start), Differences: found,
			})
		}
		switch {
		case agreed >= w.needed:
			return nil
		case refused >= w.options.Rounds:
			return newPermissionError(found)
		case agreed > 0:
			pause = w.options.Interval
		default:
			pause = min(pause+w.options.Interval/2, 5*w.options.Interval)
		}
		if !sleep(ctx, pause) {
			return w.notConverged(ctx, nil)
		}
	}
}

// round looks at all endpoints at the same time.
func (w *wait) round(ctx context.Context) []Difference {
	found := make([][]Difference, len(w.observers))
	requests := make([]int, len(w.observers))
	var wg sync.WaitGroup
	for i, ob := range w.observers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			found[i], requests[i] = ob.look(ctx, w.want)
		}()
	}
	wg.Wait()
	var all []Difference
	for i := range found {
		all = append(all, found[i]...)
		w.report.Requests += requests[i]
	}
	return all
}

// notConverged prefers the last complete round to the one that was cut short, whose differences are mostly about being cut
// short.
func (w *wait) notConverged(ctx context.Context, partial []Difference) error {
	if w.report.Rounds == 0 {
		w.last = partial
	}
	return &NotConvergedError{
		Differences: w.last, Rounds: w.report.Rounds,
		Elapsed: time.Since(w.start), Err: context.Cause(ctx),
	}
}

// sleep reports whether it slept for the whole of d.
func sleep(ctx context.Context, d time.Duration) bool {
	// Not a timer's own channel: Go 1.26's runtime crashes where those meet the race detector in a testing/synctest bubble.
	over := make(chan struct{})
	t := time.AfterFunc(d, func() { close(over) })
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return true
	}
}

func newObservers(endpoints []Endpoint, o AwaitOptions) ([]*observer, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("await: no API server is named")
	}
	names := map[string]bool{}
	var out []*observer
	for _, e := range endpoints {
		if names[e.Name] {
			return nil, fmt.Errorf("await: two endpoints are called %q", e.Name)
		}
		names[e.Name] = true
		ob, err := newObserver(e, o)
		if err != nil {
			return nil, fmt.Errorf("await: endpoint %s: %w", e.Name, err)
		}
		out = append(out, ob)
	}
	return out, nil
}

func closeAll(observers []*observer) {
	for _, ob := range observers {
		ob.close()
	}
}
