package restmapper

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// notFoundPage is what an API server answers for a path that it has no handler for. A missing object is a Status instead.
const notFoundPage = "404 page not found"

// WrapTransport returns a transport that sends every request through rt and notes each answer which shows that a resource is not
// served any more. It changes neither requests nor answers. It is fit for rest.Config.WrapTransport, and may wrap any number of
// transports to the mapper's API servers. A nil rt stands for http.DefaultTransport, as it does in an http.Client.
func (m *Mapper) WrapTransport(rt http.RoundTripper) http.RoundTripper {
	if rt == nil {
		rt = http.DefaultTransport
	}
	return &observer{mapper: m, next: rt}
}

type observer struct {
	mapper *Mapper
	next   http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below, for its TLS configuration.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.next }

func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusNotFound {
		o.mapper.onNotFound(req, resp)
	}
	return resp, err
}

func (m *Mapper) onNotFound(req *http.Request, resp *http.Response) {
	path, ok := strings.CutPrefix(req.URL.Path, m.base)
	if !ok || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		return
	}
	if s, ok := parsePath(path); ok && isNotFoundPage(resp) {
		m.observe(s)
	}
}

// isNotFoundPage looks at the beginning of the body, and puts it back.
func isNotFoundPage(resp *http.Response) bool {
	const longest = len(notFoundPage) + 2
	if resp.ContentLength > int64(longest) || resp.Body == nil {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, int64(longest)))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = brokenReader{err}
	}
	resp.Body = &restored{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: resp.Body}
	return err == nil && strings.TrimSpace(string(head)) == notFoundPage
}

type restored struct {
	io.Reader
	io.Closer
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

// parsePath finds the resource in the path of a request for a collection or an object, namespaced or not. It finds none in the
// paths of discovery, and of subresources: those may be missing while the resource is there.
func parsePath(path string) (suspect, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var s suspect
	switch {
	case len(parts) > 3 && parts[0] == "apis":
		s.group, s.version = parts[1], parts[2]
		parts = parts[3:]
	case len(parts) > 2 && parts[0] == "api":
		s.version = parts[1]
		parts = parts[2:]
	default:
		return suspect{}, false
	}
	if len(parts) > 1 && parts[0] == "watch" {
		parts = parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return suspect{}, false
	}
	s.resource = parts[0]
	return s, s.resource != ""
}
