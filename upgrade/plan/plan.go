// Package plan decides whether and how the CRDs of a cluster get to what is wanted. It is pure: values in, values out,
// no cluster, so that every case is a table and a release can be judged where no cluster is.
//
// For now a plan is one stage: all CRDs are updated at once while their controllers are down. What cannot be done in
// one legal step is refused, with the reason and the way out.
package plan

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/changeover-dev/changeover/upgrade/crd"
)

// Action is what becomes of one CRD.
type Action string

// The actions. Unchanged is never decided here: only the API server's own defaulting, seen in a dry run, tells it.
const (
	Create    Action = "create"
	Update    Action = "update"
	Unchanged Action = "unchanged"
)

// Change is what one CRD goes through. Version lists are in the definitions' own order.
type Change struct {
	Name       string `json:"name"`
	Group      string `json:"group"`
	Plural     string `json:"resource"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	Action     Action `json:"action"`

	Served  []string `json:"served"`            // after the change
	Starts  []string `json:"starts,omitempty"`  // served after, not before
	Stops   []string `json:"stops,omitempty"`   // served before, not after; still in the definition or not
	Removed []string `json:"removed,omitempty"` // no longer in the definition at all

	StorageBefore string `json:"storageBefore,omitempty"` // "" for a new CRD
	StorageAfter  string `json:"storageAfter"`
	// Untrimmed are the stored versions that stay in status.storedVersions beside the storage version: objects may
	// still lie in them.
	Untrimmed []string `json:"untrimmed,omitempty"`
	// Conversion is set where the strategy changes: "Webhook -> None".
	Conversion string `json:"conversion,omitempty"`
}

// Plan is one stage: every change of it happens between quiesce and converge.
type Plan struct {
	Changes []Change
}

// Make plans all wanted CRDs against the live ones, by name. A nil error means that every change is a single step
// which the API server accepts as far as these rules know, and after which every stored object is still readable.
// Otherwise the error is a *Refusal that holds every finding, not only the first.
func Make(wanted []*crd.Definition, live map[string]*crd.Definition) (*Plan, error) {
	p := &Plan{}
	refusal := &Refusal{}
	for _, w := range wanted {
		refusal.add(w, wellFormed(w)...)
		if l := live[w.Name()]; l != nil {
			refusal.add(w, healthy(l)...)
			refusal.add(w, reachable(l, w)...)
		}
		if len(refusal.Findings) == 0 {
			p.Changes = append(p.Changes, change(live[w.Name()], w))
		}
	}
	if len(refusal.Findings) > 0 {
		return nil, refusal
	}
	return p, nil
}

// Check judges the wanted CRDs by themselves, before any cluster is asked. The error is a *Refusal.
func Check(wanted []*crd.Definition) error {
	_, err := Make(wanted, nil)
	return err
}

// change says what happens between two definitions that are already found legal; live is nil for a new CRD.
func change(live, wanted *crd.Definition) Change {
	spec := wanted.Typed.Spec
	c := Change{
		Name: wanted.Name(), Group: spec.Group, Plural: spec.Names.Plural, Kind: spec.Names.Kind,
		Namespaced: spec.Scope == apiextensionsv1.NamespaceScoped,
		Action:     Create, Served: wanted.Served(), Starts: wanted.Served(), StorageAfter: wanted.Storage()[0],
	}
	if live == nil {
		return c
	}
	c.Action = Update
	c.Starts = without(wanted.Served(), live.Served())
	c.Stops = without(live.Served(), wanted.Served())
	c.Removed = without(live.Versions(), wanted.Versions())
	c.StorageBefore = first(live.Storage())
	// The API server adds the new storage version to the stored ones by itself, at the update.
	c.Untrimmed = without(live.Typed.Status.StoredVersions, []string{c.StorageAfter})
	if before, after := strategy(live), strategy(wanted); before != after {
		c.Conversion = before + " -> " + after
	}
	return c
}

func strategy(d *crd.Definition) string {
	if d.Typed.Spec.Conversion == nil || d.Typed.Spec.Conversion.Strategy == "" {
		return string(apiextensionsv1.NoneConverter)
	}
	return string(d.Typed.Spec.Conversion.Strategy)
}

// without gives the elements of list that are not in others, in list's order.
func without(list, others []string) []string {
	var rest []string
	for _, s := range list {
		if !slices.Contains(others, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
