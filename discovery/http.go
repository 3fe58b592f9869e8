package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

const legacyAccept = "application/json"

// acceptFor returns the Accept header for the two documents that can be aggregated. The server takes the first clause that it
// knows, so an old one falls through to the legacy form.
func acceptFor(o Options) string {
	if o.LegacyOnly {
		return legacyAccept
	}
	profile := ""
	if o.NoPeer {
		profile = ";profile=nopeer"
	}
	return "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" + profile +
		",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList" + profile +
		"," + legacyAccept
}

// answer is a response that was read completely.
type answer struct {
	path   string
	status int
	// contentType is the header as it came, mediaType and params are what it parses to.
	contentType string
	mediaType   string
	params      map[string]string
	etag        string
	body        []byte
}

// get requests one path below the server's address. Its error means that there was no complete answer; whatever the server did
// answer, be it a redirect or an error, is an answer.
func (c *Client) get(ctx context.Context, path, accept, etag string) (*answer, error) {
	own, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	a, err := c.roundTrip(own, path, accept, etag)
	if err == nil {
		return a, nil
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		// It repeats the method and the whole address, which the caller knows better.
		err = wrapped.Err
	}
	if ctx.Err() == nil && own.Err() != nil {
		return nil, fmt.Errorf("GET %s: no complete answer within %v: %w", path, c.timeout, err)
	}
	return nil, fmt.Errorf("GET %s: %w", path, err)
}

func (c *Client) roundTrip(ctx context.Context, path, accept, etag string) (*answer, error) {
	target := *c.base
	base, query, _ := strings.Cut(path, "?")
	target.Path = strings.TrimSuffix(target.Path, "/") + base
	target.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", c.userAgent)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := readLimited(resp, c.maxBytes)
	if err != nil {
		return nil, err
	}
	a := &answer{
		path: path, status: resp.StatusCode, body: body,
		contentType: resp.Header.Get("Content-Type"),
		etag:        usableETag(resp.Header.Get("ETag")),
	}
	if mt, params, err := mime.ParseMediaType(a.contentType); err == nil {
		a.mediaType, a.params = mt, params
	}
	return a, nil
}

func readLimited(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("answer of %d bytes is over the limit of %d", resp.ContentLength, limit)
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 {
		// ReadFrom wants room left over to see the end of the body without growing.
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("answer is over the limit of %d bytes", limit)
	}
	return buf.Bytes(), nil
}

// usableETag drops validators that cannot be relied on: an API server that could not hash its document sends a pair of quotes
// around nothing, and would then confirm every document of that kind.
func usableETag(etag string) string {
	if etag == `""` || strings.HasPrefix(etag, "W/") {
		return ""
	}
	return etag
}

// refusal returns the error for an answer that is not the 200 in JSON that was asked for.
func (a *answer) refusal() error {
	problem := ""
	switch {
	case a.status == http.StatusNotModified:
		problem = "answered 304 to a request without a condition"
	case a.status >= 300 && a.status < 400:
		problem = fmt.Sprintf("answered %d, a redirect, where an API server would not", a.status)
	case a.status != http.StatusOK:
		problem = fmt.Sprintf("answered %d", a.status)
		if excerpt := a.excerpt(); excerpt != "" {
			problem += ": " + excerpt
		}
	case a.mediaType != "application/json":
		problem = fmt.Sprintf("answered with content type %q instead of JSON", a.contentType)
	default:
		return nil
	}
	return a.problem(problem, nil)
}

func (a *answer) problem(problem string, err error) *ResponseError {
	return &ResponseError{
		Path: a.path, Status: a.status, ContentType: a.contentType, Problem: problem, Err: err,
		notFound: a.saysNotFound(),
	}
}

// excerpt is what the answer says for itself, in one short line: a Status's message, or plain text. Pages for browsers are
// named only.
func (a *answer) excerpt() string {
	if s, ok := a.statusObject(); ok {
		return shorten(s.Message)
	}
	switch a.mediaType {
	case "text/plain":
		return shorten(string(a.body))
	case "":
		return ""
	}
	return "a body of type " + a.mediaType
}

func shorten(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
