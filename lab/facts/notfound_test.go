package facts

import (
	"context"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// notFound pins how "no such resource" and "no such object" differ on the wire. Evidence by 404 (design M8) and convergence (D6) rest on it.
func notFound(t *testing.T, p *plane) {
	const group, namespacedGroup = "notfound.facts.example.com", "namespaced.notfound.facts.example.com"
	p.widgetsAt(t, group, "v1* v1beta1")
	namespaced := newCRD(namespacedGroup, "v1* v1beta1")
	namespaced.Spec.Scope = apiextensionsv1.NamespaceScoped
	p.install(t, namespaced)
	p.changeVersions(t, group, "v1* v1beta1-")
	p.changeVersions(t, namespacedGroup, "v1* v1beta1-")

	for name, resource := range map[string]string{
		"an un-served version":                 widgets(group, "v1beta1"),
		"an un-served version, all namespaces": widgets(namespacedGroup, "v1beta1"),
		"an un-served version, one namespace":  "/apis/" + namespacedGroup + "/v1beta1/namespaces/default/widgets",
		"an unknown version":                   widgets(group, "v7"),
		"an unknown plural":                    "/apis/" + group + "/v1/gadgets",
		"an unknown plural, one namespace":     "/apis/" + group + "/v1/namespaces/default/gadgets",
		"an unknown group":                     widgets("unknown.facts.example.com", "v1"),
		"an unknown group, one namespace":      "/apis/unknown.facts.example.com/v1/namespaces/default/widgets",
	} {
		t.Run(name+" is the plain 404, whatever the verb", func(t *testing.T) {
			for _, r := range everyVerb(resource) {
				wantPlain404(t, p.first().send(t, r))
			}
		})
	}
	t.Run("built-in groups answer a Status without details instead", func(t *testing.T) {
		for _, resource := range []string{"/apis/apps/v1beta1/deployments", "/apis/apps/v1/gadgets", "/api/v1/gadgets", "/api/v1/namespaces/default/gadgets", "/api/v2/pods"} {
			for _, r := range everyVerb(resource) {
				wantNoSuchResource(t, p.first().send(t, r))
			}
		}
	})

	t.Run("discovery of an un-served version or an unknown group is the plain 404", func(t *testing.T) {
		for _, path := range []string{"/apis/" + group + "/v1beta1", "/apis/" + group + "/v7", "/apis/unknown.facts.example.com", "/apis/unknown.facts.example.com/v1"} {
			wantPlain404(t, p.first().get(t, path))
		}
	})
	t.Run("the plain 404 stays plain text when the client accepts something else", func(t *testing.T) {
		for _, accept := range []string{
			jsonType,
			"application/vnd.kubernetes.protobuf,application/json",
			"application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		} {
			wantPlain404(t, p.first().send(t, request{Path: widgets(group, "v1beta1"), Accept: accept}))
		}
	})
	absentObjects(t, p, group, namespacedGroup)
	clientGo(t, p, group)
	t.Run("a CRD whose names are taken is the plain 404, and discovery does not show it", func(t *testing.T) { namesTaken(t, p, group) })
	t.Run("a deleted CRD is the plain 404", func(t *testing.T) {
		p.remove(t, group)
		for _, w := range p.wires {
			wantPlain404(t, w.get(t, widgets(group, "v1")))
		}
	})
}

func absentObjects(t *testing.T, p *plane, group, namespacedGroup string) {
	t.Run("an absent object is a Status", func(t *testing.T) {
		wantStatus(t, p.first().get(t, widgets(group, "v1")+"/absent"), 404, "NotFound", `widgets.notfound.facts.example.com "absent" not found`)
		wantStatus(t, p.first().send(t, request{Method: http.MethodDelete, Path: widgets(group, "v1") + "/absent"}), 404, "NotFound")
		wantStatus(t, p.first().send(t, mergePatch(widgets(group, "v1")+"/absent", "{}")), 404, "NotFound")
		wantStatus(t, p.first().get(t, "/api/v1/namespaces/default/configmaps/absent"), 404, "NotFound")
	})
	t.Run("an absent subresource is a Status", func(t *testing.T) {
		wantStatus(t, p.first().get(t, widgets(group, "v1")+"/absent/status"), 404, "NotFound")
	})
	t.Run("a list in an absent namespace is empty", func(t *testing.T) {
		// With a limit: without one, a list soon after a change of the CRD may be a 429, see awaitReinitializing.
		if a := p.first().get(t, "/apis/"+namespacedGroup+"/v1/namespaces/absent/widgets?limit=1"); a.Status != http.StatusOK {
			t.Errorf("%v; want 200", a)
		}
	})
}

func clientGo(t *testing.T, p *plane, group string) {
	t.Run("client-go reports the plain 404 as a NotFound that does not tell the two apart", func(t *testing.T) {
		client, err := dynamic.NewForConfig(p.Config())
		if err != nil {
			t.Fatal(err)
		}
		resource := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: plural})
		_, err = resource.Get(t.Context(), "some", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "the server could not find the requested resource") {
			t.Errorf("%v; want a NotFound: the server could not find the requested resource", err)
		}
	})
}

// everyVerb lists requests of every kind for a resource.
func everyVerb(resource string) []request {
	object := resource + "/some"
	return []request{
		{Path: resource},
		{Path: resource + "?limit=1"},
		{Path: resource + "?watch=true&timeoutSeconds=5"},
		{Path: object},
		{Path: object + "/status"},
		{Method: http.MethodDelete, Path: object},
		{Method: http.MethodDelete, Path: resource},
		post(resource, `{"metadata":{"name":"some"}}`),
		put(object, `{"metadata":{"name":"some"}}`),
		mergePatch(object, "{}"),
		apply("somebody", object, `{"metadata":{"name":"some"}}`),
	}
}

// namesTaken creates a second CRD in the group that wants the kind of the first.
func namesTaken(t *testing.T, p *plane, group string) {
	c := newCRD(group, "v1*")
	c.Name, c.Spec.Names.Plural, c.Spec.Names.Singular = "gizmos."+group, "gizmos", "gizmo"
	p.deleteAfter(t, crdsPath+"/"+c.Name)
	if _, err := p.crds.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await(t, "condition NamesAccepted=False", func(context.Context) (string, bool) {
		for _, condition := range p.crd(t, c.Name).Status.Conditions {
			if condition.Type == apiextensionsv1.NamesAccepted {
				return string(condition.Status), condition.Status == apiextensionsv1.ConditionFalse
			}
		}
		return "no such condition", false
	})
	wantPlain404(t, p.first().get(t, "/apis/"+group+"/v1/gizmos"))
	doc, err := p.first().document(t.Context())
	if err != nil || doc.version(group, "v1").serves("gizmos") {
		t.Errorf("the aggregated document: %+v, %v; want it without gizmos", doc.versionsOf(group), err)
	}
	if own := p.first().get(t, "/apis/"+group+"/v1"); strings.Contains(own.Body, "gizmos") {
		t.Errorf("the legacy document shows it: %v", own)
	}
}
