package facts

import (
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// otherScope pins which paths exist before and after a CRD was deleted and created anew with another scope: the scope of a mapping
// that is out of date shows as a plain 404 (design M4).
func otherScope(t *testing.T, p *plane) {
	const group = "scope.facts.example.com"
	all, one := widgets(group, "v1"), "/apis/"+group+"/v1/namespaces/default/"+plural
	namespaced := newCRD(group, "v1*")
	namespaced.Spec.Scope = apiextensionsv1.NamespaceScoped
	p.install(t, namespaced)
	body := widget(group, "v1", "w", "")

	t.Run("namespaced: objects lie below the namespace, lists work with and without one", func(t *testing.T) {
		p.first().must(t, apply("somebody", one+"/w", body))
		for path, want := range map[string]int{one: 200, all: 200, one + "/w": 200} {
			if a := p.first().get(t, path); a.Status != want {
				t.Errorf("%s: %v; want %d", path, a, want)
			}
		}
	})
	t.Run("namespaced: an object without its namespace is the plain 404", func(t *testing.T) {
		wantPlain404(t, p.first().get(t, all+"/w"))
		wantPlain404(t, p.first().send(t, post(all, body)))
		wantPlain404(t, p.first().send(t, mergePatch(all+"/w", "{}")))
	})
	t.Run("the scope of a CRD that exists cannot be changed", func(t *testing.T) {
		_, err := p.tryChange(t.Context(), group, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Scope = apiextensionsv1.ClusterScoped })
		wantError(t, err, "spec.scope: Invalid value", "field is immutable")
	})

	p.remove(t, group)
	p.widgetsAt(t, group, "v1*")
	t.Run("cluster-scoped: every path with a namespace is the plain 404", func(t *testing.T) {
		for _, w := range p.wires {
			wantPlain404(t, w.get(t, one))
			wantPlain404(t, w.get(t, one+"/w"))
			wantPlain404(t, w.send(t, post(one, body)))
		}
	})
	t.Run("cluster-scoped: the objects are gone with the old CRD", func(t *testing.T) {
		wantStatus(t, p.first().get(t, all+"/w"), 404, "NotFound")
		p.first().must(t, apply("somebody", all+"/w", body))
		if a := p.first().get(t, all+"/w"); a.Status != http.StatusOK {
			t.Errorf("%v", a)
		}
	})
	t.Run("discovery shows the new scope", func(t *testing.T) {
		for _, w := range p.wires {
			doc, err := w.document(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v := doc.version(group, "v1")
			if len(v.Resources) != 1 || v.Resources[0].Scope != "Cluster" {
				t.Errorf("%+v; want widgets with the scope Cluster", v)
			}
		}
	})
}
