package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
)

// wireGroupEntry is a group in legacy form: its versions without their resources.
type wireGroupEntry struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Versions []struct {
		Version string `json:"version"`
	} `json:"versions"`
	PreferredVersion struct {
		Version string `json:"version"`
	} `json:"preferredVersion"`
}

type wireLegacyResource struct {
	Name         string   `json:"name"`
	SingularName string   `json:"singularName"`
	Namespaced   bool     `json:"namespaced"`
	Group        string   `json:"group"`
	Version      string   `json:"version"`
	Kind         string   `json:"kind"`
	Verbs        []string `json:"verbs"`
	ShortNames   []string `json:"shortNames"`
	Categories   []string `json:"categories"`
}

// group returns the entry with every version unread.
func (e *wireGroupEntry) group() (Group, error) {
	g := Group{Name: e.Name, Preferred: e.PreferredVersion.Version, Versions: make([]GroupVersion, 0, len(e.Versions))}
	for _, v := range e.Versions {
		if v.Version == "" {
			return Group{}, fmt.Errorf("group %q has a version without a name", e.Name)
		}
		g.Versions = append(g.Versions, GroupVersion{Version: v.Version, State: Unavailable, Reason: ErrNotRead})
	}
	if g.Preferred == "" && len(g.Versions) > 0 {
		g.Preferred = g.Versions[0].Version
	}
	return g, nil
}

// parseGroupList reads /apis in legacy form.
func parseGroupList(a *answer) (document, error) {
	var list struct {
		Kind   string           `json:"kind"`
		Groups []wireGroupEntry `json:"groups"`
	}
	if err := a.decode(&list, &list.Kind, "APIGroupList"); err != nil {
		return document{}, err
	}
	if len(list.Groups) == 0 {
		return document{}, a.problem("answered with an empty list of groups", nil)
	}
	doc := document{form: Legacy, groups: make([]Group, len(list.Groups))}
	for i := range list.Groups {
		g, err := list.Groups[i].group()
		if err != nil {
			return document{}, a.problem("answered with a malformed group", err)
		}
		doc.groups[i] = g
	}
	return doc, nil
}

// parseCoreVersions reads /api in legacy form.
func parseCoreVersions(a *answer) (document, error) {
	var list struct {
		Kind     string   `json:"kind"`
		Versions []string `json:"versions"`
	}
	if err := a.decode(&list, &list.Kind, "APIVersions"); err != nil {
		return document{}, err
	}
	if len(list.Versions) == 0 {
		return document{}, a.problem("answered with an empty list of versions", nil)
	}
	var e wireGroupEntry
	for _, v := range list.Versions {
		e.Versions = append(e.Versions, struct {
			Version string `json:"version"`
		}{v})
	}
	g, err := e.group()
	if err != nil {
		return document{}, a.problem("answered with a malformed list", err)
	}
	return document{form: Legacy, groups: []Group{g}}, nil
}

// parseGroupEntry reads /apis/<group>.
func parseGroupEntry(a *answer, group string) (Group, error) {
	var e wireGroupEntry
	if err := a.decode(&e, &e.Kind, "APIGroup"); err != nil {
		return Group{}, err
	}
	if e.Name != group {
		return Group{}, a.problem(fmt.Sprintf("answered with the group %q instead", e.Name), nil)
	}
	g, err := e.group()
	if err != nil {
		return Group{}, a.problem("answered with a malformed group", err)
	}
	return g, nil
}

// parseResources reads the document of one group-version. A list without any resource is what servers answer that are not
// ready, so it is an error, too.
func parseResources(a *answer, group, version string) ([]Resource, error) {
	var list struct {
		Kind         string               `json:"kind"`
		GroupVersion string               `json:"groupVersion"`
		Resources    []wireLegacyResource `json:"resources"`
	}
	if err := a.decode(&list, &list.Kind, "APIResourceList"); err != nil {
		return nil, err
	}
	if gv := groupVersion(group, version); list.GroupVersion != gv {
		return nil, a.problem(fmt.Sprintf("answered with the group-version %q instead", list.GroupVersion), nil)
	}
	if len(list.Resources) == 0 {
		return nil, a.problem("answered with an empty list of resources", nil)
	}
	names := newInterner()
	out := make([]Resource, 0, len(list.Resources))
	for i := range list.Resources {
		w := &list.Resources[i]
		if w.Name == "" || w.Kind == "" || strings.Contains(w.Name, "/") {
			// A subresource, or the bare carrier of some.
			continue
		}
		r := Resource{
			Name: w.Name, Singular: w.SingularName, Kind: w.Kind, Group: group, Version: version,
			Namespaced: w.Namespaced,
			Verbs:      names.list(w.Verbs), ShortNames: names.list(w.ShortNames), Categories: names.list(w.Categories),
		}
		r.setKindVersion(w.Group, w.Version, names)
		out = append(out, r)
	}
	return out, nil
}

// decode parses the body into v and insists on its kind.
func (a *answer) decode(v any, kind *string, want string) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return a.problem("answered with malformed JSON", err)
	}
	if *kind != want {
		return a.problem(fmt.Sprintf("answered with kind %q instead of %s", *kind, want), nil)
	}
	return nil
}

// status is what API servers say in JSON when something is wrong.
type status struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

func (a *answer) statusObject() (status, bool) {
	var s status
	if a.mediaType != "application/json" || json.Unmarshal(a.body, &s) != nil {
		return status{}, false
	}
	return s, s.Kind == "Status"
}

// groupPath returns where a group, or one of its versions, lies.
func groupPath(group string, more ...string) string {
	parts := append([]string{groupsPath, group}, more...)
	if group == "" {
		parts = append([]string{corePath}, more...)
	}
	return strings.Join(parts, "/")
}

func groupVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// checkName refuses what cannot be one segment of a path, so that no caller's input leads a request elsewhere.
func checkName(what, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/?#%\\ ") {
		return fmt.Errorf("%s name %q is not one that an API server could serve", what, name)
	}
	return nil
}
