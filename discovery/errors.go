package discovery

import (
	"errors"
	"fmt"
)

var (
	// ErrNotRead is the reason of a group-version that is listed in legacy form and was not read yet.
	ErrNotRead = errors.New("not read yet")
	// ErrNotServed is the reason of a group-version that is listed, but answered 404 each time it was read.
	ErrNotServed = errors.New("listed, but not served at this read")
	// ErrStale is the reason of a group-version that the API server itself marks as stale.
	ErrStale = errors.New("the server of this aggregated API does not answer its API server")
)

// A ResponseError says that an API server, or something between it and us, answered a discovery request with something that
// is not discovery.
type ResponseError struct {
	// Path is what was asked for, below the API server's address.
	Path string
	// Status is the HTTP status code.
	Status int
	// ContentType is what the answer said it was.
	ContentType string
	// Problem says what is wrong with the answer.
	Problem string
	// Err is the cause where there is one, such as a syntax error.
	Err error

	// notFound is set for a 404 that an API server itself would write.
	notFound bool
}

func (e *ResponseError) Error() string {
	s := fmt.Sprintf("GET %s: %s", e.Path, e.Problem)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ResponseError) Unwrap() error { return e.Err }
