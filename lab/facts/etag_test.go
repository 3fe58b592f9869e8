package facts

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const etagGroup = "etag.facts.example.com"

// discoveryForms pins what fetching discovery, conditionally where possible, rests on (design D1, D2, D3, M10).
func discoveryForms(t *testing.T, p *plane) {
	p.widgetsAt(t, etagGroup, "v1* v1beta1")
	etags(t, p)
	negotiation(t, p)
	t.Run("versions come in the order of their priority, not in the CRD's", func(t *testing.T) {
		p.changeVersions(t, etagGroup, "v1beta1* v1alpha3 v1 v2alpha1")
		doc, err := p.first().document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, v := range doc.versionsOf(etagGroup) {
			order = append(order, v.Version)
		}
		if want := []string{"v1", "v1beta1", "v2alpha1", "v1alpha3"}; !slices.Equal(order, want) {
			t.Errorf("%v; want %v", order, want)
		}
	})
}

// root asks server 0 for the root of discovery.
func (p *plane) root(t testing.TB, accept, ifNoneMatch string) answer {
	t.Helper()
	return p.first().send(t, request{Path: "/apis", Accept: accept, IfNoneMatch: ifNoneMatch})
}

func etags(t *testing.T, p *plane) {
	t.Run("the aggregated form has a quoted ETag on /apis and on /api", func(t *testing.T) {
		for _, path := range []string{"/apis", "/api"} {
			a := p.first().send(t, request{Path: path, Accept: aggregated})
			if a.Status != http.StatusOK || a.ContentType != aggregated || !regexp.MustCompile(`^"[0-9A-F]{128}"$`).MatchString(a.ETag) {
				t.Errorf("%s: ETag %s, %v", path, a.ETag, a)
			}
		}
	})
	t.Run("If-None-Match is answered 304, without a body", func(t *testing.T) {
		etag := p.root(t, aggregated, "").ETag
		if a := p.root(t, aggregated, etag); a.Status != http.StatusNotModified || a.Body != "" || a.ETag != etag {
			t.Errorf("ETag %s, %v; want 304 with %s", a.ETag, a, etag)
		}
		if a := p.root(t, aggregated, `"0"`); a.Status != http.StatusOK {
			t.Errorf("with another ETag: %v; want 200", a)
		}
	})
	t.Run("the legacy form has no ETag and takes no notice of If-None-Match", func(t *testing.T) {
		etag := p.root(t, aggregated, "").ETag
		for _, path := range []string{"/apis", "/api", "/apis/" + etagGroup, "/apis/" + etagGroup + "/v1", "/api/v1"} {
			a := p.first().send(t, request{Path: path, Accept: legacyForm, IfNoneMatch: etag})
			if a.Status != http.StatusOK || a.ETag != "" || a.ContentType != legacyForm {
				t.Errorf("%s: ETag %q, %v", path, a.ETag, a)
			}
		}
	})
	t.Run("the ETag follows the content: another one after a change, the old one after a rollback", func(t *testing.T) {
		before := p.root(t, aggregated, "").ETag
		p.changeVersions(t, etagGroup, "v1* v1beta1-")
		if p.root(t, aggregated, "").ETag == before {
			t.Error("un-serving a version left the ETag")
		}
		p.awaitServed(t, p.change(t, etagGroup, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions = versions("v1* v1beta1")
			c.Labels = map[string]string{"discovery": "does-not-show-this"}
		}))
		if after := p.root(t, aggregated, "").ETag; after != before {
			t.Errorf("after the rollback %s; before %s", after, before)
		}
	})
	t.Run("two servers with the same content have the same ETag", func(t *testing.T) {
		p.await(t, "the same ETag", func(ctx context.Context) (string, bool) {
			a, errA := p.wires[0].try(ctx, request{Path: "/apis", Accept: aggregated})
			b, errB := p.wires[1].try(ctx, request{Path: "/apis", Accept: aggregated})
			return a.ETag + " and " + b.ETag, errA == nil && errB == nil && a.ETag == b.ETag && a.Body == b.Body
		})
	})
}

func negotiation(t *testing.T, p *plane) {
	t.Run("profile=nopeer is accepted, and not in the answer's content type", func(t *testing.T) {
		plain, a := p.root(t, aggregated, ""), p.root(t, aggregated+";profile=nopeer", "")
		if a.Status != http.StatusOK || a.ContentType != aggregated || a.Body != plain.Body || a.ETag != plain.ETag {
			t.Errorf("ETag %s, %v; without the profile ETag %s, %v", a.ETag, a, plain.ETag, plain)
		}
	})
	t.Run("a form that the server does not have falls back to the next one accepted", func(t *testing.T) {
		for accept, want := range map[string]string{
			aggregated1 + "," + legacyForm:                    p.release.betaForm,
			aggregated1 + "," + aggregated + "," + legacyForm: p.release.betaFirst,
			aggregated + "," + aggregated1 + "," + legacyForm: aggregated,
			"*/*": legacyForm,
		} {
			if a := p.root(t, accept, ""); a.Status != http.StatusOK || a.ContentType != want {
				t.Errorf("Accept %s: %v; want %s", accept, a, want)
			}
		}
	})
	t.Run("a form that the server does not have, and no other, is a 406", func(t *testing.T) {
		if a := p.root(t, "application/json;g=apidiscovery.k8s.io;v=v7;as=APIGroupDiscoveryList", ""); a.Status != http.StatusNotAcceptable {
			t.Errorf("%d %v; want 406", a.Status, a)
		}
	})
	if p.release.betaForm == aggregated1 {
		t.Run("v2beta1 has the ETag of v2", func(t *testing.T) {
			etag := p.root(t, aggregated1, "").ETag
			if a := p.root(t, aggregated1, etag); etag != p.root(t, aggregated, "").ETag || a.Status != http.StatusNotModified {
				t.Errorf("ETag %s, %d %v", etag, a.Status, a)
			}
		})
	}
}
