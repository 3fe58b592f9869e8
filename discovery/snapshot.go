package discovery

import (
	"crypto/sha256"
	"slices"
	"time"
)

// A Snapshot is what one API server said it serves, at one moment. It never changes, and is safe for concurrent use. A nil
// Snapshot has no groups.
type Snapshot struct {
	asOf time.Time
	form Form
	// core and rest are the two documents, /api and /apis. They are empty in a snapshot made by NewSnapshot.
	core, rest document
	// groups are those of core and then those of rest, unless spliced says that With or Without have changed them since.
	groups  []Group
	spliced bool
	// index finds the place in groups by name.
	index map[string]int
}

// document is one discovery document, /api or /apis, with what must be remembered of it to ask for it again conditionally and
// to parse only what has changed in it.
type document struct {
	form   Form
	etag   string
	groups []Group
	// sums holds a digest of each group as the server wrote it, in the order of groups; nil in legacy form.
	sums [][sha256.Size]byte
}

func (d *document) group(name string) (Group, bool) {
	for i := range d.groups {
		if d.groups[i].Name == name {
			return d.groups[i], true
		}
	}
	return Group{}, false
}

// bySum returns the place of each group by its digest.
func (d *document) bySum() map[[sha256.Size]byte]int {
	at := make(map[[sha256.Size]byte]int, len(d.sums))
	for i, sum := range d.sums {
		at[sum] = i
	}
	return at
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

// ETag identifies the content of the snapshot: equal ones mean equal content. It is empty in legacy form, when the server sent
// none, and for a snapshot made by NewSnapshot, With or Without.
func (s *Snapshot) ETag() string {
	if s == nil || s.spliced || s.core.etag == "" || s.rest.etag == "" {
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
// it any more. Its versions that could not be read get the resources that s knows, as in Fetch, except those with ErrNotServed.
// The next Fetch goes by the server's documents again.
func (s *Snapshot) With(g Group) *Snapshot {
	if before, ok := s.Group(g.Name); ok {
		g.keepLastKnown(before)
	}
	groups := slices.Clone(s.Groups())
	if i := slices.IndexFunc(groups, func(have Group) bool { return have.Name == g.Name }); i >= 0 {
		groups[i] = g
	} else {
		groups = append(groups, g)
	}
	return s.splice(groups)
}

// Without returns a snapshot that lacks the named group. It is s itself when s has no such group.
func (s *Snapshot) Without(name string) *Snapshot {
	if _, ok := s.Group(name); !ok {
		return s
	}
	return s.splice(slices.DeleteFunc(slices.Clone(s.groups), func(g Group) bool { return g.Name == name }))
}

// splice keeps the documents, so that the next Fetch is conditional all the same.
func (s *Snapshot) splice(groups []Group) *Snapshot {
	n := build(groups, s.AsOf())
	n.spliced = true
	if s != nil {
		n.form, n.core, n.rest = s.form, s.core, s.rest
	}
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
