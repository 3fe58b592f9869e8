package apply

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	// Whole numbers as the API machinery has them, not as encoding/json does.
	if err := json.Unmarshal(raw, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// certificate is base64 of what passes for a certificate.
var certificate = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"))

const liveText = `
metadata:
  name: widgets.example.com
  resourceVersion: "7"
  uid: u
  labels: {theirs: kept, ours: old}
  annotations: {cert-manager.io/inject-ca-from: ns/cert}
  finalizers: [theirs/finalizer]
spec:
  preserveUnknownFields: false
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        caBundle: LIVE
        service: {namespace: ns, name: hook, path: /convert, port: 443}
`

func TestMergeKeepsWhatOthersOwn(t *testing.T) {
	live := object(t, liveText)
	merged := Merge(live, object(t, `
metadata: {name: widgets.example.com, labels: {ours: new}, resourceVersion: "1", uid: other}
spec: {scope: Namespaced}
`))
	if got, want := merged.GetLabels(), map[string]string{"theirs": "kept", "ours": "new"}; !reflect.DeepEqual(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
	if merged.GetAnnotations()["cert-manager.io/inject-ca-from"] != "ns/cert" || len(merged.GetFinalizers()) != 1 {
		t.Errorf("metadata of others is gone: %v", merged.Object["metadata"])
	}
	if merged.GetResourceVersion() != "7" || merged.GetUID() != "u" {
		t.Errorf("resourceVersion %s, uid %s: not the live ones", merged.GetResourceVersion(), merged.GetUID())
	}
	if _, found, _ := unstructured.NestedMap(merged.Object, "spec", "conversion"); found {
		t.Error("a conversion that the manifest leaves out stays")
	}
	if !reflect.DeepEqual(live, object(t, liveText)) {
		t.Error("the live object was changed")
	}
}

func TestMergeCABundle(t *testing.T) {
	const wanted = `
metadata: {name: widgets.example.com}
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {caBundle: "%CA%", service: {namespace: ns, name: "%NAME%", path: /other}}
`
	for name, c := range map[string]struct{ ca, service, want string }{
		"placeholder gives way to the live one": {"Cg==", "hook", "LIVE"},
		"empty gives way to the live one":       {"", "hook", "LIVE"},
		"nonsense gives way to the live one":    {"???", "hook", "LIVE"},
		"a certificate wins":                    {certificate, "hook", certificate},
		"another webhook has another CA":        {"Cg==", "elsewhere", ""},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := object(t, strings.NewReplacer("%CA%", c.ca, "%NAME%", c.service).Replace(wanted))
			merged := Merge(object(t, liveText), manifest)
			got, found, _ := unstructured.NestedString(merged.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
			if got != c.want || found != (c.want != "") {
				t.Errorf("caBundle %q (present: %t), want %q", got, found, c.want)
			}
		})
	}
}

func TestMergeCreatesWithoutPlaceholder(t *testing.T) {
	merged := Merge(nil, object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, labels: {a: b}, creationTimestamp: null}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: Cg==, url: "https://x"}}}}
status: {storedVersions: [v1]}
`))
	want := object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, labels: {a: b}}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: "https://x"}}}}
`)
	if !reflect.DeepEqual(merged, want) {
		t.Errorf("got %v, want %v", merged.Object, want.Object)
	}
}

func TestConflicts(t *testing.T) {
	live := object(t, `
metadata:
  name: widgets.example.com
  labels: {a: "1", b: "1"}
  managedFields:
  - manager: flux
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:labels: {f:a: {}}}
      f:spec: {f:versions: {}, f:names: {f:kind: {}, f:shortNames: {'v:"w"': {}}}, f:scope: {}}
  - manager: helm
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {f:metadata: {f:labels: {f:b: {}}}}
  - manager: status-writer
    operation: Apply
    subresource: status
    fieldsType: FieldsV1
    fieldsV1: {f:status: {f:storedVersions: {}}}
  - manager: quiet
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1: {f:spec: {f:scope: {}}}
spec: {scope: Namespaced, names: {kind: Widget, shortNames: [w]}, versions: [{name: v1}]}
status: {storedVersions: [v1]}
`)
	after := object(t, `
metadata: {name: widgets.example.com, labels: {a: "2", b: "2"}}
spec: {scope: Namespaced, names: {kind: Widget, shortNames: [w, x]}, versions: [{name: v1}, {name: v2}]}
status: {storedVersions: [v1, v2]}
`)
	got := Conflicts(live, after, "kubectl-changeover")
	want := []Conflict{{CRD: "widgets.example.com", Manager: "flux", Fields: []string{"metadata.labels.a", "spec.names.shortNames", "spec.versions"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if own := Conflicts(live, after, "flux"); own != nil {
		t.Errorf("a manager conflicts with itself: %+v", own)
	}
}
