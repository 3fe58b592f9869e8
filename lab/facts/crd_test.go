package facts

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Each subject has a group of its own, and in it one kind, Widget; its objects are cluster-scoped unless the subject is scope.
const (
	plural = "widgets"
	kind   = "Widget"

	crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

func crdName(group string) string { return plural + "." + group }

// widgets is the path of the group's objects at a version.
func widgets(group, version string) string {
	return "/apis/" + group + "/" + version + "/" + plural
}

// widget is the body of an object; fields are JSON members of its spec.
func widget(group, version, name, fields string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"%s","metadata":{"name":"%s"},"spec":{%s}}`, group, version, kind, name, fields)
}

// versions reads a short form of a CRD's versions: "v1* v1beta1 v1alpha1-" are three, of which v1 is the storage version and v1alpha1 is not
// served. All have one schema: a spec with the strings color and size.
func versions(short string) []apiextensionsv1.CustomResourceDefinitionVersion {
	var list []apiextensionsv1.CustomResourceDefinitionVersion
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	for _, word := range strings.Fields(short) {
		list = append(list, apiextensionsv1.CustomResourceDefinitionVersion{
			Name:    strings.TrimRight(word, "*-"),
			Storage: strings.Contains(word, "*"),
			Served:  !strings.Contains(word, "-"),
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"color": text, "size": text}},
				},
			}},
		})
	}
	return list
}

func newCRD(group, short string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crdName(group)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    group,
			Scope:    apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: "widget", Kind: kind, ListKind: kind + "List"},
			Versions: versions(short),
		},
	}
}

// install creates the CRD and returns when every API server serves it, says so in both forms of discovery, and has stopped to change its
// status.
func (p *plane) install(t testing.TB, c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	created, err := p.crds.Create(t.Context(), c, metav1.CreateOptions{FieldManager: "installer"})
	if err != nil {
		t.Fatal(err)
	}
	p.awaitServed(t, created)
	return p.crd(t, created.Name)
}

// widgetsAt installs the group's CRD with the versions of the short form.
func (p *plane) widgetsAt(t testing.TB, group, short string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return p.install(t, newCRD(group, short))
}

func (p *plane) crd(t testing.TB, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	c, err := p.crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// change updates the CRD of a group and waits for nothing.
func (p *plane) change(t testing.TB, group string, edit func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	c, err := p.tryChange(t.Context(), group, edit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tryChange is change for an update that may be refused. It carries on when an API server changed the status in between.
func (p *plane) tryChange(ctx context.Context, group string, edit func(*apiextensionsv1.CustomResourceDefinition)) (*apiextensionsv1.CustomResourceDefinition, error) {
	var updated *apiextensionsv1.CustomResourceDefinition
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c, err := p.crds.Get(ctx, crdName(group), metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(c)
		updated, err = p.crds.Update(ctx, c, metav1.UpdateOptions{FieldManager: "installer"})
		return err
	})
	return updated, err
}

func setVersions(short string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions = versions(short) }
}

// changeVersions sets the versions of a group's CRD and waits until every API server shows them.
func (p *plane) changeVersions(t testing.TB, group, short string) {
	t.Helper()
	p.awaitServed(t, p.change(t, group, setVersions(short)))
}

// remove deletes the group's CRD and waits until it is gone and no server serves it.
func (p *plane) remove(t testing.TB, group string) {
	t.Helper()
	c := p.crd(t, crdName(group))
	if err := p.crds.Delete(t.Context(), c.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range c.Spec.Versions {
		c.Spec.Versions[i].Served = false
	}
	p.await(t, "CRD "+c.Name+" gone", func(ctx context.Context) (string, bool) {
		_, err := p.crds.Get(ctx, c.Name, metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	p.awaitServed(t, c)
}

// awaitServed waits until every API server answers lists of exactly the served versions and shows exactly them in discovery.
func (p *plane) awaitServed(t testing.TB, c *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for i, w := range p.wires {
		p.await(t, fmt.Sprintf("API server %d serves %s as its CRD says", i, c.Name), func(ctx context.Context) (string, bool) {
			for _, v := range c.Spec.Versions {
				if seen, ok := w.serves(ctx, c, v); !ok {
					return seen, false
				}
			}
			return "", true
		})
	}
}

// serves compares one version of a CRD with what a server answers and shows.
func (w wire) serves(ctx context.Context, c *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) (seen string, ok bool) {
	group := c.Spec.Group
	list, err := w.try(ctx, request{Path: "/apis/" + group + "/" + v.Name + "/" + c.Spec.Names.Plural + "?limit=1"})
	if err != nil {
		return err.Error(), false
	}
	served := list.Body != plain404
	listed, err := w.lists(ctx, group, v.Name, c.Spec.Names.Plural)
	if err != nil {
		return err.Error(), false
	}
	seen = fmt.Sprintf("%s %s: list %d, aggregated %t, legacy %t; served: %t", group, v.Name, list.Status, listed.aggregated, listed.legacy, v.Served)
	return seen, served == v.Served && listed.aggregated == v.Served && listed.legacy == v.Served
}

// forms says which forms of discovery show a resource.
type forms struct{ aggregated, legacy bool }

func (w wire) lists(ctx context.Context, group, version, resource string) (f forms, err error) {
	doc, err := w.document(ctx)
	if err != nil {
		return f, err
	}
	f.aggregated = doc.version(group, version).serves(resource)
	// The group list knows the version, and the version's own document knows the resource.
	list, err := w.try(ctx, request{Path: "/apis", Accept: legacyForm})
	if err != nil {
		return f, err
	}
	own, err := w.try(ctx, request{Path: "/apis/" + group + "/" + version})
	if err != nil {
		return f, err
	}
	inList := strings.Contains(list.Body, `"groupVersion":"`+group+"/"+version+`"`)
	inOwn := own.Status == http.StatusOK && strings.Contains(own.Body, `"name":"`+resource+`"`)
	if inList != inOwn {
		return f, fmt.Errorf("legacy, %s/%s: in the list of groups %t, its own document %d", group, version, inList, own.Status)
	}
	f.legacy = inList
	return f, nil
}
