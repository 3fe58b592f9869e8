package discovery

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestFetchGroup(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v2", "v1"))
	c := s.client(Options{})
	aggregated := fetch(t, c, nil)
	for _, name := range []string{"", "example.com"} {
		g, found, err := c.FetchGroup(context.Background(), name)
		if err != nil || !found {
			t.Fatalf("group %q: found %v, %v", name, found, err)
		}
		// Both forms say the same.
		want, _ := aggregated.Group(name)
		if g.Name != want.Name || g.Preferred != want.Preferred || len(g.Versions) != len(want.Versions) {
			t.Errorf("got  %+v\nwant %+v", g, want)
		}
		for i := range g.Versions {
			v, w := g.Versions[i], want.Versions[i]
			if v.Version != w.Version || v.State != Current || v.Reason != nil || len(v.Resources) != 1 || v.Resources[0].Kind != w.Resources[0].Kind {
				t.Errorf("got  %+v\nwant %+v", v, w)
			}
		}
	}
	if g, found, err := c.FetchGroup(context.Background(), "absent.example.com"); found || err != nil {
		t.Errorf("absent group: %+v, %v, %v", g, found, err)
	}
}

// The race that started this project: the entry lists v1alpha4, and by the time that it is read it is un-served. The entry is read
// once more, and says that it is gone.
func TestFetchGroupListedThenGone(t *testing.T) {
	s := newScript(t)
	s.serve(false, widgets("v1", "v1alpha4"))
	entry := jsonReply(widgets("v1", "v1alpha4").entry())
	entry.before = func(*http.Request) {
		s.drop("/apis/example.com/v1alpha4")
		s.set("/apis/example.com", jsonReply(widgets("v1").entry()))
	}
	s.set("/apis/example.com", entry)
	g, found, err := s.client(Options{}).FetchGroup(context.Background(), "example.com")
	if err != nil || !found || len(g.Versions) != 1 || g.Versions[0].State != Current {
		t.Errorf("got %+v, %v, %v", g, found, err)
	}
	seen := s.take()
	if n := count(seen, "/apis/example.com"); n != 2 {
		t.Errorf("the entry was read %d times: %q", n, seen)
	}
	if n := count(seen, "/apis/example.com/v1"); n != 1 {
		t.Errorf("what was read already was read %d times: %q", n, seen)
	}
}

// The opposite race: listed now, readable a moment later. And a version that came in between is read as well.
func TestFetchGroupListedThenReadable(t *testing.T) {
	s := newScript(t)
	s.serve(false, widgets("v1"))
	s.set("/apis/example.com", jsonReply(widgets("v2", "v1").entry()))
	s.set("/apis/example.com/v2", reply{
		status: http.StatusNotFound, contentType: textType, body: "404 page not found\n",
		before: func(*http.Request) {
			for _, v := range []string{"v3", "v2"} {
				s.set("/apis/example.com/"+v, widgets("v3", "v2").version(v))
			}
			s.set("/apis/example.com", jsonReply(widgets("v3", "v2", "v1").entry()))
		},
	})
	g, found, err := s.client(Options{}).FetchGroup(context.Background(), "example.com")
	if err != nil || !found || g.Preferred != "v3" || len(g.Versions) != 3 {
		t.Fatalf("got %+v, %v, %v", g, found, err)
	}
	for _, v := range g.Versions {
		if v.State != Current || len(v.Resources) != 1 {
			t.Errorf("%+v", v)
		}
	}
}

// Listed twice and 404 twice: not known to be either, and no matter of the other versions. What was known of it is not kept, since
// its 404 says that it is not served.
func TestFetchGroupListedAndNotServed(t *testing.T) {
	s := newScript(t)
	s.serve(false, widgets("v1", "v1alpha4"))
	c := s.client(Options{})
	g, _, err := c.FetchGroup(context.Background(), "example.com")
	if err != nil {
		t.Fatal(err)
	}
	snap := fetch(t, c, nil).With(g)
	s.drop("/apis/example.com/v1alpha4")
	g, found, err := c.FetchGroup(context.Background(), "example.com")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	snap = snap.With(g)
	if v := version(t, snap, "example.com", "v1"); v.State != Current {
		t.Errorf("%+v", v)
	}
	v := version(t, snap, "example.com", "v1alpha4")
	if v.State != Unavailable || !errors.Is(v.Reason, ErrNotServed) || len(v.Resources) != 0 {
		t.Errorf("%+v", v)
	}
}

// A version that cannot be read is unavailable with its reason, keeps what was known, and takes no other version with it.
func TestFetchGroupBadVersion(t *testing.T) {
	tests := map[string]struct {
		reply reply
		want  string
	}{
		"unavailable":   {reply{status: 503, contentType: textType, body: "service unavailable\n"}, "answered 503: service unavailable"},
		"page with 404": {reply{status: 404, contentType: "text/html", body: "<html>"}, "answered 404: a body of type text/html"},
		"empty":         {jsonReply(map[string]any{"kind": "APIResourceList", "groupVersion": "example.com/v2"}), "empty list of resources"},
		"other version": {widgets("v1").version("v1"), `the group-version "example.com/v1" instead`},
		"malformed":     {reply{contentType: jsonType, body: "{"}, "malformed JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.serve(true, widgets("v2", "v1"))
			c := s.client(Options{})
			snap := fetch(t, c, nil)
			s.set("/apis/example.com/v2", test.reply)
			g, found, err := c.FetchGroup(context.Background(), "example.com")
			if err != nil || !found {
				t.Fatal(found, err)
			}
			snap = snap.With(g)
			if v := version(t, snap, "example.com", "v1"); v.State != Current {
				t.Errorf("%+v", v)
			}
			v := version(t, snap, "example.com", "v2")
			if v.State != Unavailable || v.Reason == nil || !strings.Contains(v.Reason.Error(), test.want) || len(v.Resources) != 1 {
				t.Errorf("got %+v, want reason %q", v, test.want)
			}
		})
	}
}

// Only an API server's own 404 says that there is no such group.
func TestFetchGroupEntryErrors(t *testing.T) {
	for name, r := range map[string]reply{
		"page with 404": {status: 404, contentType: "text/html", body: "<html>"},
		"unavailable":   {status: 503, contentType: textType, body: "down"},
		"other group":   jsonReply(gadgets("v1").entry()),
		"malformed":     {contentType: jsonType, body: `{"kind":"APIGroup","name":"example.com","versions":[{}]}`},
	} {
		s := newScript(t)
		s.serve(false, widgets("v1"))
		s.set("/apis/example.com", r)
		if g, found, err := s.client(Options{}).FetchGroup(context.Background(), "example.com"); err == nil || found {
			t.Errorf("%s: %+v, %v, %v", name, g, found, err)
		}
	}
	s := newScript(t)
	for _, name := range []string{"..", "a/b", "a?b", "a b"} {
		if _, _, err := s.client(Options{}).FetchGroup(context.Background(), name); err == nil {
			t.Errorf("group name %q is accepted", name)
		}
	}
	if seen := s.take(); len(seen) > 0 {
		t.Errorf("requests for bad names: %q", seen)
	}
}

func count(list []string, s string) int {
	n := 0
	for len(list) > 0 {
		i := slices.Index(list, s)
		if i < 0 {
			break
		}
		n, list = n+1, list[i+1:]
	}
	return n
}
