// Package crd holds one CustomResourceDefinition in the two views that a changeover needs: as it was read, with every
// field, and typed, for decisions.
package crd

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is where CustomResourceDefinitions are read and written.
var Resource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Definition is one CustomResourceDefinition. It is read-only after Parse and may then be shared.
type Definition struct {
	// Source says where it was read: a file with the document's number, or "the cluster".
	Source string
	// Object is what is sent to the API server. It keeps the fields that the typed view does not know, so that a newer
	// Kubernetes loses nothing through an older command.
	Object *unstructured.Unstructured
	// Typed is the same object for decisions; never sent.
	Typed *apiextensionsv1.CustomResourceDefinition
}

// Parse gives an object its typed view. It checks types only; what the values mean is the planner's business. The
// object is kept, not copied.
func Parse(object *unstructured.Unstructured, source string) (*Definition, error) {
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("crd %s: %w", object.GetName(), err)
	}
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, typed); err != nil {
		return nil, fmt.Errorf("crd %s: %w", object.GetName(), err)
	}
	return &Definition{Source: source, Object: object, Typed: typed}, nil
}

// Name is the object's name, which the API server wants to be plural.group.
func (d *Definition) Name() string { return d.Typed.Name }

// Versions names every version in the definition's own order, served or not.
func (d *Definition) Versions() []string {
	return d.versions(func(apiextensionsv1.CustomResourceDefinitionVersion) bool { return true })
}

// Served names the served versions in the definition's own order.
func (d *Definition) Served() []string {
	return d.versions(func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
}

// Storage names the versions that are marked as storage; a legal definition has exactly one.
func (d *Definition) Storage() []string {
	return d.versions(func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
}

func (d *Definition) versions(keep func(apiextensionsv1.CustomResourceDefinitionVersion) bool) []string {
	var names []string
	for _, v := range d.Typed.Spec.Versions {
		if keep(v) {
			names = append(names, v.Name)
		}
	}
	return names
}

// Condition gives the status of one condition ("True", "False", "Unknown") and its message; "" where the object has none.
func (d *Definition) Condition(t apiextensionsv1.CustomResourceDefinitionConditionType) (status, message string) {
	for _, c := range d.Typed.Status.Conditions {
		if c.Type == t {
			return string(c.Status), c.Message
		}
	}
	return "", ""
}
