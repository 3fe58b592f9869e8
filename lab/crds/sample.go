package crds

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sample returns an object of the CRD at a version, with no more in it than the schema requires, so that every kind of a release can
// have objects on a lab. A namespaced object has no namespace yet. Values that a pattern restricts beyond what an enum, a default or an
// example would tell are guessed; the API server has the last word.
func Sample(crd *apiextensionsv1.CustomResourceDefinition, version, name string) (*unstructured.Unstructured, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil, fmt.Errorf("crd %s: no version %s to make a sample of", crd.Name, version)
	}
	object := map[string]any{}
	if v := crd.Spec.Versions[i].Schema; v != nil && v.OpenAPIV3Schema != nil {
		if root, ok := least(v.OpenAPIV3Schema).(map[string]any); ok {
			object = root
		}
		// Most kinds require nothing and yet are nothing without a spec.
		if spec, ok := v.OpenAPIV3Schema.Properties["spec"]; ok && object["spec"] == nil {
			object["spec"] = least(&spec)
		}
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind})
	u.SetName(name)
	return u, nil
}

// least is the smallest value that a schema allows, as far as its fields say it.
func least(s *apiextensionsv1.JSONSchemaProps) any {
	if len(s.Enum) > 0 {
		return string(trimQuotes(s.Enum[0].Raw))
	}
	switch s.Type {
	case "object":
		m := map[string]any{}
		for _, field := range s.Required {
			if p, ok := s.Properties[field]; ok {
				m[field] = least(&p)
			}
		}
		return m
	case "array":
		a := []any{}
		if s.MinItems != nil && s.Items != nil && s.Items.Schema != nil {
			for range *s.MinItems {
				a = append(a, least(s.Items.Schema))
			}
		}
		return a
	case "integer", "number":
		if s.Minimum != nil {
			return int64(*s.Minimum)
		}
		return int64(0)
	case "boolean":
		return false
	}
	return leastString(s)
}

func leastString(s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case s.XIntOrString:
		return int64(0)
	case s.Format == "date-time":
		return "2024-01-01T00:00:00Z"
	case s.Format == "duration":
		return "1s"
	}
	// Long enough for any minLength that real CRDs ask for, and a DNS label.
	if s.MaxLength != nil && *s.MaxLength < 6 {
		return "sample"[:*s.MaxLength]
	}
	return "sample"
}

func trimQuotes(raw []byte) []byte {
	if len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' {
		return raw[1 : len(raw)-1]
	}
	return raw
}
