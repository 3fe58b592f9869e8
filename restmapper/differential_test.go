package restmapper

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/restmapper"

	"github.com/changeover-dev/changeover/discovery"
)

// The pools are small, so that words collide: plurals with singulars, kinds with guessed ones, groups with their prefixes.
var (
	poolGroups   = []string{"", "apps", "apps.example.com", "app", "example.com", "stored.example.com"}
	poolVersions = []string{"v1", "v1beta1", "v2", "v1alpha4"}
	poolKinds    = []string{"Foo", "foo", "Bar", "FooList", "List", "Policy", "Class", "Endpoints"}
	poolNames    = []string{"foos", "foo", "bars", "foolists", "lists", "list", "policies", "classes", "endpoints", "Foos"}
	poolSingular = []string{"", "", "foo", "bar", "foos", "policy", "list", "one"}
)

func pick[T any](r *rand.Rand, pool []T) T { return pool[r.Intn(len(pool))] }

// randomGroups returns discovery data as a server could send it: the core group first, at least one other.
func randomGroups(r *rand.Rand, legacy bool) []discovery.Group {
	var groups []discovery.Group
	for _, i := range r.Perm(len(poolGroups) - 1)[:1+r.Intn(3)] {
		groups = append(groups, randomGroup(r, poolGroups[i+1], legacy))
	}
	return append([]discovery.Group{randomGroup(r, "", legacy)}, groups...)
}

func randomGroup(r *rand.Rand, name string, legacy bool) discovery.Group {
	g := discovery.Group{Name: name}
	for _, i := range r.Perm(len(poolVersions))[:1+r.Intn(3)] {
		gv := discovery.GroupVersion{Version: poolVersions[i]}
		for _, n := range r.Perm(len(poolNames))[:1+r.Intn(4)] {
			gv.Resources = append(gv.Resources, discovery.Resource{
				Name: poolNames[n], Singular: pick(r, poolSingular), Kind: pick(r, poolKinds),
				Namespaced: r.Intn(2) == 0, Verbs: crdVerbs,
			})
		}
		g.Versions = append(g.Versions, gv)
	}
	g.Preferred = g.Versions[0].Version
	if legacy && name != "" {
		g.Preferred = pick(r, g.Versions).Version
	}
	return g
}

// reference is client-go's mapper over the same data.
func reference(groups []discovery.Group) meta.RESTMapper {
	var all []*clientgo.APIGroupResources
	for _, g := range groups {
		one := &clientgo.APIGroupResources{
			Group:              metav1.APIGroup{Name: g.Name, PreferredVersion: metav1.GroupVersionForDiscovery{Version: g.Preferred}},
			VersionedResources: map[string][]metav1.APIResource{},
		}
		for _, gv := range g.Versions {
			one.Group.Versions = append(one.Group.Versions, metav1.GroupVersionForDiscovery{Version: gv.Version})
			for _, r := range gv.Resources {
				one.VersionedResources[gv.Version] = append(one.VersionedResources[gv.Version], metav1.APIResource{
					Name: r.Name, SingularName: r.Singular, Kind: r.Kind, Namespaced: r.Namespaced,
				})
			}
		}
		all = append(all, one)
	}
	return clientgo.NewDiscoveryRESTMapper(all)
}

// TestSameAnswersAsClientGo asks both mappers everything that the pools can express.
func TestSameAnswersAsClientGo(t *testing.T) {
	for seed := int64(0); seed < 60; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compare(t, seed) })
	}
}

func FuzzSameAnswersAsClientGo(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) { compare(t, seed) })
}

func compare(t *testing.T, seed int64) {
	r := rand.New(rand.NewSource(seed))
	legacy := seed%2 != 0
	groups := randomGroups(r, legacy)
	s := &server{groups: groups, legacy: legacy}
	c := comparison{t: t, ours: s.mapper(t, Options{}), theirs: reference(groups)}
	for _, group := range append(slices.Clone(poolGroups), "absent.example.com") {
		for _, kind := range append(slices.Clone(poolKinds), "bar", "PolicyList", "ClassList", "Absent") {
			for _, versions := range [][]string{nil, {"v1"}, {"v2", "v1beta1"}, {""}, {"", "v1alpha4", "v1"}, {"__internal"}, {"v1", "v1"}} {
				c.kind(schema.GroupKind{Group: group, Kind: kind}, versions)
			}
		}
		for _, resource := range append(slices.Clone(poolNames), "one", "bar", "FOO", "policy", "policylists", "absent") {
			for _, version := range append(slices.Clone(poolVersions), "", "__internal") {
				c.resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
			}
			c.singular(resource)
		}
	}
}

type comparison struct {
	t      *testing.T
	ours   *Mapper
	theirs meta.RESTMapper
}

// same compares errors by what callers can branch on.
func (c comparison) same(what string, ours, theirs any, ourErr, theirErr error) {
	c.t.Helper()
	switch {
	case (ourErr == nil) != (theirErr == nil),
		meta.IsNoMatchError(ourErr) != meta.IsNoMatchError(theirErr),
		meta.IsAmbiguousError(ourErr) != meta.IsAmbiguousError(theirErr):
		c.t.Fatalf("%s: got error %v, client-go has %v", what, ourErr, theirErr)
	case meta.IsAmbiguousError(theirErr) && ourErr.Error() != theirErr.Error():
		c.t.Fatalf("%s: got error %v, client-go has %v", what, ourErr, theirErr)
	case theirErr == nil && !reflect.DeepEqual(ours, theirs):
		c.t.Fatalf("%s: got %v, client-go has %v", what, ours, theirs)
	}
}

func (c comparison) kind(gk schema.GroupKind, versions []string) {
	c.t.Helper()
	a, aErr := c.ours.RESTMapping(gk, versions...)
	b, bErr := c.theirs.RESTMapping(gk, versions...)
	c.same(fmt.Sprintf("RESTMapping(%v, %q)", gk, versions), a, b, aErr, bErr)
	var ours, theirs *meta.NoKindMatchError
	if errors.As(bErr, &theirs) && (!errors.As(aErr, &ours) || !reflect.DeepEqual(ours.GroupKind, theirs.GroupKind)) {
		c.t.Fatalf("RESTMapping(%v, %q): got error %v, client-go has %v", gk, versions, aErr, bErr)
	}
	as, aErr := c.ours.RESTMappings(gk, versions...)
	bs, bErr := c.theirs.RESTMappings(gk, versions...)
	c.same(fmt.Sprintf("RESTMappings(%v, %q)", gk, versions), as, bs, aErr, bErr)
}

func (c comparison) resource(r schema.GroupVersionResource) {
	c.t.Helper()
	kind, aErr := c.ours.KindFor(r)
	theirKind, bErr := c.theirs.KindFor(r)
	c.same(fmt.Sprintf("KindFor(%v)", r), kind, theirKind, aErr, bErr)
	kinds, aErr := c.ours.KindsFor(r)
	theirKinds, bErr := c.theirs.KindsFor(r)
	c.same(fmt.Sprintf("KindsFor(%v)", r), kinds, theirKinds, aErr, bErr)

	one, aErr := c.ours.ResourceFor(r)
	theirOne, bErr := c.theirs.ResourceFor(r)
	all, aErrs := c.ours.ResourcesFor(r)
	theirAll, bErrs := c.theirs.ResourcesFor(r)
	if isFull(r) && bErr == nil {
		// client-go walks a map and stops at the first match: any match is right.
		for name, got := range map[string]schema.GroupVersionResource{"ResourceFor": one, "ResourcesFor": firstOf(all)} {
			if !c.matches(got, r) {
				c.t.Fatalf("%s(%v): got %v, client-go has %v this time", name, r, got, theirOne)
			}
		}
		theirOne, theirAll = one, all
	}
	c.same(fmt.Sprintf("ResourceFor(%v)", r), one, theirOne, aErr, bErr)
	c.same(fmt.Sprintf("ResourcesFor(%v)", r), all, theirAll, aErrs, bErrs)
}

func firstOf(all []schema.GroupVersionResource) schema.GroupVersionResource {
	if len(all) != 1 {
		return schema.GroupVersionResource{}
	}
	return all[0]
}

// matches says that client-go knows got by the name in r, going by its answer for the group without a version, which does
// not vary.
func (c comparison) matches(got, r schema.GroupVersionResource) bool {
	all, _ := c.theirs.ResourcesFor(schema.GroupVersionResource{Group: r.Group, Resource: r.Resource})
	return got.Group == r.Group && got.Version == r.Version && slices.Contains(all, got)
}

func (c comparison) singular(resource string) {
	c.t.Helper()
	a, aErr := c.ours.ResourceSingularizer(resource)
	b, bErr := c.theirs.ResourceSingularizer(resource)
	if bErr != nil && aErr != nil && strings.Contains(aErr.Error(), "several singulars") {
		// client-go returns the error of whichever version comes last, which may be one that lacks the resource.
		aErr = bErr
	}
	c.same(fmt.Sprintf("ResourceSingularizer(%s)", resource), a, b, aErr, bErr)
	if bErr != nil && a != resource {
		c.t.Fatalf("ResourceSingularizer(%s): got %q with an error", resource, a)
	}
}
