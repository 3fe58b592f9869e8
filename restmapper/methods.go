package restmapper

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errReset is why nothing is known when Reset came between a read and the end of the lookup that waited for it.
var errReset = errors.New("the mapper was reset in the meantime")

// RESTMapping returns the mapping of a kind in the first of the versions that serves it, or in the preferred version when none is
// given.
func (m *Mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.RESTMappingWithContext(context.Background(), gk, versions...)
}

// RESTMappingWithContext is RESTMapping; ctx limits how long a miss waits.
func (m *Mapper) RESTMappingWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if t := m.known(); t != nil {
		if g, target, ok := t.mapping(gk, versions, false); ok {
			return g.mapping(gk.Kind, target), nil
		}
	}
	// A copy, so that a caller's slice need not be allocated for a hit.
	return m.missMapping(ctx, gk, slices.Clone(versions))
}

func (m *Mapper) missMapping(ctx context.Context, gk schema.GroupKind, versions []string) (*meta.RESTMapping, error) {
	return missKind(ctx, m, gk, versions, func(t *tables, final bool) (*meta.RESTMapping, bool) {
		g, target, ok := t.mapping(gk, versions, final)
		if !ok {
			return nil, false
		}
		return g.mapping(gk.Kind, target), true
	})
}

// RESTMappings returns the mappings of a kind in all versions that serve it, or in those of the given versions, in the server's
// order.
func (m *Mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.RESTMappingsWithContext(context.Background(), gk, versions...)
}

// RESTMappingsWithContext is RESTMappings; ctx limits how long a miss waits.
func (m *Mapper) RESTMappingsWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if t := m.known(); t != nil {
		if found, ok := t.mappings(gk, versions, false); ok {
			return found, nil
		}
	}
	return m.missMappings(ctx, gk, slices.Clone(versions))
}

func (m *Mapper) missMappings(ctx context.Context, gk schema.GroupKind, versions []string) ([]*meta.RESTMapping, error) {
	return missKind(ctx, m, gk, versions, func(t *tables, final bool) ([]*meta.RESTMapping, bool) {
		return t.mappings(gk, versions, final)
	})
}

// KindFor returns the preferred kind that a partial resource means.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.KindForWithContext(context.Background(), resource)
}

// KindForWithContext is KindFor; ctx limits how long a miss waits.
func (m *Mapper) KindForWithContext(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if t := m.known(); t != nil {
		if found, ok := t.kindFor(resource, false); ok {
			return found, nil
		}
	}
	return missResource(ctx, m, resource, func(t *tables, final bool) (schema.GroupVersionKind, bool) {
		return t.kindFor(resource, final)
	})
}

// KindsFor returns all kinds that a partial resource means, in the server's order.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.KindsForWithContext(context.Background(), resource)
}

// KindsForWithContext is KindsFor; ctx limits how long a miss waits.
func (m *Mapper) KindsForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	if t := m.known(); t != nil {
		if found, ok := t.kindsFor(resource, false); ok {
			return found, nil
		}
	}
	return missResource(ctx, m, resource, func(t *tables, final bool) ([]schema.GroupVersionKind, bool) {
		return t.kindsFor(resource, final)
	})
}

// ResourceFor returns the preferred resource that a partial resource means. It returns a *meta.AmbiguousResourceError when two
// resources of the preferred version share the name.
func (m *Mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.ResourceForWithContext(context.Background(), resource)
}

// ResourceForWithContext is ResourceFor; ctx limits how long a miss waits.
func (m *Mapper) ResourceForWithContext(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	if t := m.known(); t != nil {
		if found, ambiguous, ok := t.resourceFor(resource, false); ok && !ambiguous {
			return found, nil
		}
	}
	candidates, err := m.missResourceFor(ctx, resource)
	switch {
	case err != nil:
		return schema.GroupVersionResource{}, err
	case len(candidates) > 1:
		return schema.GroupVersionResource{}, &meta.AmbiguousResourceError{PartialResource: resource, MatchingResources: candidates}
	}
	return candidates[0], nil
}

// missResourceFor returns the one answer, or all candidates when there is no single one.
func (m *Mapper) missResourceFor(ctx context.Context, r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return missResource(ctx, m, r, func(t *tables, final bool) ([]schema.GroupVersionResource, bool) {
		one, ambiguous, ok := t.resourceFor(r, final)
		if ok && ambiguous {
			return t.resourcesFor(r, true)
		}
		return []schema.GroupVersionResource{one}, ok
	})
}

// ResourcesFor returns all resources that a partial resource means, in the server's order.
func (m *Mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.ResourcesForWithContext(context.Background(), resource)
}

// ResourcesForWithContext is ResourcesFor; ctx limits how long a miss waits.
func (m *Mapper) ResourcesForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	if t := m.known(); t != nil {
		if found, ok := t.resourcesFor(resource, false); ok {
			return found, nil
		}
	}
	return missResource(ctx, m, resource, func(t *tables, final bool) ([]schema.GroupVersionResource, bool) {
		return t.resourcesFor(resource, final)
	})
}

// ResourceSingularizer returns the singular of a resource, or the resource itself with an error.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	return m.ResourceSingularizerWithContext(context.Background(), resource)
}

// ResourceSingularizerWithContext is ResourceSingularizer; ctx limits how long a miss waits.
func (m *Mapper) ResourceSingularizerWithContext(ctx context.Context, resource string) (string, error) {
	if t := m.known(); t != nil {
		if found, ambiguous, ok := t.singular(resource, false); ok && !ambiguous {
			return found, nil
		}
	}
	partial := schema.GroupVersionResource{Resource: resource}
	found, err := missResource(ctx, m, partial, func(t *tables, final bool) (string, bool) {
		found, _, ok := t.singular(resource, final)
		return found, ok
	})
	switch {
	case err != nil:
		return resource, err
	case found == "":
		return resource, fmt.Errorf("%s: several singulars are possible", describeResource(partial))
	}
	return found, nil
}

// known returns what lookups are answered from, and notes that it is used; nil when nothing is known.
func (m *Mapper) known() *tables {
	idx := m.current.Load()
	if idx == nil {
		return nil
	}
	if idx.mark.Load() != markUsed {
		m.touch(idx)
	}
	return idx.tables
}

// missKind asks the server about a kind.
func missKind[T any](
	ctx context.Context, m *Mapper, gk schema.GroupKind, versions []string, find func(*tables, bool) (T, bool),
) (T, error) {
	var answer T
	q := question{about: schema.GroupVersionResource{Group: gk.Group}, exact: true}
	for _, v := range versions {
		if isVersion(v) {
			q.versions = append(q.versions, v)
		}
	}
	q.find = func(t *tables, final bool) (ok bool) {
		answer, ok = find(t, final)
		return ok
	}
	found, k, err := m.ask(ctx, q)
	switch {
	case found:
		return answer, nil
	case err != nil:
		err = &UnknownError{What: describeKind(gk, q.versions), Err: err}
	default:
		err = noKind(k, gk, versions)
	}
	var none T
	return none, err
}

// missResource asks the server about a partial resource.
func missResource[T any](
	ctx context.Context, m *Mapper, r schema.GroupVersionResource, find func(*tables, bool) (T, bool),
) (T, error) {
	var answer, none T
	if r.Resource == "" {
		return none, fmt.Errorf("%s: the name is empty, so that nothing can be looked up", describeResource(r))
	}
	q := question{about: coerce(r), exact: isFull(r)}
	if isVersion(r.Version) {
		q.versions = []string{r.Version}
	}
	q.find = func(t *tables, final bool) (ok bool) {
		answer, ok = find(t, final)
		return ok
	}
	found, k, err := m.ask(ctx, q)
	switch {
	case found:
		return answer, nil
	case err != nil:
		return none, &UnknownError{What: describeResource(r), Err: err}
	}
	return none, noResource(k, r)
}
