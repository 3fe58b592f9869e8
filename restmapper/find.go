package restmapper

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapping finds what RESTMapping answers: the first of the versions that has the kind, or the preferred one when no version is
// asked for. Unless final is set, it finds nothing where a version that nobody has read yet could be preferred.
func (t *tables) mapping(gk schema.GroupKind, versions []string, final bool) (*group, target, bool) {
	g, ok := t.groups[gk.Group]
	if !ok {
		return nil, target{}, false
	}
	k, ok := g.kinds[gk.Kind]
	if !ok {
		return nil, target{}, false
	}
	asked := false
	for _, v := range versions {
		if v == "" || v == runtime.APIVersionInternal {
			continue
		}
		asked = true
		for _, target := range k.targets {
			if g.versions[target.version].name == v {
				return g, target, true
			}
		}
		if g.unread && !final && g.isUnread(v) {
			return nil, target{}, false
		}
	}
	if asked || !k.settled && !final {
		return nil, target{}, false
	}
	return g, k.targets[k.best], true
}

func (g *group) isUnread(version string) bool {
	gv, ok := g.source.Version(version)
	return ok && isUnread(gv)
}

// mappings finds what RESTMappings answers: every version that has the kind, in the order of the server.
func (t *tables) mappings(gk schema.GroupKind, versions []string, final bool) ([]*meta.RESTMapping, bool) {
	g, ok := t.groups[gk.Group]
	if !ok || g.unread && !final {
		return nil, false
	}
	any := !slices.ContainsFunc(versions, isVersion)
	var found []*meta.RESTMapping
	for _, target := range g.kinds[gk.Kind].targets {
		if any || slices.Contains(versions, g.versions[target.version].name) {
			found = append(found, g.mapping(gk.Kind, target))
		}
	}
	return found, found != nil
}

// isVersion says that v restricts a lookup. The internal version means any, as it does to client-go.
func isVersion(v string) bool { return v != "" && v != runtime.APIVersionInternal }

// mapping returns a new mapping: callers are free to change it.
func (g *group) mapping(kind string, t target) *meta.RESTMapping {
	name, version := g.source.Name, g.versions[t.version].name
	m := &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Group: name, Version: version, Resource: t.plural},
		GroupVersionKind: schema.GroupVersionKind{Group: name, Version: version, Kind: kind},
		Scope:            meta.RESTScopeNamespace,
	}
	if t.root {
		m.Scope = meta.RESTScopeRoot
	}
	return m
}

// coerce makes a partial resource comparable, as client-go does.
func coerce(r schema.GroupVersionResource) schema.GroupVersionResource {
	r.Resource = strings.ToLower(r.Resource)
	if r.Version == runtime.APIVersionInternal {
		r.Version = ""
	}
	return r
}

// each visits all that a partial resource can mean, in the order of the server. A group without a version also stands for
// all groups that begin with it.
func (t *tables) each(r schema.GroupVersionResource, visit func(*group, *naming)) {
	r = coerce(r)
	if r.Group != "" && r.Version != "" {
		if g, ok := t.groups[r.Group]; ok {
			g.each(r, visit)
		}
		return
	}
	first, ok := t.named[r.Resource]
	if !ok {
		return
	}
	if strings.HasPrefix(first.source.Name, r.Group) {
		first.each(r, visit)
	}
	for _, g := range t.namedToo[r.Resource] {
		if strings.HasPrefix(g.source.Name, r.Group) {
			g.each(r, visit)
		}
	}
}

func (g *group) each(r schema.GroupVersionResource, visit func(*group, *naming)) {
	names := g.names[r.Resource]
	for i := range names {
		if r.Version == "" || g.versions[names[i].version].name == r.Version {
			visit(g, &names[i])
		}
	}
}

// best returns the preferred one of all that a partial resource can mean: that of the core group's v1, else that of the first
// group, and there of the most preferred version.
func (t *tables) best(r schema.GroupVersionResource, needPlural bool) (*group, *naming) {
	var bestGroup *group
	var best *naming
	t.each(r, func(g *group, n *naming) {
		switch {
		case needPlural && len(n.plurals) == 0:
		case best == nil, isCoreV1(g.source.Name, g.versions[n.version].name),
			g == bestGroup && g.versions[n.version].rank < g.versions[best.version].rank:
			bestGroup, best = g, n
		}
	})
	return bestGroup, best
}

// complete says that a partial resource cannot mean anything in a version that nobody has read yet.
func (t *tables) complete(r schema.GroupVersionResource) bool {
	for _, g := range t.unread {
		if concerns(r, g.source.Name) {
			return false
		}
	}
	return true
}

// settled says that nothing in a version that nobody has read yet could be preferred over what g offers.
func (t *tables) settled(r schema.GroupVersionResource, g *group) bool {
	if len(t.unread) == 0 || t.complete(r) {
		return true
	}
	if g.unread {
		return false
	}
	for _, earlier := range t.order {
		if earlier == g {
			return true
		}
		if earlier.unread && concerns(r, earlier.source.Name) {
			return false
		}
	}
	return false
}

// concerns says that a partial resource can mean something in the group.
func concerns(r schema.GroupVersionResource, group string) bool {
	if isFull(r) {
		return group == r.Group
	}
	return strings.HasPrefix(group, r.Group)
}

func (g *group) gvk(n *naming) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: g.source.Name, Version: g.versions[n.version].name, Kind: n.kind}
}

func (g *group) gvr(n *naming, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: g.source.Name, Version: g.versions[n.version].name, Resource: plural}
}

// kindFor finds what KindFor answers.
func (t *tables) kindFor(r schema.GroupVersionResource, final bool) (schema.GroupVersionKind, bool) {
	g, n := t.best(r, false)
	if n == nil || !final && !t.settled(r, g) {
		return schema.GroupVersionKind{}, false
	}
	return g.gvk(n), true
}

// kindsFor finds what KindsFor answers.
func (t *tables) kindsFor(r schema.GroupVersionResource, final bool) ([]schema.GroupVersionKind, bool) {
	if !final && !t.complete(r) {
		return nil, false
	}
	var found []schema.GroupVersionKind
	t.each(r, func(g *group, n *naming) { found = append(found, g.gvk(n)) })
	return found, found != nil
}

// resourceFor finds what ResourceFor answers. It may be ambiguous.
func (t *tables) resourceFor(r schema.GroupVersionResource, final bool) (one schema.GroupVersionResource, ambiguous, ok bool) {
	g, n := t.best(r, true)
	if n == nil || !final && !t.settled(r, g) {
		return schema.GroupVersionResource{}, false, false
	}
	if isFull(r) {
		return g.gvr(n, n.only(r)), false, true
	}
	return g.gvr(n, n.plurals[0]), len(n.plurals) > 1, true
}

// resourcesFor finds what ResourcesFor answers.
func (t *tables) resourcesFor(r schema.GroupVersionResource, final bool) ([]schema.GroupVersionResource, bool) {
	if !final && !t.complete(r) {
		return nil, false
	}
	var found []schema.GroupVersionResource
	t.each(r, func(g *group, n *naming) {
		switch {
		case len(n.plurals) == 0:
		case isFull(r):
			found = append(found, g.gvr(n, n.only(r)))
		default:
			for _, plural := range n.plurals {
				found = append(found, g.gvr(n, plural))
			}
		}
	})
	return found, found != nil
}

// isFull says that a partial resource names group and version. Then client-go takes any one of several plurals with the same
// singular.
func isFull(r schema.GroupVersionResource) bool {
	return r.Group != "" && isVersion(r.Version)
}

// only chooses between several plurals with the same singular: the plural itself, else the first.
func (n *naming) only(r schema.GroupVersionResource) string {
	if word := strings.ToLower(r.Resource); slices.Contains(n.plurals, word) {
		return word
	}
	return n.plurals[0]
}

// singular finds what ResourceSingularizer answers: the singular in the first version in which the resource has just one. It is
// ambiguous when the resource has several in every version that serves it.
func (t *tables) singular(resource string, final bool) (one string, ambiguous, ok bool) {
	r := schema.GroupVersionResource{Resource: resource}
	if !final && !t.complete(r) {
		return "", false, false
	}
	t.each(r, func(g *group, n *naming) {
		if one != "" {
			return
		}
		s := ""
		for _, plural := range n.plurals {
			other := g.singularOf(n.version, plural)
			if s != "" && other != s {
				ambiguous = true
				return
			}
			s = other
		}
		one = s
	})
	return one, ambiguous && one == "", ambiguous || one != ""
}

func (g *group) singularOf(version int, plural string) string {
	for _, n := range g.names[plural] {
		if n.version == version {
			return n.singular
		}
	}
	return ""
}
