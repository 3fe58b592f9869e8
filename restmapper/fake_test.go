package restmapper

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/discovery"
)

// server is an API server as a transport: discovery in the form that is asked for, and an empty list, or "404 page not found",
// for resources. Discovery and handlers can be changed one without the other, because real ones follow each other with a
// delay.
type server struct {
	mu sync.Mutex
	// groups are what discovery says.
	groups []discovery.Group
	// gone holds the paths of group-versions, such as "example.com/v1", whose handlers do not serve any more.
	gone map[string]bool
	// legacy: there is no aggregated form.
	legacy bool
	// delay before each answer to a discovery request.
	delay time.Duration
	// answer, when set, may answer a request in the server's place.
	answer func(req *http.Request) *http.Response
	log    []string
}

func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// requests returns how many discovery requests there were for paths that begin with the prefix.
func (s *server) requests(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, path := range s.log {
		if strings.HasPrefix(path, prefix) {
			n++
		}
	}
	return n
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.log = append(s.log, req.URL.Path)
	delay, answer := s.delay, s.answer
	s.mu.Unlock()
	if answer != nil {
		if resp := answer(req); resp != nil {
			return resp, nil
		}
	}
	if delay > 0 {
		if err := pause(req.Context(), nil, delay); err != nil {
			return nil, req.Context().Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serve(req), nil
}

func (s *server) serve(req *http.Request) *http.Response {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if parts[0] == "api" {
		// The core group has an empty name, and no place for it in its paths.
		parts = slices.Insert(parts, 1, "")
		if len(parts) == 2 {
			parts = parts[:1]
		}
	}
	switch len(parts) {
	case 1:
		return s.document(req, parts[0])
	case 2:
		return s.groupEntry(parts[1])
	case 3:
		return s.resources(parts[1], parts[2])
	}
	g, ok := s.group(parts[1])
	gv, listed := g.Version(parts[2])
	if !ok || !listed || s.gone[parts[1]+"/"+parts[2]] || len(gv.Resources) == 0 {
		return notFound()
	}
	return respond(200, "application/json", `{"kind":"List","items":[]}`)
}

func (s *server) group(name string) (discovery.Group, bool) {
	i := slices.IndexFunc(s.groups, func(g discovery.Group) bool { return g.Name == name })
	if i < 0 {
		return discovery.Group{}, false
	}
	return s.groups[i], true
}

func respond(code int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func notFound() *http.Response {
	return respond(404, "text/plain; charset=utf-8", "404 page not found\n")
}

type object = map[string]any

func respondJSON(contentType string, v any) *http.Response {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return respond(200, contentType, string(body))
}

func (s *server) document(req *http.Request, root string) *http.Response {
	var groups []discovery.Group
	for _, g := range s.groups {
		if (g.Name == "") == (root == "api") {
			groups = append(groups, g)
		}
	}
	if !s.legacy && strings.Contains(req.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
		return aggregated(req, groups)
	}
	if root == "api" {
		var versions []string
		for _, gv := range groups[0].Versions {
			versions = append(versions, gv.Version)
		}
		return respondJSON("application/json", object{"kind": "APIVersions", "versions": versions})
	}
	list := []object{}
	for _, g := range groups {
		list = append(list, legacyGroup(g))
	}
	return respondJSON("application/json", object{"kind": "APIGroupList", "groups": list})
}

func aggregated(req *http.Request, groups []discovery.Group) *http.Response {
	items := []object{}
	for _, g := range groups {
		versions := []object{}
		for _, gv := range g.Versions {
			resources := []object{}
			for _, r := range gv.Resources {
				scope := "Cluster"
				if r.Namespaced {
					scope = "Namespaced"
				}
				resources = append(resources, object{
					"resource": r.Name, "singularResource": r.Singular, "scope": scope, "verbs": r.Verbs,
					"responseKind": object{"group": g.Name, "version": gv.Version, "kind": r.Kind},
				})
			}
			freshness := "Current"
			if gv.State != discovery.Current {
				freshness = "Stale"
			}
			versions = append(versions, object{"version": gv.Version, "freshness": freshness, "resources": resources})
		}
		items = append(items, object{"metadata": object{"name": g.Name}, "versions": versions})
	}
	resp := respondJSON("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		object{"kind": "APIGroupDiscoveryList", "items": items})
	body, _ := io.ReadAll(resp.Body)
	etag := fmt.Sprintf(`"%X"`, sha256.Sum256(body))
	if req.Header.Get("If-None-Match") == etag {
		resp = respond(304, "", "")
	} else {
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp.Header.Set("ETag", etag)
	return resp
}

func legacyGroup(g discovery.Group) object {
	versions := []object{}
	for _, gv := range g.Versions {
		versions = append(versions, object{"groupVersion": g.Name + "/" + gv.Version, "version": gv.Version})
	}
	return object{
		"kind": "APIGroup", "name": g.Name, "versions": versions,
		"preferredVersion": object{"groupVersion": g.Name + "/" + g.Preferred, "version": g.Preferred},
	}
}

func (s *server) groupEntry(name string) *http.Response {
	g, ok := s.group(name)
	if !ok {
		return notFound()
	}
	return respondJSON("application/json", legacyGroup(g))
}

func (s *server) resources(group, version string) *http.Response {
	g, _ := s.group(group)
	gv, ok := g.Version(version)
	if !ok || s.gone[group+"/"+version] {
		return notFound()
	}
	if gv.State != discovery.Current {
		return respond(503, "text/plain; charset=utf-8", "service unavailable\n")
	}
	list := []object{}
	for _, r := range gv.Resources {
		list = append(list, object{
			"name": r.Name, "singularName": r.Singular, "kind": r.Kind, "namespaced": r.Namespaced, "verbs": r.Verbs,
		})
	}
	name := version
	if group != "" {
		name = group + "/" + version
	}
	return respondJSON("application/json", object{"kind": "APIResourceList", "groupVersion": name, "resources": list})
}

// mapper returns a mapper for the server.
func (s *server) mapper(t testing.TB, o Options) *Mapper {
	t.Helper()
	m, err := New(&rest.Config{Host: "http://server.test"}, &http.Client{Transport: s}, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// list asks for a resource through a client that the mapper observes, and returns the status code.
func (s *server) list(t testing.TB, m *Mapper, path string) int {
	t.Helper()
	c := http.Client{Transport: m.WrapTransport(s)}
	resp, err := c.Get("http://server.test" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == 404 && string(body) != "404 page not found\n" {
		t.Fatalf("body of a 404 changed on its way: %q", body)
	}
	return resp.StatusCode
}

var crdVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// crd returns a version with one namespaced resource per kind.
func crd(version string, kinds ...string) discovery.GroupVersion {
	gv := discovery.GroupVersion{Version: version}
	for _, k := range kinds {
		gv.Resources = append(gv.Resources, discovery.Resource{
			Name: strings.ToLower(k) + "s", Singular: strings.ToLower(k), Kind: k, Namespaced: true, Verbs: crdVerbs,
		})
	}
	return gv
}

// groupOf returns a group that prefers its first version.
func groupOf(name string, versions ...discovery.GroupVersion) discovery.Group {
	return discovery.Group{Name: name, Preferred: versions[0].Version, Versions: versions}
}

// serving returns a server of a core group and the given ones.
func serving(groups ...discovery.Group) *server {
	return &server{groups: append([]discovery.Group{groupOf("", crd("v1", "Pod"))}, groups...)}
}
