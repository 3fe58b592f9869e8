package crds_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestSample fills in what a schema requires and nothing else. That the API server takes samples of every real kind is shown where
// the lab creates them (lab/capi).
func TestSample(t *testing.T) {
	const text = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [mode, size, when, parts, port, ready]
            properties:
              mode: {type: string, enum: [Fast, Slow]}
              size: {type: integer, minimum: 3}
              when: {type: string, format: date-time}
              parts: {type: array, minItems: 2, items: {type: object, required: [id], properties: {id: {type: string, maxLength: 2}}}}
              port: {x-kubernetes-int-or-string: true}
              ready: {type: boolean}
              optional: {type: string}
`
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		t.Fatal(err)
	}
	got, err := crds.Sample(&crd, "v1", "one")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "one"},
		"spec": map[string]any{
			"mode": "Fast", "size": int64(3), "when": "2024-01-01T00:00:00Z", "port": int64(0), "ready": false,
			"parts": []any{map[string]any{"id": "sa"}, map[string]any{"id": "sa"}},
		},
	}
	if !reflect.DeepEqual(got.Object, want) {
		t.Errorf("got  %v\nwant %v", got.Object, want)
	}
	if _, err := crds.Sample(&crd, "v9", "one"); err == nil || !strings.Contains(err.Error(), "crd widgets.example.com: no version v9") {
		t.Errorf("a version that is not there: %v", err)
	}
}
