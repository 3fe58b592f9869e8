// Package converge waits until every API server serves what the CRDs say: it finds the API servers, and says what each group
// must serve; the discovery package does the waiting.
package converge

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/changeover-dev/changeover/discovery"
	"github.com/changeover-dev/changeover/upgrade/crd"
)

// Wants says what the named groups must serve and what they must have stopped to serve. after holds all CRDs of these groups as they are
// to be, also those that the changeover does not touch, since a group is judged as a whole; before holds the
// changed ones as they were. CRDs of other groups are ignored. Groups come sorted.
func Wants(groups []string, before, after []*crd.Definition) []discovery.Want {
	wants := map[string]*discovery.Want{}
	for _, group := range groups {
		wants[group] = &discovery.Want{Group: group, Served: map[string][]string{}, Gone: map[string][]string{}}
	}
	served := map[string]map[string]bool{} // by CRD, by version
	for _, d := range after {
		want := wants[d.Typed.Spec.Group]
		// A CRD whose names are not accepted is not served, whatever it says.
		if status, _ := d.Condition(apiextensionsv1.NamesAccepted); want == nil || status == "False" {
			continue
		}
		served[d.Name()] = map[string]bool{}
		for _, version := range d.Served() {
			served[d.Name()][version] = true
			want.Served[version] = append(want.Served[version], d.Typed.Spec.Names.Plural)
		}
	}
	for _, d := range slices.Concat(before, after) {
		want := wants[d.Typed.Spec.Group]
		if want == nil || served[d.Name()] == nil {
			continue
		}
		for _, version := range slices.Concat(d.Versions(), d.Typed.Status.StoredVersions) {
			plural := d.Typed.Spec.Names.Plural
			if !served[d.Name()][version] && !slices.Contains(want.Gone[version], plural) {
				want.Gone[version] = append(want.Gone[version], plural)
			}
		}
	}
	list := make([]discovery.Want, 0, len(wants))
	for _, group := range slices.Sorted(maps.Keys(wants)) {
		list = append(list, *wants[group])
	}
	return list
}
