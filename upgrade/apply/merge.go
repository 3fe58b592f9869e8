package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Merge says what to send so that live becomes wanted while others keep what is theirs: live's metadata with wanted's labels
// and annotations laid over it, and wanted's spec. A caBundle in wanted that is no certificate is a release's
// placeholder and is dropped; live's own then stays where the conversion still goes to the same webhook. A conversion
// that wanted leaves out is gone, in the same write as the versions. live's resourceVersion goes along. Neither argument
// is changed.
func Merge(live, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	spec := clean(wanted)
	if live == nil {
		created := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": wanted.GetAPIVersion(), "kind": wanted.GetKind(), "spec": spec,
		}}
		created.SetName(wanted.GetName())
		created.SetLabels(wanted.GetLabels())
		created.SetAnnotations(wanted.GetAnnotations())
		return created
	}
	merged := live.DeepCopy()
	overlay(merged.GetLabels(), wanted.GetLabels(), merged.SetLabels)
	overlay(merged.GetAnnotations(), wanted.GetAnnotations(), merged.SetAnnotations)
	if ca := liveCA(live, spec); ca != "" {
		unstructured.SetNestedField(spec, ca, "conversion", "webhook", "clientConfig", "caBundle")
	}
	merged.Object["spec"] = spec
	return merged
}

func overlay(under, over map[string]string, set func(map[string]string)) {
	if len(over) == 0 {
		return
	}
	both := maps.Clone(under)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, over)
	set(both)
}

// clean copies wanted's spec without a placeholder caBundle.
func clean(wanted *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(wanted.Object, "spec")
	ca, found, _ := unstructured.NestedString(spec, "conversion", "webhook", "clientConfig", "caBundle")
	if found && !isCertificate(ca) {
		unstructured.RemoveNestedField(spec, "conversion", "webhook", "clientConfig", "caBundle")
	}
	return spec
}

func isCertificate(caBundle string) bool {
	raw, err := base64.StdEncoding.DecodeString(caBundle)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(bytes.TrimSpace(raw))
	return block != nil && block.Type == "CERTIFICATE"
}

// liveCA gives the live caBundle when spec has none and its conversion goes to the webhook that the live one goes to: that
// CA was put there by whoever runs the webhook. A CA for another webhook would be wrong.
func liveCA(live *unstructured.Unstructured, spec map[string]any) string {
	wanted, found, _ := unstructured.NestedMap(spec, "conversion", "webhook", "clientConfig")
	if !found || wanted["caBundle"] != nil {
		return ""
	}
	current, found, _ := unstructured.NestedMap(live.Object, "spec", "conversion", "webhook", "clientConfig")
	if !found {
		return ""
	}
	ca, _ := current["caBundle"].(string)
	if !reflect.DeepEqual(target(wanted), target(current)) {
		return ""
	}
	return ca
}

// target is where a clientConfig points to, with the API server's defaults; the path does not change whose CA it is.
func target(clientConfig map[string]any) map[string]any {
	service, ok := clientConfig["service"].(map[string]any)
	if !ok {
		return map[string]any{"url": clientConfig["url"]}
	}
	port := service["port"]
	if port == nil {
		port = int64(443)
	}
	return map[string]any{"namespace": service["namespace"], "name": service["name"], "port": port}
}
