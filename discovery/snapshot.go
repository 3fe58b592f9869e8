package discovery

import (
	"slices"
	"time"
)

// A Snapshot is what one API server said it serves, at one moment. It never changes, and is safe for concurrent use. A nil
// Snapshot has no groups.
type Snapshot struct {
	asOf time.Time
	form Form
	// core and rest are the validators of the two documents, /api and /apis; empty where the server sent none.
	core, rest document
	groups     []Group
	index      map[string]int
}

// document is what must be remembered of one discovery document to ask for it again conditionally and to parse only what
// has changed in it.
type document struct {
	form Form
	etag string
	// sums holds a digest of each group as the server wrote it, in the order of the document, by group name.
	sums map[string][32]byte
}

// NewSnapshot returns a snapshot of the given groups, for tests and fakes. The groups are copied, down to each resource's
// lists. When a name occurs twice, the first group is the one that Group finds.
func NewSnapshot(groups []Group, asOf time.Time) *Snapshot {
	return build(copyGroups(groups), asOf)
}

// build returns a snapshot that takes ownership of groups.
func build(groups []Group, asOf time.Time) *Snapshot {
	s := &Snapshot{asOf: asOf, groups: groups, index: make(map[string]int, len(groups))}
	for i := range groups {
		if _, dup := s.index[groups[i].Name]; !dup {
			s.index[groups[i].Name] = i
		}
	}
	return s
}

// Groups returns all groups, the core group first, the others in the server's order, which is its order of preference. The
// slice and everything below it are shared: read-only.
func (s *Snapshot) Groups() []Group {
	if s == nil {
		return nil
	}
	return s.groups
}

// Group returns the group of that name; the core group's is empty. Everything below it is shared: read-only.
func (s *Snapshot) Group(name string) (Group, bool) {
	if s == nil {
		return Group{}, false
	}
	i, ok := s.index[name]
	if !ok {
		return Group{}, false
	}
	return s.groups[i], true
}

// AsOf returns the moment before the first request for the snapshot was sent: whatever the server changed before it is in
// the snapshot, as far as that server knew. It carries a monotonic clock reading. A confirmation by "not modified" makes it
// newer.
func (s *Snapshot) AsOf() time.Time {
	if s == nil {
		return time.Time{}
	}
	return s.asOf
}

// ETag identifies the content of the snapshot: equal ones mean equal content. It is empty in legacy form, for a snapshot made
// by NewSnapshot, and when the server sent none.
func (s *Snapshot) ETag() string {
	if s == nil || s.core.etag == "" || s.rest.etag == "" {
		return ""
	}
	return s.core.etag + "," + s.rest.etag
}

// Form returns the form in which the groups other than the core group were read. It is empty for a snapshot made by
// NewSnapshot.
func (s *Snapshot) Form() Form {
	if s == nil {
		return ""
	}
	return s.form
}

// With returns a snapshot in which g, as read by FetchGroup, stands in for the group of its name, or is added at the end. AsOf
// stays that of s, because that is what is known of all other groups. g is taken over, not copied: the caller must not change
// it any more.
func (s *Snapshot) With(g Group) *Snapshot {
	groups := slices.Clone(s.Groups())
	if i := slices.IndexFunc(groups, func(have Group) bool { return have.Name == g.Name }); i >= 0 {
		groups[i] = g
	} else {
		groups = append(groups, g)
	}
	return s.replaced(groups)
}

// Without returns a snapshot that lacks the named group. It is s itself when s has no such group.
func (s *Snapshot) Without(name string) *Snapshot {
	if _, ok := s.Group(name); !ok {
		return s
	}
	groups := slices.DeleteFunc(slices.Clone(s.groups), func(g Group) bool { return g.Name == name })
	return s.replaced(groups)
}

// replaced returns a snapshot of groups that is otherwise like s, but cannot be revalidated by ETag: it is no longer what the
// server's document says.
func (s *Snapshot) replaced(groups []Group) *Snapshot {
	n := build(groups, s.AsOf())
	n.form = s.Form()
	return n
}

func copyGroups(groups []Group) []Group {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Versions = slices.Clone(out[i].Versions)
		for j := range out[i].Versions {
			v := &out[i].Versions[j]
			v.Resources = slices.Clone(v.Resources)
			for k := range v.Resources {
				r := &v.Resources[k]
				r.Verbs = slices.Clone(r.Verbs)
				r.ShortNames = slices.Clone(r.ShortNames)
				r.Categories = slices.Clone(r.Categories)
			}
		}
	}
	return out
}
