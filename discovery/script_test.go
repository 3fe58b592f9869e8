package discovery

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

const (
	aggregatedV2Type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	jsonType         = "application/json"
	textType         = "text/plain; charset=utf-8"
)

// reply is what a script says to one request.
type reply struct {
	status      int
	contentType string
	body        string
	etag        string
	// before runs before the reply is written, for holding it or for changing the script.
	before func(*http.Request)
}

// script is an API server that says what a test tells it to say. Every path without a reply answers the plain 404.
type script struct {
	t  *testing.T
	mu sync.Mutex
	// replies by path; those of documents that can be aggregated are under "aggregated " and the path, where there is one.
	replies map[string]reply
	// seen are the paths that were asked for, in order, with a mark for those that carried a validator.
	seen []string
	// remote, when not nil, collects the addresses that requests came from.
	remote map[string]bool
}

func newScript(t *testing.T) *script { return &script{t: t, replies: map[string]reply{}} }

func (s *script) set(path string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[path] = r
}

func (s *script) drop(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replies, path)
}

// take returns the paths seen since it was last called.
func (s *script) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func (s *script) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	validator := req.Header.Get("If-None-Match")
	s.mu.Lock()
	entry := req.URL.Path
	if validator != "" {
		entry += " if changed"
	}
	s.seen = append(s.seen, entry)
	if s.remote != nil {
		s.remote[req.RemoteAddr] = true
	}
	r, ok := reply{}, false
	if strings.Contains(req.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
		r, ok = s.replies["aggregated "+req.URL.Path]
	}
	if !ok {
		r, ok = s.replies[req.URL.Path]
	}
	s.mu.Unlock()
	if !ok {
		r = reply{status: http.StatusNotFound, contentType: textType, body: "404 page not found\n"}
	}
	if r.before != nil {
		r.before(req)
	}
	w.Header().Set("Content-Type", r.contentType)
	if r.etag != "" {
		w.Header().Set("ETag", r.etag)
		if validator == r.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	w.WriteHeader(r.status)
	if _, err := w.Write([]byte(r.body)); err != nil && req.Context().Err() == nil {
		s.t.Errorf("writing the reply to %s: %v", req.URL.Path, err)
	}
}

// RoundTrip answers without a network, so that a test with a clock of its own never waits for a socket. A reply that is being
// held ends with the request's context, as a real connection would.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	done := make(chan *http.Response, 1)
	go func() {
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		done <- rec.Result()
	}()
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case resp := <-done:
		return resp, nil
	}
}

// config is for a client that talks to the script without a network.
func (s *script) config() *rest.Config { return &rest.Config{Host: "http://script", Transport: s} }

func (s *script) client(o Options) *Client {
	s.t.Helper()
	c, err := NewClient(s.config(), nil, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func jsonReply(v any) reply {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return reply{contentType: jsonType, body: string(b)}
}

func statusReply(code int, message string) reply {
	r := jsonReply(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
	r.status = code
	return r
}

// serves is a group as a test describes it: versions in order, each with its plurals. Kind and singular follow from the plural.
type serves struct {
	group    string
	versions []string
	plurals  map[string][]string
	stale    map[string]bool
}

func kindOf(plural string) string {
	return strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
}

func (g serves) aggregated() map[string]any {
	var versions []any
	for _, v := range g.versions {
		var resources []any
		for _, p := range g.plurals[v] {
			resources = append(resources, map[string]any{
				"resource": p, "responseKind": map[string]any{"group": g.group, "version": v, "kind": kindOf(p)},
				"scope": "Namespaced", "singularResource": strings.ToLower(kindOf(p)), "verbs": []string{"get", "list"},
			})
		}
		freshness := "Current"
		if g.stale[v] {
			freshness = "Stale"
		}
		versions = append(versions, map[string]any{"version": v, "resources": resources, "freshness": freshness})
	}
	return map[string]any{"metadata": map[string]any{"name": g.group, "creationTimestamp": nil}, "versions": versions}
}

func (g serves) entry() map[string]any {
	var versions []any
	for _, v := range g.versions {
		versions = append(versions, map[string]any{"groupVersion": groupVersion(g.group, v), "version": v})
	}
	return map[string]any{"kind": "APIGroup", "name": g.group, "versions": versions, "preferredVersion": versions[0]}
}

func (g serves) version(v string) reply {
	resources := []any{}
	for _, p := range g.plurals[v] {
		resources = append(resources, map[string]any{
			"name": p, "singularName": strings.ToLower(kindOf(p)), "namespaced": true, "kind": kindOf(p), "verbs": []string{"get", "list"},
		}, map[string]any{"name": p + "/status", "kind": kindOf(p), "namespaced": true, "verbs": []string{"get"}})
	}
	return jsonReply(map[string]any{"kind": "APIResourceList", "groupVersion": groupVersion(g.group, v), "resources": resources})
}

// aggregatedReply has a validator that depends on the content alone, like the real one.
func aggregatedReply(groups ...serves) reply {
	var items []any
	for _, g := range groups {
		items = append(items, g.aggregated())
	}
	r := jsonReply(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items})
	r.contentType = aggregatedV2Type
	r.etag = strconv.Quote(fmt.Sprintf("%X", sha256.Sum256([]byte(r.body))))
	return r
}

func groupListReply(groups ...serves) reply {
	var entries []any
	for _, g := range groups {
		entries = append(entries, g.entry())
	}
	return jsonReply(map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": entries})
}

var coreGroup = serves{versions: []string{"v1"}, plurals: map[string][]string{"v1": {"pods"}}}

// serve makes the script an API server in legacy and, if wanted, aggregated form, with a list for every resource.
func (s *script) serve(aggregated bool, groups ...serves) {
	s.mu.Lock()
	s.replies = map[string]reply{}
	s.mu.Unlock()
	if aggregated {
		s.set("aggregated /api", aggregatedReply(coreGroup))
		s.set("aggregated /apis", aggregatedReply(groups...))
	}
	s.set("/api", jsonReply(map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}))
	s.set("/api/v1", coreGroup.version("v1"))
	s.set("/apis", groupListReply(groups...))
	for _, g := range groups {
		s.set(groupPath(g.group), jsonReply(g.entry()))
		for _, v := range g.versions {
			s.set(groupPath(g.group, v), g.version(v))
			for _, p := range g.plurals[v] {
				s.set(groupPath(g.group, v, p), jsonReply(map[string]any{"kind": kindOf(p) + "List", "items": []any{}}))
			}
		}
	}
}

func widgets(versions ...string) serves {
	g := serves{group: "example.com", versions: versions, plurals: map[string][]string{}}
	for _, v := range versions {
		g.plurals[v] = []string{"widgets"}
	}
	return g
}

func gadgets(versions ...string) serves {
	g := widgets(versions...)
	g.group = "other.example.com"
	return g
}
