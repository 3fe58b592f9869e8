package converge

import (
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/changeover-dev/changeover/discovery"
	"github.com/changeover-dev/changeover/upgrade/crd"
)

// definition serves the versions that don't begin with "-".
func definition(plural, group string, versions ...string) *crd.Definition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
	d.Spec.Group, d.Spec.Names.Plural = group, plural
	for _, v := range versions {
		served := v[0] != '-'
		if !served {
			v = v[1:]
		}
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: served})
	}
	return &crd.Definition{Typed: d}
}

func TestWants(t *testing.T) {
	trimmedAway := definition("gears", "a.io", "v1")
	trimmedAway.Typed.Status.StoredVersions = []string{"v1alpha1", "v1"}
	refused := definition("ghosts", "a.io", "v1")
	refused.Typed.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.NamesAccepted, Status: "False"}}

	got := Wants([]string{"b.io", "a.io"},
		[]*crd.Definition{definition("widgets", "a.io", "v1alpha3", "v1alpha4", "v1beta1")},
		[]*crd.Definition{
			definition("widgets", "a.io", "-v1alpha4", "v1beta1"), // v1alpha3 is gone altogether
			definition("gadgets", "a.io", "v1alpha4"),             // a sibling that still serves it
			trimmedAway, refused,
			definition("bolts", "b.io", "-v1"), // a group that serves nothing
			definition("others", "c.io", "v1"),
		})
	want := []discovery.Want{
		{Group: "a.io",
			Served: map[string][]string{"v1beta1": {"widgets"}, "v1alpha4": {"gadgets"}, "v1": {"gears"}},
			Gone:   map[string][]string{"v1alpha3": {"widgets"}, "v1alpha4": {"widgets"}, "v1alpha1": {"gears"}}},
		{Group: "b.io", Served: map[string][]string{}, Gone: map[string][]string{"v1": {"bolts"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseAddress(t *testing.T) {
	for s, want := range map[string]Address{
		"https://10.0.0.1:6443":      {Name: "10.0.0.1:6443", URL: "https://10.0.0.1:6443"},
		"a=https://10.0.0.1:6443":    {Name: "a", URL: "https://10.0.0.1:6443"},
		"https://host/path?x=y":      {Name: "host", URL: "https://host/path?x=y"},
		"left=http://127.0.0.1:8080": {Name: "left", URL: "http://127.0.0.1:8080"},
	} {
		if got, err := ParseAddress(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "10.0.0.1:6443", "a=", "a=b", "ftp://x"} {
		if got, err := ParseAddress(s); err == nil {
			t.Errorf("%q is taken: %+v", s, got)
		}
	}
}
