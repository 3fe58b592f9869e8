package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// storedAt reads from etcd in which version an object lies; "" when it is not there.
func (p *plane) storedAt(ctx context.Context, group, name string) (string, error) {
	key := "/registry/" + group + "/" + plural + "/" + name
	all, err := p.Etcd().List(ctx, key)
	if err != nil {
		return "", err
	}
	raw, ok := all[key]
	if !ok {
		return "", nil
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	version, ok := strings.CutPrefix(o.APIVersion, group+"/")
	if !ok {
		return "", fmt.Errorf("%s: apiVersion %q", key, o.APIVersion)
	}
	return version, nil
}

// wantStored demands that an object lies at a version.
func (p *plane) wantStored(t testing.TB, group, name, version string) {
	t.Helper()
	have, err := p.storedAt(t.Context(), group, name)
	if err != nil {
		t.Fatal(err)
	}
	if have != version {
		t.Errorf("%s lies in etcd at %q; want %q", name, have, version)
	}
}

// flip makes a version the storage version and waits until a new object, written through each of the servers, lies at it.
func (p *plane) flip(t testing.TB, group, short, storage string) {
	t.Helper()
	p.changeVersions(t, group, short)
	for i, w := range p.wires {
		n := 0
		p.await(t, fmt.Sprintf("API server %d writes %s at %s", i, group, storage), func(ctx context.Context) (string, bool) {
			n++
			name := fmt.Sprintf("probe-%d-%d", i, n)
			if a, err := w.try(ctx, apply("probe", widgets(group, storage)+"/"+name, widget(group, storage, name, ""))); err != nil || a.Status/100 != 2 {
				return fmt.Sprint(err, a), false
			}
			at, err := p.storedAt(ctx, group, name)
			return fmt.Sprint(at, err), at == storage
		})
	}
}

// statusPath is where a CRD's stored versions can be written.
func statusPath(group string) string {
	return crdsPath + "/" + crdName(group) + "/status"
}

func storedVersionsBody(resourceVersion string, versions ...string) string {
	list, _ := json.Marshal(versions) // strings always marshal
	return fmt.Sprintf(`{"metadata":{"resourceVersion":"%s"},"status":{"storedVersions":%s}}`, resourceVersion, list)
}

// trim sets status.storedVersions.
func (p *plane) trim(t testing.TB, group string, versions ...string) {
	t.Helper()
	p.await(t, "stored versions of "+group+" trimmed", func(ctx context.Context) (string, bool) {
		a, err := p.first().try(ctx, mergePatch(statusPath(group), storedVersionsBody(p.crd(t, crdName(group)).ResourceVersion, versions...)))
		return fmt.Sprint(a, err), err == nil && a.Status == http.StatusOK // else a 409: an API server wrote the status in between
	})
}

func (p *plane) wantStoredVersions(t testing.TB, group string, want ...string) {
	t.Helper()
	if have := p.crd(t, crdName(group)).Status.StoredVersions; !slices.Equal(have, want) {
		t.Errorf("status.storedVersions %v; want %v", have, want)
	}
}

// versionsJSON is the short form of versions as JSON.
func versionsJSON(t testing.TB, short string) string {
	t.Helper()
	b, err := json.Marshal(versions(short))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// storedVersions pins what the API server checks about status.storedVersions, and what it does not: whether a trim is true (design U2, U10).
func storedVersions(t *testing.T, p *plane) {
	const group = "stored.facts.example.com"
	p.widgetsAt(t, group, "v1beta1* v1")
	p.first().must(t, apply("somebody", widgets(group, "v1beta1")+"/old", widget(group, "v1beta1", "old", "")))
	p.flip(t, group, "v1beta1 v1*", "v1")
	refused := func(short string, parts ...string) {
		t.Helper()
		_, err := p.tryChange(t.Context(), group, setVersions(short))
		wantError(t, err, parts...)
	}

	t.Run("a new storage version is added to the stored ones", func(t *testing.T) { p.wantStoredVersions(t, group, "v1beta1", "v1") })
	t.Run("a CRD without one of the stored versions is refused", func(t *testing.T) {
		refused("v1*", `status.storedVersions[0]: Invalid value: "v1beta1"`, "missing from spec.versions")
	})
	t.Run("a CRD without the storage version is refused", func(t *testing.T) {
		refused("v1beta1*", `status.storedVersions[1]: Invalid value: "v1"`, "missing from spec.versions")
	})
	t.Run("un-serving a stored version is fine", func(t *testing.T) { p.changeVersions(t, group, "v1beta1- v1*") })
	t.Run("a trim of the storage version is taken; the next write to the CRD puts it back", func(t *testing.T) {
		p.first().must(t, mergePatch(statusPath(group), storedVersionsBody(p.crd(t, crdName(group)).ResourceVersion, "v1beta1")))
		p.wantStoredVersions(t, group, "v1beta1")
		p.change(t, group, func(c *apiextensionsv1.CustomResourceDefinition) { c.Annotations = map[string]string{"any": "change"} })
		p.wantStoredVersions(t, group, "v1beta1", "v1")
	})
	t.Run("a trim at an old resourceVersion is a conflict", func(t *testing.T) {
		wantStatus(t, p.first().send(t, mergePatch(statusPath(group), storedVersionsBody("1", "v1"))), 409, "Conflict")
	})
	t.Run("a write that is not to /status leaves the stored versions", func(t *testing.T) {
		p.first().must(t, mergePatch(strings.TrimSuffix(statusPath(group), "/status"), `{"status":{"storedVersions":["v1"]}}`))
		p.wantStoredVersions(t, group, "v1beta1", "v1")
	})
	t.Run("a trim that is not true is taken all the same", func(t *testing.T) {
		p.wantStored(t, group, "old", "v1beta1")
		p.trim(t, group, "v1")
		p.wantStoredVersions(t, group, "v1")
	})
	t.Run("then the version can be dropped, and the object that lies in it breaks every list", func(t *testing.T) {
		p.change(t, group, setVersions("v1*"))
		const message = "request to convert CR from an invalid group/version: " + group + "/v1beta1"
		p.await(t, "a list with a limit is a 500", func(ctx context.Context) (string, bool) {
			a, err := p.first().try(ctx, request{Path: widgets(group, "v1") + "?limit=1"})
			return fmt.Sprint(a, err), err == nil && a.Status == http.StatusInternalServerError && strings.Contains(a.Body, message)
		})
		p.awaitReinitializing(t, widgets(group, "v1"))
		if a := p.first().get(t, widgets(group, "v1")+"/old"); a.Status != http.StatusInternalServerError || !strings.Contains(a.Body, message) {
			t.Errorf("a read: %v; want 500", a)
		}
	})
	t.Run("and it is readable again once the version is back, un-served", func(t *testing.T) {
		p.change(t, group, setVersions("v1* v1beta1-"))
		p.await(t, "a read is a 200", func(ctx context.Context) (string, bool) {
			a, err := p.first().try(ctx, request{Path: widgets(group, "v1") + "/old"})
			return fmt.Sprint(a, err), err == nil && a.Status == http.StatusOK
		})
	})
}
