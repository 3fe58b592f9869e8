package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery"
)

// writesInFlight pins that a write which an API server accepted before a storage flip lands in the old version after it, however long ago every server has
// shown the new one (k/k#130235). So a trim has to wait (design U10).
func writesInFlight(t *testing.T, p *plane) {
	const group = "flight.facts.example.com"
	p.widgetsAt(t, group, "v1beta1* v1")
	gate := newGate(t)
	p.admit(t, group, gate.hook)
	path := func(name string) string { return widgets(group, "v1") + "/" + name }

	done := make(chan string, 1)
	go func() {
		a, err := p.first().try(t.Context(), apply("somebody", path("held"), widget(group, "v1", "held", "")))
		done <- fmt.Sprint(a.Status, err)
	}()
	select {
	case <-gate.arrived:
	case result := <-done:
		t.Fatalf("the write was to be held in admission, and ended: %s", result)
	}
	p.flip(t, group, "v1beta1 v1*", "v1")

	t.Run("the write is in flight while every server shows the flip", func(t *testing.T) {
		for _, w := range p.wires {
			for _, version := range []string{"v1", "v1beta1"} {
				w.wantStorageVersion(t, p, group, version, "v1")
			}
		}
		if have, err := p.storedAt(t.Context(), group, "held"); have != "" || err != nil {
			t.Errorf("it lies at %q, %v; want it absent", have, err)
		}
	})
	t.Run("the write lands in the old version", func(t *testing.T) {
		close(gate.open)
		if result := <-done; result != "201 <nil>" {
			t.Fatalf("the write: %s; want 201", result)
		}
		p.wantStored(t, group, "held", "v1beta1")
	})
	t.Run("the next one lands in the new version", func(t *testing.T) {
		p.first().must(t, apply("somebody", path("next"), widget(group, "v1", "next", "")))
		p.wantStored(t, group, "next", "v1")
	})
	t.Run("legacy discovery has no storage version hash where the storage version is un-served", func(t *testing.T) {
		p.changeVersions(t, group, "v1beta1 v1*-")
		for _, w := range p.wires {
			w.wantStorageVersion(t, p, group, "v1beta1", "")
		}
	})
	t.Run("aggregated discovery never has one", func(t *testing.T) {
		if a := p.first().send(t, request{Path: "/apis", Accept: aggregated}); strings.Contains(a.Body, "storageVersionHash") {
			t.Error("it has")
		}
	})
}

// wantStorageVersion waits until the legacy document of a version names the storage version; "" is none.
func (w wire) wantStorageVersion(t testing.TB, p *plane, group, version, storage string) {
	t.Helper()
	want := ""
	if storage != "" {
		want = discovery.StorageVersionHash(group, storage, kind)
	}
	p.await(t, fmt.Sprintf("%s/%s shows the storage version %q", group, version, storage), func(ctx context.Context) (string, bool) {
		a, err := w.try(ctx, request{Path: "/apis/" + group + "/" + version})
		if err != nil {
			return err.Error(), false
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal([]byte(a.Body), &list); err != nil || len(list.APIResources) == 0 {
			return fmt.Sprint(a, err), false
		}
		have := list.APIResources[0].StorageVersionHash
		return have, have == want
	})
}

// gate is an admission webhook that keeps the object held until it is opened, refuses the object closed, and admits every other one.
type gate struct {
	hook
	arrived chan struct{} // gets a value when the object has come
	open    chan struct{} // closed by the test
}

func newGate(t testing.TB) *gate {
	g := &gate{arrived: make(chan struct{}, 1), open: make(chan struct{})}
	g.hook = newHook(t, func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		if review.Request.Name == "held" {
			g.arrived <- struct{}{}
			select {
			case <-g.open:
			case <-r.Context().Done():
				return
			}
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "closed"}
		review.Request = nil
		w.Header().Set("Content-Type", jsonType)
		_ = json.NewEncoder(w).Encode(review) // a client that has gone learns nothing
	})
	return g
}

// admit puts an admission webhook in front of creations in a group, and waits until every API server asks it.
func (p *plane) admit(t testing.TB, group string, h hook) {
	t.Helper()
	const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": group},
		"webhooks": []any{map[string]any{
			"name": group, "admissionReviewVersions": []string{"v1"}, "sideEffects": "None", "timeoutSeconds": 30,
			"clientConfig": map[string]any{"url": h.URL, "caBundle": h.ca()},
			"rules":        []any{map[string]any{"apiGroups": []string{group}, "apiVersions": []string{"*"}, "resources": []string{plural}, "operations": []string{"CREATE"}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.first().must(t, post(path, string(body)))
	p.deleteAfter(t, path+"/"+group)
	for _, w := range p.wires {
		p.await(t, "the admission webhook asked", func(ctx context.Context) (string, bool) {
			r := apply("probe", widgets(group, "v1")+"/closed", widget(group, "v1", "closed", ""))
			r.Path += "&dryRun=All"
			a, err := w.try(ctx, r)
			return fmt.Sprint(a, err), err == nil && strings.Contains(a.Body, "denied the request")
		})
	}
}
