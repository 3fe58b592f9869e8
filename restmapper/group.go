package restmapper

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/changeover-dev/changeover/discovery"
)

// group is everything that lookups want to know of one API group. It never changes, and is shared by all indexes between
// which the group did not change: therefore it knows nothing of its place among the others.
type group struct {
	source   discovery.Group
	versions []version
	kinds    map[string]kind
	names    map[string][]naming
	// unread says that a version is listed whose resources were never read, which is so in legacy form only.
	unread bool
}

// version is one version of a group. Its place in group.versions is its place in the server's list.
type version struct {
	name string
	// rank orders versions by preference: the preferred one first, the others as the server lists them. The core group's v1 comes
	// before all, whatever the server prefers.
	rank int
}

func isCoreV1(group, version string) bool { return group == "" && version == "v1" }

// kind says in which versions a kind is served.
type kind struct {
	// targets are in the server's order of versions, one per version.
	targets []target
	// best is the place in targets of the most preferred version.
	best int
	// settled says that no unread version could be preferred over best.
	settled bool
}

type target struct {
	version int
	plural  string
	root    bool
}

// naming is what one word in the place of a resource means in one version. It may be a plural, a singular, or both.
type naming struct {
	version int
	// kind of the resource that has this plural or singular.
	kind string
	// plurals of all resources that have this plural or singular, sorted: usually one, none only where another resource took
	// over the plural.
	plurals []string
	// singular of the resource of this plural; empty when the word is no plural.
	singular string
}

// buildGroup prepares a group for lookups.
//
// Which words it knows follows client-go's NewDiscoveryRESTMapper to the letter, because the mapper promises the same answers:
// each kind also in lower case and with "List" appended, "List" itself in every version, and the last one wins where two
// resources of a version claim the same word.
func buildGroup(g discovery.Group) *group {
	b := &group{source: g, kinds: map[string]kind{}, names: map[string][]naming{}}
	rank := 1
	for i, gv := range g.Versions {
		v := version{name: gv.Version, rank: rank}
		switch {
		case isCoreV1(g.Name, gv.Version):
			v.rank = -1
		case gv.Version == g.Preferred:
			v.rank = 0
		default:
			rank++
		}
		b.versions = append(b.versions, v)
		if isUnread(gv) {
			b.unread = true
			continue
		}
		if readable(gv) {
			b.addVersion(i, gv.Resources)
		}
	}
	for name, k := range b.kinds {
		b.kinds[name] = b.withBest(k)
	}
	return b
}

// isUnread says that nobody has tried yet to read the version's resources.
func isUnread(gv discovery.GroupVersion) bool {
	return gv.State == discovery.Unavailable && errors.Is(gv.Reason, discovery.ErrNotRead)
}

// isUnserved says that the version is listed, but was not there when it was read.
func isUnserved(gv discovery.GroupVersion) bool {
	return gv.State == discovery.Unavailable && errors.Is(gv.Reason, discovery.ErrNotServed)
}

// readable says that lookups may use the version's resources, be they current or the last known ones.
func readable(gv discovery.GroupVersion) bool {
	return gv.State == discovery.Current || len(gv.Resources) > 0 && !isUnserved(gv)
}

// unknown says that the version may serve what we do not know of.
func unknown(gv discovery.GroupVersion) bool {
	return gv.State != discovery.Current && !isUnserved(gv) && len(gv.Resources) == 0
}

func (g *group) withBest(k kind) kind {
	for i, t := range k.targets {
		if g.versions[t.version].rank < g.versions[k.targets[k.best].version].rank {
			k.best = i
		}
	}
	k.settled = true
	for i, gv := range g.source.Versions {
		if isUnread(gv) && g.versions[i].rank < g.versions[k.targets[k.best].version].rank {
			k.settled = false
		}
	}
	return k
}

// words collects what one version's resources are called; see buildGroup for who wins.
type words struct {
	kinds    map[string]target // by kind
	kindOf   map[string]string // by plural and by singular
	singular map[string]string // by plural
}

func (w words) add(kind, plural, singular string, root bool) {
	w.singular[plural] = singular
	w.kindOf[singular] = kind
	w.kindOf[plural] = kind
	w.kinds[kind] = target{plural: plural, root: root}
}

func (w words) addGuessed(kind string, root bool) {
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	w.add(kind, plural.Resource, singular.Resource, root)
}

func (g *group) addVersion(place int, resources []discovery.Resource) {
	w := words{kinds: map[string]target{}, kindOf: map[string]string{}, singular: map[string]string{}}
	for _, r := range resources {
		if r.Kind == "" || strings.Contains(r.Name, "/") {
			continue
		}
		singular := r.Singular
		if singular == "" {
			_, guess := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: r.Kind})
			singular = guess.Resource
		}
		w.add(strings.ToLower(r.Kind), r.Name, singular, !r.Namespaced)
		w.add(r.Kind, r.Name, singular, !r.Namespaced)
		w.addGuessed(r.Kind+"List", !r.Namespaced)
	}
	w.addGuessed("List", true)

	for name, t := range w.kinds {
		t.version = place
		k := g.kinds[name]
		k.targets = append(k.targets, t)
		g.kinds[name] = k
	}
	for word, kind := range w.kindOf {
		n := naming{version: place, kind: kind, singular: w.singular[word]}
		if n.singular != "" {
			n.plurals = append(n.plurals, word)
		}
		g.names[word] = append(g.names[word], n)
	}
	for plural, singular := range w.singular {
		if plural == singular {
			continue
		}
		ns := g.names[singular]
		last := &ns[len(ns)-1]
		last.plurals = append(last.plurals, plural)
		slices.Sort(last.plurals)
	}
}

// sameGroup says that two readings of a group mean the same to lookups and to errors.
func sameGroup(a, b discovery.Group) bool {
	if a.Name != b.Name || a.Preferred != b.Preferred || len(a.Versions) != len(b.Versions) {
		return false
	}
	if len(a.Versions) == 0 || &a.Versions[0] == &b.Versions[0] {
		return true
	}
	return slices.EqualFunc(a.Versions, b.Versions, sameVersion)
}

func sameVersion(a, b discovery.GroupVersion) bool {
	return a.Version == b.Version && a.State == b.State &&
		isUnread(a) == isUnread(b) && isUnserved(a) == isUnserved(b) &&
		slices.EqualFunc(a.Resources, b.Resources, sameResource)
}

func sameResource(a, b discovery.Resource) bool {
	return a.Name == b.Name && a.Singular == b.Singular && a.Kind == b.Kind && a.Namespaced == b.Namespaced &&
		slices.Equal(a.Verbs, b.Verbs)
}

// carry returns next with what it lacks and prev has: a version that was not read this time keeps what an earlier read found,
// and one that cannot be read now keeps its last known resources, still flagged. A version that is listed but not served
// keeps nothing.
func carry(prev, next discovery.Group) discovery.Group {
	copied := false
	for i, gv := range next.Versions {
		if gv.State == discovery.Current || isUnserved(gv) {
			continue
		}
		old, ok := prev.Version(gv.Version)
		switch {
		case !ok || isUnread(old):
			continue
		case isUnread(gv):
			gv = old
		case len(gv.Resources) == 0 && readable(old):
			gv.Resources = old.Resources
		default:
			continue
		}
		if !copied {
			next.Versions, copied = slices.Clone(next.Versions), true
		}
		next.Versions[i] = gv
	}
	return next
}
