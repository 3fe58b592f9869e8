package discovery

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// wireGroup is one group of an aggregated document, v2 and v2beta1 alike. Subresources and whatever else there is are skipped.
type wireGroup struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Versions []wireVersion `json:"versions"`
}

type wireVersion struct {
	Version   string         `json:"version"`
	Freshness string         `json:"freshness"`
	Resources []wireResource `json:"resources"`
}

type wireResource struct {
	Resource     string `json:"resource"`
	ResponseKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"responseKind"`
	Scope            string   `json:"scope"`
	SingularResource string   `json:"singularResource"`
	Verbs            []string `json:"verbs"`
	ShortNames       []string `json:"shortNames"`
	Categories       []string `json:"categories"`
}

// aggregatedForm returns the aggregated form in which a successful answer came, or empty for anything else.
func (a *answer) aggregatedForm() Form {
	if a.params["g"] != "apidiscovery.k8s.io" || a.params["as"] != "APIGroupDiscoveryList" {
		return ""
	}
	switch a.params["v"] {
	case "v2":
		return AggregatedV2
	case "v2beta1":
		return AggregatedV2Beta1
	}
	return ""
}

// parseAggregated reads an aggregated document. A group that stands there exactly as it stood in prev, byte for byte, is taken
// from prev: splitting the document costs a fraction of decoding it, and the two snapshots share the memory.
func parseAggregated(a *answer, form Form, prev document) (document, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(a.body, &list); err != nil {
		return document{}, a.problem("answered with malformed JSON", err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return document{}, a.problem(fmt.Sprintf("answered with kind %q instead of APIGroupDiscoveryList", list.Kind), nil)
	}
	if len(list.Items) == 0 {
		return document{}, a.problem("answered with an empty list of groups", nil)
	}
	doc := document{
		form: form, etag: a.etag,
		groups: make([]Group, len(list.Items)),
		sums:   make([][sha256.Size]byte, len(list.Items)),
	}
	names, known := newInterner(), prev.bySum()
	for i, raw := range list.Items {
		doc.sums[i] = sha256.Sum256(raw)
		if at, ok := known[doc.sums[i]]; ok {
			doc.groups[i] = prev.groups[at]
			continue
		}
		var g wireGroup
		if err := json.Unmarshal(raw, &g); err != nil {
			return document{}, a.problem(fmt.Sprintf("answered with a malformed group, number %d", i+1), err)
		}
		group, err := g.group(names)
		if err != nil {
			return document{}, a.problem(fmt.Sprintf("answered with a malformed group, number %d", i+1), err)
		}
		doc.groups[i] = group
	}
	return doc, nil
}

func (g *wireGroup) group(names *interner) (Group, error) {
	out := Group{Name: names.one(g.Metadata.Name), Versions: make([]GroupVersion, 0, len(g.Versions))}
	for i := range g.Versions {
		w := &g.Versions[i]
		if w.Version == "" {
			return Group{}, fmt.Errorf("group %q has a version without a name", g.Metadata.Name)
		}
		v := GroupVersion{Version: names.one(w.Version), Resources: make([]Resource, 0, len(w.Resources))}
		for j := range w.Resources {
			if r, ok := w.Resources[j].resource(out.Name, v.Version, names); ok {
				v.Resources = append(v.Resources, r)
			}
		}
		if w.Freshness == "Stale" {
			v.State, v.Reason = Stale, ErrStale
			if len(v.Resources) == 0 {
				v.State = Unavailable
			}
		}
		out.Versions = append(out.Versions, v)
	}
	if len(out.Versions) > 0 {
		out.Preferred = out.Versions[0].Version
	}
	return out, nil
}

// resource reports false for an entry without a kind, which exists only to carry subresources.
func (w *wireResource) resource(group, version string, names *interner) (Resource, bool) {
	if w.Resource == "" || w.ResponseKind.Kind == "" {
		return Resource{}, false
	}
	r := Resource{
		Name: names.one(w.Resource), Singular: names.one(w.SingularResource), Kind: names.one(w.ResponseKind.Kind),
		Group: group, Version: version,
		Namespaced: w.Scope == "Namespaced",
		Verbs:      names.list(w.Verbs), ShortNames: names.list(w.ShortNames), Categories: names.list(w.Categories),
	}
	r.setKindVersion(w.ResponseKind.Group, w.ResponseKind.Version, names)
	return r, true
}

// setKindVersion records the group-version of the kind where the server names one. Group and version go together: an empty
// group beside a version is the core group, as for Scale or Eviction of old.
func (r *Resource) setKindVersion(group, version string, names *interner) {
	if version != "" {
		r.Group, r.Version = names.one(group), names.one(version)
	}
}

// interner makes equal strings and lists of one document share their memory: a thousand custom resources have the same eight
// verbs.
type interner struct {
	strings map[string]string
	lists   map[string][]string
}

func newInterner() *interner {
	return &interner{strings: map[string]string{}, lists: map[string][]string{}}
}

func (n *interner) one(s string) string {
	if have, ok := n.strings[s]; ok {
		return have
	}
	n.strings[s] = s
	return s
}

// list returns nil for an empty list.
func (n *interner) list(l []string) []string {
	if len(l) == 0 {
		return nil
	}
	key := strings.Join(l, "\x00")
	if have, ok := n.lists[key]; ok {
		return have
	}
	own := make([]string, len(l))
	for i := range l {
		own[i] = n.one(l[i])
	}
	n.lists[key] = own
	return own
}
