package discovery

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Options of a Client. The zero value is fit for use.
type Options struct {
	// Timeout is the longest time that any single request may take, its body included; 10 s when zero.
	Timeout time.Duration
	// MaxBytes is the largest body that is read, after decompression; 64 MiB when zero.
	MaxBytes int64
	// LegacyOnly never asks for aggregated documents.
	LegacyOnly bool
	// NoPeer asks for an aggregated document of that one API server alone, without what its peers serve.
	NoPeer bool
}

// A Client reads discovery from one API server. It is safe for concurrent use and keeps nothing between calls.
type Client struct{}

// NewClient returns a client for the API server that cfg names. It does no I/O. hc may be nil: then a client is made from cfg;
// otherwise hc does the requests, with cfg's authentication already in it, except that redirects are never followed.
func NewClient(cfg *rest.Config, hc *http.Client, o Options) (*Client, error) {
	return nil, errors.New("discovery: not written yet")
}

// Fetch reads everything that the API server says it serves: the core group under /api and all others under /apis, in
// aggregated form where the server has it. prev may be nil; otherwise it is revalidated, groups that did not change are
// shared with it, and group-versions that are stale or unavailable now keep the resources that prev knows. When nothing changed
// at all, the result has prev's content and a newer AsOf.
//
// In legacy form, the groups and their versions are listed, and each version is Unavailable with ErrNotRead, with the
// resources that prev knows, until FetchGroup has read the group.
//
// On an error there is no snapshot, and prev is as good as it was. The error is a *ResponseError where the server answered,
// but not with discovery, and wraps the context's error where it did not answer in time.
func (c *Client) Fetch(ctx context.Context, prev *Snapshot) (*Snapshot, error) {
	return nil, errors.New("discovery: not written yet")
}

// FetchGroup reads one group in legacy form: its entry, then all its versions at once. An empty name is the core group. found
// is false when the server does not list the group.
//
// A version that is listed and yet answers 404 was not served at that moment: the entry is read once more, and with it what is
// missing. A version that is listed still and still answers 404 is Unavailable with ErrNotServed: it may be about to come or
// to go, and only a later read can tell. A version that cannot be read for another reason is Unavailable with that reason. Neither
// affects the group's other versions; the error is for the entry alone.
func (c *Client) FetchGroup(ctx context.Context, group string) (g Group, found bool, err error) {
	return Group{}, false, errors.New("discovery: not written yet")
}
