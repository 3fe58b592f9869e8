package upgrade

import (
	"strings"

	"github.com/changeover-dev/changeover/upgrade/access"
	"github.com/changeover-dev/changeover/upgrade/crd"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
)

// crdRules are what reading CRDs needs, and writing them when writes is set.
func crdRules(names []string, writes bool) []access.Rule {
	group, resource := crd.Resource.Group, crd.Resource.Resource
	rules := []access.Rule{
		{Group: group, Resource: resource, Verb: "list"},
		{Group: group, Resource: resource, Verb: "get", Names: names},
	}
	if writes {
		rules = append(rules, access.Rule{Group: group, Resource: resource, Verb: "update", Names: names})
	}
	return rules
}

// createRule is needed beside crdRules where a CRD is new.
func createRule() access.Rule {
	return access.Rule{Group: crd.Resource.Group, Resource: crd.Resource.Resource, Verb: "create"}
}

// controllerRules are what stopping, watching and starting Deployments needs.
func controllerRules(refs []quiesce.Ref) []access.Rule {
	byNamespace := map[string][]string{}
	var namespaces []string
	for _, r := range refs {
		if byNamespace[r.Namespace] == nil {
			namespaces = append(namespaces, r.Namespace)
		}
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r.Name)
	}
	var rules []access.Rule
	for _, ns := range namespaces {
		rules = append(rules,
			access.Rule{Group: "apps", Resource: "deployments", Verb: "get", Namespace: ns, Names: byNamespace[ns]},
			access.Rule{Group: "apps", Resource: "deployments", Verb: "patch", Namespace: ns, Names: byNamespace[ns]},
			access.Rule{Group: "apps", Resource: "replicasets", Verb: "list", Namespace: ns},
			access.Rule{Resource: "pods", Verb: "list", Namespace: ns})
	}
	return rules
}

// selectorRule is needed beside controllerRules where controllers are found by label.
func selectorRule() access.Rule {
	return access.Rule{Group: "apps", Resource: "deployments", Verb: "list"}
}

// objectRules are what proving that no object is lost needs, and, for the CRDs beside them in the same groups, what proving
// convergence needs.
func objectRules(crds, siblings []string) []access.Rule {
	var rules []access.Rule
	for _, name := range crds {
		resource, group, _ := strings.Cut(name, ".")
		rules = append(rules,
			access.Rule{Group: group, Resource: resource, Verb: "list"},
			access.Rule{Group: group, Resource: resource, Verb: "watch"})
	}
	for _, name := range siblings {
		resource, group, _ := strings.Cut(name, ".")
		rules = append(rules, access.Rule{Group: group, Resource: resource, Verb: "list"})
	}
	return rules
}
