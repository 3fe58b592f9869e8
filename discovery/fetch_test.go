package discovery

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func fetch(t *testing.T, c *Client, prev *Snapshot) *Snapshot {
	t.Helper()
	s, err := c.Fetch(context.Background(), prev)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the aggregated document says is taken over, in its order, and what is unknown or of no use is left out.
func TestFetchAggregated(t *testing.T) {
	s := newScript(t)
	s.set("aggregated /api", aggregatedReply(coreGroup))
	s.set("aggregated /apis", reply{contentType: aggregatedV2Type, etag: `"A"`, body: `{
		"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "invented": {"later": [1]},
		"items": [
			{"metadata": {"name": "b.example.com"}, "versions": [
				{"version": "v2", "freshness": "Current", "resources": [
					{"resource": "things", "responseKind": {"group": "", "version": "v1", "kind": "Thing"}, "scope": "Cluster",
					 "singularResource": "thing", "verbs": ["get"], "shortNames": ["th"], "categories": ["all"],
					 "subresources": [{"subresource": "status", "responseKind": {"kind": "Thing"}, "verbs": ["get"]}]},
					{"resource": "carriers", "responseKind": {"group": "", "version": "", "kind": ""}, "scope": "Cluster",
					 "subresources": [{"subresource": "scale"}]},
					{"resource": "bare", "scope": "Cluster"}]},
				{"version": "v1", "freshness": "Stale", "resources": [
					{"resource": "olds", "responseKind": {"kind": "Old"}, "scope": "Namespaced", "verbs": ["list"]}]}]},
			{"metadata": {"name": "a.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}]}`})
	got := fetch(t, s.client(Options{}), nil)
	want := []Group{
		{Name: "", Preferred: "v1", Versions: []GroupVersion{{Version: "v1", Resources: []Resource{
			{Name: "pods", Singular: "pod", Kind: "Pod", Version: "v1", Namespaced: true, Verbs: []string{"get", "list"}}}}}},
		{Name: "b.example.com", Preferred: "v2", Versions: []GroupVersion{
			{Version: "v2", Resources: []Resource{
				{Name: "things", Singular: "thing", Kind: "Thing", Group: "", Version: "v1", Verbs: []string{"get"},
					ShortNames: []string{"th"}, Categories: []string{"all"}}}},
			{Version: "v1", State: Stale, Reason: ErrStale, Resources: []Resource{
				{Name: "olds", Kind: "Old", Group: "b.example.com", Version: "v1", Namespaced: true, Verbs: []string{"list"}}}}}},
		{Name: "a.example.com", Preferred: "v1", Versions: []GroupVersion{
			{Version: "v1", State: Unavailable, Reason: ErrStale, Resources: []Resource{}}}},
	}
	if !reflect.DeepEqual(got.Groups(), want) {
		t.Errorf("got  %+v\nwant %+v", got.Groups(), want)
	}
	if got.Form() != AggregatedV2 || got.ETag() == "" {
		t.Errorf("form %q, etag %q", got.Form(), got.ETag())
	}
}

// Nothing is parsed or copied when the server confirms both documents, and only AsOf moves on.
func TestFetchRevalidates(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	c := s.client(Options{})
	first := fetch(t, c, nil)
	s.take()
	second := fetch(t, c, first)
	seen := s.take()
	slices.Sort(seen)
	if want := []string{"/api if changed", "/apis if changed"}; !slices.Equal(seen, want) {
		t.Errorf("requests %q, want %q", seen, want)
	}
	if &first.Groups()[0] != &second.Groups()[0] || first.ETag() != second.ETag() {
		t.Error("a confirmed snapshot does not share its groups with the one before")
	}
	if !second.AsOf().After(first.AsOf()) {
		t.Errorf("as of %v after %v", second.AsOf(), first.AsOf())
	}
}

// One group of many changes and another comes before it: all others are the very same values as before.
func TestFetchSharesUnchangedGroups(t *testing.T) {
	s := newScript(t)
	c := s.client(Options{})
	s.serve(true, widgets("v1"), gadgets("v1"))
	first := fetch(t, c, nil)
	s.serve(true, serves{group: "new.example.com", versions: []string{"v1"}}, widgets("v2", "v1"), gadgets("v1"))
	second := fetch(t, c, first)
	share := func(name string) bool {
		a, _ := first.Group(name)
		b, _ := second.Group(name)
		return &a.Versions[0] == &b.Versions[0]
	}
	if !share("") || !share("other.example.com") {
		t.Error("unchanged groups are not shared")
	}
	if g, _ := second.Group("example.com"); share("example.com") || g.Preferred != "v2" || len(g.Versions) != 2 {
		t.Errorf("changed group: %+v", g)
	}
	if g, _ := first.Group("example.com"); g.Preferred != "v1" {
		t.Errorf("the snapshot before was changed: %+v", g)
	}
	if first.ETag() == second.ETag() {
		t.Error("equal ETags for different content")
	}
}

// An aggregated API goes down, and its API server is restarted, so that even the aggregator no longer knows its resources.
func TestFetchKeepsLastKnown(t *testing.T) {
	s := newScript(t)
	c := s.client(Options{})
	s.serve(true, widgets("v1"), gadgets("v1"))
	snap := fetch(t, c, nil)
	down := serves{group: "example.com", versions: []string{"v1"}, stale: map[string]bool{"v1": true}}
	// The second time, the group that is down stands there as before, and something else is new.
	for _, other := range []serves{gadgets("v1"), gadgets("v2", "v1")} {
		s.serve(true, down, other)
		snap = fetch(t, c, snap)
		v := version(t, snap, "example.com", "v1")
		if v.State != Unavailable || !errors.Is(v.Reason, ErrStale) || len(v.Resources) != 1 || v.Resources[0].Kind != "Widget" {
			t.Errorf("got %+v", v)
		}
		if v := version(t, snap, "other.example.com", "v1"); v.State != Current {
			t.Errorf("another group is %v", v.State)
		}
	}
}

func version(t *testing.T, s *Snapshot, group, version string) GroupVersion {
	t.Helper()
	g, _ := s.Group(group)
	v, ok := g.Version(version)
	if !ok {
		t.Fatalf("%s/%s is not in %+v", group, version, s.Groups())
	}
	return v
}

// A server without aggregated discovery is noticed by what it answers. Its versions are listed, and keep what is known of them.
func TestFetchLegacy(t *testing.T) {
	s := newScript(t)
	s.serve(false, widgets("v2", "v1"))
	c := s.client(Options{})
	snap := fetch(t, c, nil)
	if snap.Form() != Legacy || snap.ETag() != "" {
		t.Errorf("form %q, etag %q", snap.Form(), snap.ETag())
	}
	v := version(t, snap, "example.com", "v2")
	if v.State != Unavailable || !errors.Is(v.Reason, ErrNotRead) || len(v.Resources) != 0 {
		t.Errorf("before it is read: %+v", v)
	}
	g, found, err := c.FetchGroup(context.Background(), "example.com")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	snap = snap.With(g)
	if v := version(t, snap, "example.com", "v2"); v.State != Current || len(v.Resources) != 1 {
		t.Errorf("after it was read: %+v", v)
	}
	s.serve(false, widgets("v3", "v2"))
	snap = fetch(t, c, snap)
	if v := version(t, snap, "example.com", "v2"); !errors.Is(v.Reason, ErrNotRead) || len(v.Resources) != 1 {
		t.Errorf("listed anew: %+v", v)
	}
	if v := version(t, snap, "example.com", "v3"); len(v.Resources) != 0 {
		t.Errorf("a version that is new: %+v", v)
	}
	if g, _ := snap.Group("example.com"); len(g.Versions) != 2 || g.Preferred != "v3" {
		t.Errorf("group %+v", g)
	}
}

// LegacyOnly never asks for anything else, whatever the snapshot before was.
func TestFetchLegacyOnly(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	snap := fetch(t, s.client(Options{LegacyOnly: true}), fetch(t, s.client(Options{}), nil))
	if snap.Form() != Legacy {
		t.Errorf("form %q", snap.Form())
	}
	if v := version(t, snap, "example.com", "v1"); !errors.Is(v.Reason, ErrNotRead) || len(v.Resources) != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestFetchWithoutCoreGroup(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	c := s.client(Options{})
	with := fetch(t, c, nil)
	s.drop("/api")
	s.drop("aggregated /api")
	without := fetch(t, c, nil)
	if _, ok := without.Group(""); ok || len(without.Groups()) != 1 {
		t.Errorf("got %+v", without.Groups())
	}
	if again := fetch(t, c, without); len(again.Groups()) != 1 {
		t.Errorf("got %+v", again.Groups())
	}
	if _, err := c.Fetch(context.Background(), with); err == nil {
		t.Error("a core group that was there is lost to a 404")
	}
}

// Whatever comes instead of discovery is an error that says so, and the snapshot before goes on being what it was.
func TestFetchRefuses(t *testing.T) {
	good := aggregatedReply(widgets("v1"))
	tests := []struct {
		name  string
		reply reply
		want  string
	}{
		{"page", reply{contentType: "text/html", body: "<html>sign in</html>"}, `GET /apis: answered with content type "text/html" instead of JSON`},
		{"page with 404", reply{status: 404, contentType: "text/html", body: "<html>"}, "GET /apis: answered 404: a body of type text/html"},
		{"no type", reply{contentType: "", body: good.body}, `instead of JSON`},
		{"unavailable", reply{status: 503, contentType: textType, body: "service\nunavailable\n"}, "GET /apis: answered 503: service unavailable"},
		{"forbidden", statusReply(403, `User "nobody" cannot get path "/apis"`), `GET /apis: answered 403: User "nobody" cannot get path "/apis"`},
		{"malformed", reply{contentType: aggregatedV2Type, body: good.body[:len(good.body)/2]}, "GET /apis: answered with malformed JSON: unexpected end of JSON input"},
		{"malformed legacy", reply{contentType: jsonType, body: "[]"}, "GET /apis: answered with malformed JSON: "},
		{"malformed group", reply{contentType: aggregatedV2Type, body: `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":1}}]}`}, "GET /apis: answered with a malformed group, number 1: "},
		{"nameless version", reply{contentType: aggregatedV2Type, body: `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a"},"versions":[{}]}]}`}, `a malformed group, number 1: group "a" has a version without a name`},
		{"other kind", reply{contentType: aggregatedV2Type, body: `{"kind":"Status"}`}, `GET /apis: answered with kind "Status" instead of APIGroupDiscoveryList`},
		{"other legacy kind", reply{contentType: jsonType, body: `{"kind":"Status"}`}, `GET /apis: answered with kind "Status" instead of APIGroupList`},
		{"empty", reply{contentType: aggregatedV2Type, body: `{"kind":"APIGroupDiscoveryList","items":[]}`}, "GET /apis: answered with an empty list of groups"},
		{"empty legacy", reply{contentType: jsonType, body: `{"kind":"APIGroupList","groups":[]}`}, "GET /apis: answered with an empty list of groups"},
		{"core group", aggregatedReply(coreGroup), `GET /apis: answered with a group that does not belong there: ""`},
		{"too large", reply{contentType: aggregatedV2Type, body: `{"kind":"` + strings.Repeat("x", 20000) + `"}`}, "GET /apis: answer is over the limit of 10000 bytes"},
		{"unasked 304", reply{status: 304}, "GET /apis: answered 304 to a request without a condition"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			s.serve(true, widgets("v1"))
			server := httptest.NewServer(s)
			defer server.Close()
			c, err := NewClient(&rest.Config{Host: server.URL}, nil, Options{MaxBytes: 10000})
			if err != nil {
				t.Fatal(err)
			}
			before := fetch(t, c, nil)
			if test.reply.status == 304 {
				before = nil
			}
			s.set("aggregated /apis", test.reply)
			got, err := c.Fetch(context.Background(), before)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if got != nil {
				t.Error("a snapshot beside an error")
			}
			var re *ResponseError
			if test.name != "too large" && (!errors.As(err, &re) || re.Path != "/apis") {
				t.Errorf("error %#v is no ResponseError about /apis", err)
			}
			if before != nil {
				if g, ok := before.Group("example.com"); !ok || g.Versions[0].State != Current {
					t.Errorf("the snapshot before is changed: %+v", g)
				}
			}
		})
	}
}

// A connection that breaks in the middle of the body, and a redirect, which a client with credentials must not follow.
func TestFetchFromBrokenServers(t *testing.T) {
	var followed bool
	mux := http.NewServeMux()
	mux.HandleFunc("/truncated/", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", aggregatedV2Type)
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"kind":`))
	})
	mux.HandleFunc("/redirect/", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "/elsewhere", http.StatusFound)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { followed = true })
	server := httptest.NewServer(mux)
	defer server.Close()
	for prefix, want := range map[string]string{"truncated": "unexpected EOF", "redirect": "answered 302, a redirect"} {
		c, err := NewClient(&rest.Config{Host: server.URL + "/" + prefix}, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Fetch(context.Background(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", prefix, err, want)
		}
	}
	if followed {
		t.Error("a redirect was followed")
	}
}

// A server that could not hash its document sends an empty validator, which would confirm any other such document.
func TestFetchIgnoresEmptyETag(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	r := aggregatedReply(widgets("v1"))
	r.etag = `""`
	s.set("aggregated /apis", r)
	c := s.client(Options{})
	snap := fetch(t, c, nil)
	r = aggregatedReply(widgets("v2"))
	r.etag = `""`
	s.set("aggregated /apis", r)
	version(t, fetch(t, c, snap), "example.com", "v2")
}

func TestNewClientRefuses(t *testing.T) {
	for name, make := range map[string]func() (*Client, error){
		"no configuration": func() (*Client, error) { return NewClient(nil, nil, Options{}) },
		"negative timeout": func() (*Client, error) { return NewClient(&rest.Config{}, nil, Options{Timeout: -1}) },
		"negative limit":   func() (*Client, error) { return NewClient(&rest.Config{}, nil, Options{MaxBytes: -1}) },
		"both": func() (*Client, error) {
			return NewClient(&rest.Config{}, nil, Options{LegacyOnly: true, NoPeer: true})
		},
		"address": func() (*Client, error) { return NewClient(&rest.Config{Host: "a/b/c"}, nil, Options{}) },
		"missing CA": func() (*Client, error) {
			return NewClient(&rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "absent"}}, nil, Options{})
		},
	} {
		if c, err := make(); err == nil || c != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}
