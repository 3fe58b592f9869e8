package proxy

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// Request is one request as the client sent it.
type Request struct {
	Method    string
	Path      string
	Query     string // raw
	Accept    string // several headers are joined by ", "
	UserAgent string
}

func requestOf(r *http.Request) Request {
	return Request{
		Method:    r.Method,
		Path:      r.URL.Path,
		Query:     r.URL.RawQuery,
		Accept:    strings.Join(r.Header.Values("Accept"), ", "),
		UserAgent: r.UserAgent(),
	}
}

// Filter chooses requests. Every field that is set must match; the zero Filter chooses all.
type Filter struct {
	Method string // exact, "GET"
	// Path is a pattern as of [path.Match], in which * stops at a slash: "/apis/*/v1alpha4". A trailing "/**" stands for
	// nothing or any further segments: "/apis/**" matches /apis and everything below.
	Path      string
	Query     string // substring of the raw query
	Accept    string // substring
	UserAgent string // substring
}

// anyBelow ends a pattern that matches a path and everything below it.
const anyBelow = "/**"

func (f Filter) validate() error {
	if _, err := path.Match(strings.TrimSuffix(f.Path, anyBelow), ""); err != nil {
		return fmt.Errorf("path %q: %w", f.Path, err)
	}
	if f.Path != "" && !strings.HasPrefix(f.Path, "/") {
		return fmt.Errorf("path %q does not begin with a slash", f.Path)
	}
	return nil
}

func (f Filter) matches(r Request) bool {
	return (f.Method == "" || f.Method == r.Method) &&
		(f.Path == "" || matchPath(f.Path, r.Path)) &&
		strings.Contains(r.Query, f.Query) &&
		strings.Contains(r.Accept, f.Accept) &&
		strings.Contains(r.UserAgent, f.UserAgent)
}

func matchPath(pattern, name string) bool {
	prefix, below := strings.CutSuffix(pattern, anyBelow)
	if below {
		// Cut the path to as many segments as the pattern has, so that each * still stands for one of them.
		segments := strings.Split(name, "/")
		if n := strings.Count(prefix, "/") + 1; len(segments) > n {
			name = strings.Join(segments[:n], "/")
		}
	}
	ok, err := path.Match(prefix, name)
	return err == nil && ok
}

// String writes the fields that are set.
func (f Filter) String() string {
	var words []string
	for _, field := range []struct{ name, value string }{
		{"", f.Method}, {"", f.Path}, {"query ", f.Query}, {"accept ", f.Accept}, {"agent ", f.UserAgent},
	} {
		if field.value != "" {
			words = append(words, field.name+field.value)
		}
	}
	if len(words) == 0 {
		return "any request"
	}
	return strings.Join(words, " ")
}

// requests remembers what came in, in order.
type requests struct {
	mu  sync.Mutex
	log []Request
}

func (rs *requests) add(r Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.log = append(rs.log, r)
}

func (rs *requests) copied() []Request {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.Clone(rs.log)
}

// Requests returns every request since the start or the last Forget, in the order of arrival: a copy. The proxy remembers
// each, some hundred bytes; who sends millions forgets now and then.
func (p *HTTP) Requests() []Request { return p.requests.copied() }

// Forget empties the memory of requests.
func (p *HTTP) Forget() {
	p.requests.mu.Lock()
	defer p.requests.mu.Unlock()
	p.requests.log = nil
}

// Count returns how many of the remembered requests f chooses. A pattern that is malformed chooses none.
func (p *HTTP) Count(f Filter) int {
	p.requests.mu.Lock()
	defer p.requests.mu.Unlock()
	n := 0
	for _, r := range p.requests.log {
		if f.matches(r) {
			n++
		}
	}
	return n
}

// Counts returns how often each user agent asked for each path: counts[userAgent][path].
func (p *HTTP) Counts() map[string]map[string]int {
	counts := map[string]map[string]int{}
	for _, r := range p.requests.copied() {
		if counts[r.UserAgent] == nil {
			counts[r.UserAgent] = map[string]int{}
		}
		counts[r.UserAgent][r.Path]++
	}
	return counts
}
