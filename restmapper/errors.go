package restmapper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A NoMatchError says that the API server does not serve what was looked up, and what it serves instead. meta.IsNoMatchError is
// true for it, and errors.As finds the *meta.NoKindMatchError or *meta.NoResourceMatchError in it.
type NoMatchError struct {
	// Served holds the versions in which the kind or resource is served, the preferred one first. It is empty when there is none,
	// and for a resource that was looked up without its group.
	Served []string
	// GroupVersions holds all versions of the group, the preferred one first. It is empty when the group is not served, and for a
	// resource that was looked up without its group.
	GroupVersions []string
	// AsOf is when the read of discovery began that this rests on, and Age how long before the error that was.
	AsOf time.Time
	Age  time.Duration
	// Err is the *meta.NoKindMatchError or *meta.NoResourceMatchError.
	Err error

	grouped bool
}

func (e *NoMatchError) Error() string {
	what := ""
	switch {
	case len(e.Served) > 0:
		what = "served in " + strings.Join(e.Served, ", ")
	case len(e.GroupVersions) > 0:
		what = "its group is served in " + strings.Join(e.GroupVersions, ", ") + ", without it"
	case e.grouped:
		what = "its group is not served"
	default:
		what = "no group serves it"
	}
	return fmt.Sprintf("%v: %s, as of %v ago", e.Err, what, e.Age.Round(time.Millisecond))
}

func (e *NoMatchError) Unwrap() error { return e.Err }

// An UnknownError says that it cannot be known now whether the API server serves what was looked up. It is never a no-match
// error; the same lookup may succeed a moment later.
type UnknownError struct {
	// What was looked up, as a phrase such as `kind "Widget" in group "example.com"`.
	What string
	// Err is why it cannot be known: the error of discovery, or that of the caller's context.
	Err error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: cannot be known now: %v", e.What, e.Err)
}

func (e *UnknownError) Unwrap() error { return e.Err }

func ended(ctx context.Context) error {
	return fmt.Errorf("the caller stopped waiting for discovery: %w", context.Cause(ctx))
}

func describeKind(gk schema.GroupKind, versions []string) string {
	what := fmt.Sprintf("kind %q in group %q", gk.Kind, gk.Group)
	if len(versions) > 0 {
		what += " at " + strings.Join(versions, ", ")
	}
	return what
}

func describeResource(r schema.GroupVersionResource) string {
	what := fmt.Sprintf("resource %q", r.Resource)
	if r.Group != "" {
		what += fmt.Sprintf(" in group %q", r.Group)
	}
	if r.Version != "" {
		what += " at " + r.Version
	}
	return what
}

func noKind(k knowledge, gk schema.GroupKind, versions []string) error {
	e := &NoMatchError{
		AsOf: k.asOf, Age: k.age, grouped: true,
		Err: &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions},
	}
	if g, ok := k.groups[gk.Group]; ok {
		var in []int
		for _, t := range g.kinds[gk.Kind].targets {
			in = append(in, t.version)
		}
		e.Served, e.GroupVersions = g.preferredFirst(in), g.allVersions()
	}
	return e
}

func noResource(k knowledge, r schema.GroupVersionResource) error {
	e := &NoMatchError{
		AsOf: k.asOf, Age: k.age, grouped: r.Group != "",
		Err: &meta.NoResourceMatchError{PartialResource: r},
	}
	if g, ok := k.groups[r.Group]; ok && r.Group != "" {
		var in []int
		for _, n := range g.names[coerce(r).Resource] {
			in = append(in, n.version)
		}
		e.Served, e.GroupVersions = g.preferredFirst(in), g.allVersions()
	}
	return e
}

// allVersions returns what the group serves; a version that is listed without being served is none.
func (g *group) allVersions() []string {
	var all []int
	for i, gv := range g.source.Versions {
		if !isUnserved(gv) {
			all = append(all, i)
		}
	}
	return g.preferredFirst(all)
}

func (g *group) preferredFirst(places []int) []string {
	slices.SortFunc(places, func(a, b int) int { return g.versions[a].rank - g.versions[b].rank })
	var names []string
	for _, p := range places {
		names = append(names, g.versions[p].name)
	}
	return names
}
