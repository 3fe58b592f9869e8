package discovery

import (
	"context"
	"errors"
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

// Want says what one group shall serve.
type Want struct {
	Group string
	// Served holds the plurals that each version serves. It must be all that the group serves, by whichever CRD, unless
	// Others is set; when it is empty, the group shall not be listed at all.
	Served map[string][]string
	// Gone holds, for versions that are no longer served, the plurals that must answer the plain 404 there. A version may be
	// in both when it goes away for some resources only.
	Gone map[string][]string
	// Others allows the group to serve versions and resources that are named neither in Served nor in Gone.
	Others bool
}

// AwaitOptions of Await. The zero value is fit for use.
type AwaitOptions struct {
	// Interval between rounds; 200 ms when zero.
	Interval time.Duration
	// Rounds that must agree in a row; 2 when zero.
	Rounds int
	// SharedRounds replaces Rounds where an endpoint is Shared; 10 when zero.
	SharedRounds int
	// Timeout of each single request; 10 s when zero.
	Timeout time.Duration
	// Parallel is the number of requests at a time at each endpoint; 8 when zero.
	Parallel int
	// OnProgress is called after each round, from Await's own goroutine.
	OnProgress func(Progress)
}

// Progress tells about a round of Await that has just ended.
type Progress struct {
	// Round counts from 1.
	Round int
	// Agreed is the number of rounds in a row, this one included, without a difference; Needed is how many there must be.
	Agreed, Needed int
	Elapsed        time.Duration
	// Differences that this round found, at all endpoints.
	Differences []Difference
}

// A Difference is something that an endpoint serves and should not, does not serve and should, or cannot tell.
type Difference struct {
	Endpoint string
	// Form in which the difference was seen; ListRequest for the list request.
	Form Form
	// Path that was asked for.
	Path string
	// Group, Version and Resource that the difference is about. Version and Resource are empty where it is not about one.
	Group, Version, Resource string
	// Want and Have are phrases for humans: what is wanted there, and what is there.
	Want, Have string
}

// ListRequest stands in a Difference for a list of one object: what the handler itself does, whatever discovery says.
const ListRequest Form = "list request"

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

// An EndpointReport says in which forms one endpoint was looked at.
type EndpointReport struct {
	Name string
	// Aggregated is the form of its aggregated document, or empty where the server has none.
	Aggregated Form
	Shared     bool
}

// NotConvergedError is what Await returns when its context ends first.
type NotConvergedError struct {
	// Differences of the last complete round, ordered by endpoint.
	Differences []Difference
	Rounds      int
	Elapsed     time.Duration
	// Err is why the wait ended: the context's cause.
	Err error
}

func (e *NotConvergedError) Error() string { return "not converged" }

func (e *NotConvergedError) Unwrap() error { return e.Err }

// Await waits until every endpoint serves what is wanted.
func Await(ctx context.Context, endpoints []Endpoint, want []Want, o AwaitOptions) (Report, error) {
	return Report{}, errors.New("discovery: not written yet")
}
