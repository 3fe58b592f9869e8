package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

type definition = apiextensionsv1.CustomResourceDefinition

// newCRD makes a CRD of cluster-scoped objects from a short form of its versions: "v1alpha1- v1*" are two, of which v1 is the storage version and
// v1alpha1 is not served.
func newCRD(group, plural, versions string) *definition {
	singular := strings.TrimSuffix(plural, "s")
	kind := strings.ToUpper(singular[:1]) + singular[1:]
	c := &definition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: singular, Kind: kind, ListKind: kind + "List"},
		},
	}
	for _, word := range strings.Fields(versions) {
		c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name:    strings.TrimRight(word, "*-"),
			Storage: strings.Contains(word, "*"),
			Served:  !strings.Contains(word, "-"),
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type:       "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}},
			}},
		})
	}
	return c
}

// changed is a copy of a CRD that change was called for.
func changed(c *definition, change func(*definition)) *definition {
	c = c.DeepCopy()
	change(c)
	return c
}

// write writes CRDs as one manifest and returns its path.
func write(t testing.TB, all ...*definition) string {
	t.Helper()
	files, err := crds.Write(t.TempDir(), []crds.Provider{{Name: "crds", CRDs: all}})
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

// install creates CRDs and waits until every API server serves them.
func (p *plane) install(t testing.TB, all ...*definition) {
	t.Helper()
	for _, c := range all {
		if _, err := p.crds.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.awaitServed(t, all)
}

func (p *plane) awaitServed(t testing.TB, all []*definition) {
	t.Helper()
	for i, s := range p.Servers() {
		await(t, fmt.Sprintf("API server %d serves the CRDs", i), func(ctx context.Context) (string, bool) {
			wrong := misserved(ctx, s, all)
			return wrong, wrong == ""
		})
	}
}

// create creates an object and returns its UID.
func (p *plane) create(t testing.TB, c *definition, version, name string) string {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: c.Spec.Group, Version: version, Kind: c.Spec.Names.Kind})
	u.SetName(name)
	made, err := p.resource(c, version).Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(made.GetUID())
}

// wantObject demands an object at a version, with a UID.
func (p *plane) wantObject(t testing.TB, c *definition, version, name, uid string) {
	t.Helper()
	u, err := p.resource(c, version).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || string(u.GetUID()) != uid {
		t.Errorf("%s %s at %s: %v, %v; want UID %s", c.Name, name, version, u, err, uid)
	}
}

func (p *plane) resource(c *definition, version string) dynamic.ResourceInterface {
	return p.objects.Resource(schema.GroupVersionResource{Group: c.Spec.Group, Version: version, Resource: c.Spec.Names.Plural})
}

func (p *plane) live(t testing.TB, name string) *definition {
	t.Helper()
	c, err := p.crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
