package discovery

import (
	"reflect"
	"testing"
	"time"
)

func TestNewSnapshotCopies(t *testing.T) {
	groups := []Group{{Name: "a", Preferred: "v1", Versions: []GroupVersion{{Version: "v1", Resources: []Resource{{Name: "things", Verbs: []string{"get"}}}}}}}
	asOf := time.Now()
	s := NewSnapshot(groups, asOf)
	groups[0].Versions[0].Resources[0].Verbs[0] = "changed"
	groups[0].Versions[0].Resources[0].Name = "changed"
	groups[0].Versions[0].Version = "changed"
	groups[0].Name = "changed"
	g, ok := s.Group("a")
	if !ok || g.Versions[0].Version != "v1" || g.Versions[0].Resources[0].Name != "things" || g.Versions[0].Resources[0].Verbs[0] != "get" {
		t.Errorf("got %+v", g)
	}
	if !s.AsOf().Equal(asOf) || s.ETag() != "" || s.Form() != "" {
		t.Errorf("as of %v, etag %q, form %q", s.AsOf(), s.ETag(), s.Form())
	}
}

func TestSnapshotWith(t *testing.T) {
	s := NewSnapshot([]Group{{Name: "a", Preferred: "v1"}, {Name: "b"}}, time.Now())
	changed := s.With(Group{Name: "a", Preferred: "v2"}).With(Group{Name: "c"})
	var names []string
	for _, g := range changed.Groups() {
		names = append(names, g.Name)
	}
	if want := []string{"a", "b", "c"}; !reflect.DeepEqual(names, want) {
		t.Errorf("groups %q, want %q", names, want)
	}
	if g, _ := changed.Group("a"); g.Preferred != "v2" {
		t.Errorf("%+v", g)
	}
	if g, _ := s.Group("a"); g.Preferred != "v1" || len(s.Groups()) != 2 {
		t.Errorf("the snapshot before is changed: %+v", s.Groups())
	}
	if !changed.AsOf().Equal(s.AsOf()) {
		t.Errorf("as of %v", changed.AsOf())
	}
	less := changed.Without("b")
	if _, ok := less.Group("b"); ok || len(less.Groups()) != 2 || changed.Without("absent") != changed {
		t.Errorf("got %+v", less.Groups())
	}
	if g, ok := less.Group("c"); !ok || g.Name != "c" {
		t.Errorf("got %+v", g)
	}
}

// What was spliced in lasts until the next Fetch, which goes by the documents, and need not transfer them again for that.
func TestSnapshotSplicedIsRevalidated(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	c := s.client(Options{})
	snap := fetch(t, c, nil)
	spliced := snap.Without("example.com").With(Group{Name: "new.example.com"})
	if spliced.ETag() != "" {
		t.Errorf("etag %q for content that the server did not send", spliced.ETag())
	}
	again := fetch(t, c, spliced)
	if again.ETag() != snap.ETag() || !reflect.DeepEqual(again.Groups(), snap.Groups()) {
		t.Errorf("got %+v", again.Groups())
	}
}

// What was spliced in is kept as last known of a version that its document cannot tell, and older snapshots of the same document
// do not change with it.
func TestSnapshotSplicedIsLastKnown(t *testing.T) {
	s := newScript(t)
	s.serve(true, serves{group: "example.com", versions: []string{"v1"}, stale: map[string]bool{"v1": true}})
	c := s.client(Options{})
	first := fetch(t, c, nil)
	known := Group{Name: "example.com", Preferred: "v1", Versions: []GroupVersion{{Version: "v1", Resources: []Resource{{Name: "widgets"}}}}}
	second := fetch(t, c, first.With(known))
	if v := version(t, second, "example.com", "v1"); v.State != Unavailable || len(v.Resources) != 1 {
		t.Errorf("got %+v", v)
	}
	if v := version(t, first, "example.com", "v1"); len(v.Resources) != 0 {
		t.Errorf("the snapshot before was changed: %+v", v)
	}
}

func TestNilSnapshot(t *testing.T) {
	var s *Snapshot
	if _, ok := s.Group(""); ok || s.Groups() != nil || !s.AsOf().IsZero() || s.ETag() != "" || s.Form() != "" {
		t.Error("a nil snapshot is not empty")
	}
	if _, ok := s.With(Group{Name: "a"}).Group("a"); !ok || s.Without("a") != s {
		t.Error("a nil snapshot cannot be added to")
	}
}
