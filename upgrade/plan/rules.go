package plan

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/changeover-dev/changeover/upgrade/crd"
)

const fixManifest = "correct the manifest; nothing was changed"

// wellFormed finds what is wrong with a wanted CRD by itself.
func wellFormed(w *crd.Definition) []Finding {
	var found []Finding
	against := func(format string, args ...any) {
		found = append(found, Finding{Reason: fmt.Sprintf(format, args...), WayOut: fixManifest})
	}
	spec := w.Typed.Spec
	if spec.Group == "" || spec.Names.Plural == "" || spec.Names.Kind == "" {
		against("spec.group, spec.names.plural and spec.names.kind must all be set")
	} else if want := spec.Names.Plural + "." + spec.Group; w.Name() != want {
		against("the name does not match spec.names.plural and spec.group, which make %s", want)
	}
	if spec.Scope != apiextensionsv1.NamespaceScoped && spec.Scope != apiextensionsv1.ClusterScoped {
		against("spec.scope is %q, neither Namespaced nor Cluster", spec.Scope)
	}
	if len(spec.Versions) == 0 {
		against("it has no versions")
		return found
	}
	seen := map[string]bool{}
	for _, v := range spec.Versions {
		switch {
		case v.Name == "":
			against("a version has no name")
		case seen[v.Name]:
			against("version %s is listed twice", v.Name)
		}
		seen[v.Name] = true
	}
	switch storage := w.Storage(); len(storage) {
	case 0:
		against("no version is the storage version; exactly one must be")
	case 1:
	default:
		against("%s are all storage versions; exactly one must be", strings.Join(storage, ", "))
	}
	return found
}

// healthy finds what keeps a live CRD from being updated at all.
func healthy(l *crd.Definition) []Finding {
	var found []Finding
	if l.Typed.DeletionTimestamp != nil {
		found = append(found, Finding{
			Reason: fmt.Sprintf("the live CRD is being deleted since %s", l.Typed.DeletionTimestamp.UTC().Format("2006-01-02 15:04:05 MST")),
			WayOut: "let the deletion end (its objects' finalizers hold it), then run again: the CRD is created anew"})
	}
	if status, message := l.Condition(apiextensionsv1.NamesAccepted); status == "False" {
		found = append(found, Finding{
			Reason: "the live CRD's names are not accepted, so it is not fully served: " + message,
			WayOut: "remove the CRD that holds the same names, or give this one others"})
	}
	return found
}

// reachable finds why one update cannot lead from the live to the wanted CRD.
func reachable(l, w *crd.Definition) []Finding {
	var found []Finding
	against := func(wayOut, format string, args ...any) {
		found = append(found, Finding{Reason: fmt.Sprintf(format, args...), WayOut: wayOut})
	}
	from, to := l.Typed.Spec, w.Typed.Spec
	const anew = "a CRD cannot change this in place: ship it under a new group or kind and move the objects, or save them, delete the CRD and its objects, and create both anew"
	if from.Scope != to.Scope {
		against(anew, "the scope would change from %s to %s", from.Scope, to.Scope)
	}
	if from.Names.Kind != to.Names.Kind {
		against(anew, "the kind would change from %s to %s", from.Names.Kind, to.Names.Kind)
	}
	if from.Group != to.Group || from.Names.Plural != to.Names.Plural {
		against(anew, "the resource would change from %s.%s to %s.%s", from.Names.Plural, from.Group, to.Names.Plural, to.Group)
	}
	if from.PreserveUnknownFields {
		against("name every field that must survive in the new schema, or mark its root with x-kubernetes-preserve-unknown-fields: true, and set spec.preserveUnknownFields: false on the live CRD first",
			"the live CRD keeps unknown fields (spec.preserveUnknownFields: true); the new one would prune them from stored objects")
	}
	if len(to.Versions) == 0 {
		return found
	}
	storage := first(l.Storage())
	for _, v := range storedVersions(l) {
		if slices.Contains(w.Versions(), v) {
			continue
		}
		reason := "objects may still be stored in version %s, which the new CRD does not have"
		if v == storage {
			reason = "%s is the version in which objects are stored now, and the new CRD does not have it"
		}
		against(bridgeHint(v, w), reason, v)
	}
	return found
}

// storedVersions gives status.storedVersions and the current storage version, which belongs there but may be missing
// from a status that somebody edited.
func storedVersions(l *crd.Definition) []string {
	stored := slices.Clone(l.Typed.Status.StoredVersions)
	for _, v := range l.Storage() {
		if !slices.Contains(stored, v) {
			stored = append(stored, v)
		}
	}
	return stored
}

func bridgeHint(v string, w *crd.Definition) string {
	return fmt.Sprintf("go over a CRD that has %s with served: false beside the new versions; rewrite every object of %s once it is the live one, take %s out of status.storedVersions, and run this again",
		v, w.Name(), v)
}
