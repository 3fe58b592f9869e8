package manifest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What Read refuses is tested through the real command, in cmd/kubectl-changeover/testdata.
func TestReadSortsWhatItFinds(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml": `# a release: the first document is empty
---
apiVersion: v1
kind: List
items:
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {versions: [{name: v1, served: true, storage: true}]}}
- {apiVersion: v1, kind: Service, metadata: {name: s}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
`,
		"a.json":       `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"}} {"apiVersion":"v1","kind":"Service","metadata":{"name":"t"}}`,
		"c.yml":        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.com}\n",
		"notes.txt":    "{{{",
		"below/d.yaml": "{{{",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Read([]string{dir, "-"}, strings.NewReader("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, namespace: system}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var crds []string
	for _, d := range m.CRDs {
		crds = append(crds, d.Name()+" from "+strings.TrimPrefix(d.Source, dir+"/"))
	}
	// c.yml says the same as a.json; once is enough.
	if want := []string{"gadgets.example.com from a.json, document 1", "widgets.example.com from b.yaml, document 2, item 1"}; !reflect.DeepEqual(crds, want) {
		t.Errorf("CRDs %q, want %q", crds, want)
	}
	var deployments []string
	for _, d := range m.Deployments {
		deployments = append(deployments, d.Namespace+"/"+d.Name)
	}
	if want := []string{"system/manager", "/other"}; !reflect.DeepEqual(deployments, want) {
		t.Errorf("deployments %q, want %q", deployments, want)
	}
	if want := map[string]int{"Service": 2}; !reflect.DeepEqual(m.Others, want) {
		t.Errorf("others %v, want %v", m.Others, want)
	}
}
