package discovery

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ListRequest stands in a Difference for a list of one object: what the handler itself does, whatever discovery says.
const ListRequest Form = "list request"

// A Difference is something that an endpoint serves and should not, does not serve and should, or cannot tell.
type Difference struct {
	Endpoint string
	// Form in which the difference was seen; ListRequest for the list request.
	Form Form
	// Path that was asked for.
	Path string
	// Group, Version and Resource that the difference is about. Each is empty where it is not about one.
	Group, Version, Resource string
	// Want and Have are phrases for humans: what is wanted there, and what is there.
	Want, Have string

	// refused says that the request was not authenticated or not authorized, which proves nothing about what is served.
	refused bool
}

// String names everything but the endpoint.
func (d Difference) String() string {
	what := d.Path
	if d.Group != "" && d.Form != ListRequest {
		what += " " + d.Group
		if d.Version != "" {
			what = d.Path + " " + groupVersion(d.Group, d.Version)
		}
		if d.Resource != "" {
			what += " " + d.Resource
		}
	}
	return fmt.Sprintf("%s %s: want %s, have %s", d.Form, what, d.Want, d.Have)
}

// unknown fills in that the endpoint could not tell.
func (d Difference) unknown(want string, err error) []Difference {
	d.Want, d.Have = want, err.Error()
	var re *ResponseError
	if errors.As(err, &re) {
		d.Have = re.Problem
		d.refused = refuses(re.Status)
	}
	return []Difference{d}
}

func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func listWanted(served bool) string {
	if served {
		return "served"
	}
	return "404 page not found"
}

// compareList compares the answer to a list request with whether the resource should be served.
func (d Difference) compareList(served bool, a *answer) []Difference {
	d.Want, d.Have = listWanted(served), a.describeList()
	switch verdict := a.listVerdict(); {
	case verdict == handled && served, verdict == noHandler && !served:
		return nil
	case verdict == refusedBefore:
		d.refused = true
	}
	return []Difference{d}
}

// listVerdict is what the answer to a list request proves.
type listVerdict int

const (
	// provesNothing is an answer that may come from before the handler, or from somebody else.
	provesNothing listVerdict = iota
	// handled means that the resource's own handler answered, well or not.
	handled
	// noHandler means that the API server has no handler for the path.
	noHandler
	// refusedBefore means that the request never got as far as a handler.
	refusedBefore
)

// plainNotFound is the body with which an API server answers for a path that it does not serve. It is not in JSON, other than
// the answer for an object that does not exist.
const plainNotFound = "404 page not found"

func (a *answer) listVerdict() listVerdict {
	s, isStatus := a.statusObject()
	switch {
	case refuses(a.status):
		return refusedBefore
	case a.status == http.StatusOK && strings.HasSuffix(s.Kind, "List"):
		return handled
	case a.status == http.StatusNotFound && a.mediaType == "text/plain" && strings.TrimSpace(string(a.body)) == plainNotFound:
		return noHandler
	case !isStatus:
		// Such as the plain text of request limits, of an aggregated API that is down, of a panic, or a proxy's page.
		return provesNothing
	}
	switch a.status {
	case http.StatusRequestTimeout, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// An API server that is still starting says so for every path, and its time limit is not the handler's.
		return provesNothing
	}
	if a.status >= 400 {
		return handled
	}
	return provesNothing
}

func (a *answer) describeList() string {
	if a.status == http.StatusOK {
		if s, _ := a.statusObject(); strings.HasSuffix(s.Kind, "List") {
			return "a list"
		}
		return fmt.Sprintf("200 with content type %q", a.contentType)
	}
	text := a.excerpt()
	if strings.HasPrefix(text, fmt.Sprint(a.status)) {
		return text
	}
	return strings.TrimSuffix(fmt.Sprintf("%d %s", a.status, text), " ")
}

// NotConvergedError is what Await returns when its context ends first.
type NotConvergedError struct {
	// Differences of the last complete round, ordered by endpoint. There are none when the context ended between rounds that
	// agreed, or before the first round began.
	Differences []Difference
	// Rounds that were completed.
	Rounds  int
	Elapsed time.Duration
	// Err is why the wait ended: the context's cause.
	Err error
}

// Error names the first few differences of each endpoint, in one line; Differences has them all.
func (e *NotConvergedError) Error() string {
	const each = 3
	var b strings.Builder
	fmt.Fprintf(&b, "not converged after %v, %d rounds", e.Elapsed.Round(time.Millisecond), e.Rounds)
	for i := 0; i < len(e.Differences); {
		name, n := e.Differences[i].Endpoint, 0
		for ; i+n < len(e.Differences) && e.Differences[i+n].Endpoint == name; n++ {
			switch {
			case n == 0:
				fmt.Fprintf(&b, "; %s: %s", name, e.Differences[i])
			case n < each:
				fmt.Fprintf(&b, ", %s", e.Differences[i+n])
			}
		}
		if n > each {
			fmt.Fprintf(&b, ", and %d more", n-each)
		}
		i += n
	}
	if len(e.Differences) == 0 {
		b.WriteString("; not seen to agree for long enough")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, "; %v", e.Err)
	}
	return b.String()
}

func (e *NotConvergedError) Unwrap() error { return e.Err }

// A Refusal is a request that an API server did not allow.
type Refusal struct {
	Endpoint string
	// Verb, Group and Resource that must be allowed, cluster-wide. For discovery itself, which has no resource, Resource is empty
	// and Path is what must be allowed to be read.
	Verb, Group, Resource string
	Path                  string
	// Message is the API server's own.
	Message string
}

// PermissionError says that Await cannot tell for lack of permissions, and nothing else is left to wait for.
type PermissionError struct {
	// Refusals, one for each endpoint and resource; never empty.
	Refusals []Refusal
}

func newPermissionError(found []Difference) *PermissionError {
	e := &PermissionError{}
	seen := map[Refusal]bool{}
	for _, d := range found {
		r := Refusal{Endpoint: d.Endpoint, Verb: "get", Path: d.Path, Message: d.Have}
		key := Refusal{Endpoint: d.Endpoint, Path: d.Path}
		if d.Form == ListRequest {
			r.Verb, r.Group, r.Resource = "list", d.Group, d.Resource
			// Roles do not tell versions apart.
			key = Refusal{Endpoint: d.Endpoint, Group: d.Group, Resource: d.Resource}
		}
		if !seen[key] {
			seen[key] = true
			e.Refusals = append(e.Refusals, r)
		}
	}
	return e
}

func (e *PermissionError) Error() string {
	r := e.Refusals[0]
	what := r.Path
	if r.Resource != "" {
		what = r.Resource + "." + r.Group
	}
	s := fmt.Sprintf("cannot tell whether %s serves what is wanted: not allowed to %s %s: %s", r.Endpoint, r.Verb, what, r.Message)
	if more := len(e.Refusals) - 1; more > 0 {
		s += fmt.Sprintf(" (and %d more)", more)
	}
	return s
}

// onlyRefusals reports whether there are differences and all of them are refusals.
func onlyRefusals(found []Difference) bool {
	for _, d := range found {
		if !d.refused {
			return false
		}
	}
	return len(found) > 0
}
