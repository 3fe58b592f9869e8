package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Want says what one group shall serve.
type Want struct {
	Group string
	// Served holds the plurals that each version serves. It must be all that the group serves, by whichever CRD, unless
	// Others is set; when it is empty, the group shall not be listed at all.
	Served map[string][]string
	// Gone holds, for versions that are no longer served, the plurals that must answer the plain 404 there. A version may be
	// in both when it goes away for some resources only.
	Gone map[string][]string
	// Others allows the group to serve versions and resources that are named neither in Served nor in Gone.
	Others bool
}

func validateWants(want []Want) error {
	if len(want) == 0 {
		return errors.New("await: nothing is wanted")
	}
	groups := map[string]bool{}
	for _, w := range want {
		if err := w.validate(); err != nil {
			return fmt.Errorf("await: %w", err)
		}
		if groups[w.Group] {
			return fmt.Errorf("await: group %s is named twice", w.Group)
		}
		groups[w.Group] = true
	}
	return nil
}

func (w Want) validate() error {
	if err := checkName("group", w.Group); err != nil {
		return err
	}
	for _, version := range w.versions() {
		if err := checkName("version", version); err != nil {
			return fmt.Errorf("group %s: %w", w.Group, err)
		}
		if resources, ok := w.Served[version]; ok && len(resources) == 0 {
			return fmt.Errorf("group %s, version %s: served, but without any resource", w.Group, version)
		}
		for _, resource := range slices.Concat(w.Served[version], w.Gone[version]) {
			if err := checkName("resource", resource); err != nil {
				return fmt.Errorf("group %s, version %s: %w", w.Group, version, err)
			}
			if slices.Contains(w.Served[version], resource) && slices.Contains(w.Gone[version], resource) {
				return fmt.Errorf("group %s, version %s: %s is wanted both served and gone", w.Group, version, resource)
			}
		}
	}
	return nil
}

// versions returns all that are named, sorted.
func (w Want) versions() []string {
	named := append(sortedKeys(w.Served), sortedKeys(w.Gone)...)
	slices.Sort(named)
	return slices.Compact(named)
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// compareVersions compares which versions a group has, wherever that was read.
func (w Want) compareVersions(at Difference, g Group, found bool) []Difference {
	if !found && len(w.Served) > 0 {
		at.Want, at.Have = "listed with "+strings.Join(sortedKeys(w.Served), ", "), "not listed"
		return []Difference{at}
	}
	var out []Difference
	for _, version := range sortedKeys(w.Served) {
		if _, ok := g.Version(version); !ok {
			at.Version, at.Want, at.Have = version, "listed", "not listed"
			out = append(out, at)
		}
	}
	for _, v := range g.Versions {
		_, served := w.Served[v.Version]
		if !served && !w.Others {
			at.Version, at.Want, at.Have = v.Version, "not listed", "listed"
			out = append(out, at)
		}
	}
	return out
}

// compareResources compares what a version that is there serves. A version that should not be there at all is no matter of its
// resources.
func (w Want) compareResources(at Difference, v GroupVersion) []Difference {
	at.Version = v.Version
	_, named := w.Served[v.Version]
	if !named && !w.Others {
		return nil
	}
	if named && v.State != Current {
		at.Want, at.Have = "current", v.State.String()
		return []Difference{at}
	}
	have := make([]string, 0, len(v.Resources))
	for i := range v.Resources {
		have = append(have, v.Resources[i].Name)
	}
	var out []Difference
	for _, resource := range w.Served[v.Version] {
		if !slices.Contains(have, resource) {
			at.Resource, at.Want, at.Have = resource, "listed", "not listed"
			out = append(out, at)
		}
	}
	for _, resource := range have {
		wanted := slices.Contains(w.Served[v.Version], resource)
		gone := slices.Contains(w.Gone[v.Version], resource)
		if !wanted && (gone || !w.Others) {
			at.Resource, at.Want, at.Have = resource, "not listed", "listed"
			out = append(out, at)
		}
	}
	return out
}
