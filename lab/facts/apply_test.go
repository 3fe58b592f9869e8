package facts

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const applyGroup = "apply.facts.example.com"

// applyConversion pins what server-side apply makes of a CRD that somebody else created by a plain write, and of its conversion (design U7).
func applyConversion(t *testing.T, p *plane) {
	ca := newConverter(t).ca()
	c := newCRD(applyGroup, "v1* v1beta1")
	c.Spec.Conversion = webhookConversion("https://127.0.0.1:1/convert", ca)
	p.install(t, c)
	applyWithoutForce(t, p)
	applyByForce(t, p, string(ca))
	t.Run("one merge patch with a resourceVersion takes versions and conversion over at once", func(t *testing.T) {
		path := crdsPath + "/" + c.Name
		body := func(resourceVersion string) string {
			return fmt.Sprintf(`{"metadata":{"resourceVersion":"%s"},"spec":{"versions":%s,"conversion":{"strategy":"None","webhook":null}}}`,
				resourceVersion, versionsJSON(t, "v1*"))
		}
		wantStatus(t, p.first().send(t, mergePatch(path, body("1"))), 409, "Conflict")
		p.first().must(t, mergePatch(path, body(p.crd(t, c.Name).ResourceVersion)))
		if have := p.crd(t, c.Name).Spec.Conversion; have.Strategy != apiextensionsv1.NoneConverter || have.Webhook != nil {
			t.Errorf("conversion %+v; want None and no webhook", have)
		}
	})
	t.Run("a CRD created with a placeholder caBundle", func(t *testing.T) { placeholderAtCreation(t, p) })
}

const (
	noConversion   = ""
	noneConversion = `,"conversion":{"strategy":"None"}`
	placeholder    = `,"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],
		"clientConfig":{"url":"https://127.0.0.1:1/convert","caBundle":"Cg=="}}}`
)

// applyCRD applies the group's CRD, as changeover, with these versions and this conversion.
func (p *plane) applyCRD(t testing.TB, force bool, short, conversion string) answer {
	t.Helper()
	r := apply("changeover", crdsPath+"/"+crdName(applyGroup), fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"%s"},"spec":{"group":"%s","scope":"Cluster","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
		"versions":%s%s}}`, crdName(applyGroup), applyGroup, versionsJSON(t, short), conversion))
	r.Path += fmt.Sprintf("&force=%t", force)
	return p.first().send(t, r)
}

func applyWithoutForce(t *testing.T, p *plane) {
	t.Run("other versions conflict as a whole with whoever created the CRD by a plain write", func(t *testing.T) {
		a := p.applyCRD(t, false, "v1* v1beta1-", noConversion)
		wantStatus(t, a, 409, "Conflict", `conflict with "installer" using apiextensions.k8s.io/v1`, ".spec.versions")
		if !strings.Contains(a.Body, `"field":".spec.versions"`) || strings.Contains(a.Body, ".spec.versions[") || strings.Contains(a.Body, ".spec.versions.") {
			t.Errorf("%v; want spec.versions as one field", a)
		}
	})
	t.Run("the same versions do not conflict", func(t *testing.T) {
		if a := p.applyCRD(t, false, "v1* v1beta1", noConversion); a.Status != http.StatusOK {
			t.Errorf("%v", a)
		}
	})
	t.Run("strategy None conflicts with the strategy's owner", func(t *testing.T) {
		wantStatus(t, p.applyCRD(t, false, "v1* v1beta1", noneConversion), 409, "Conflict", ".spec.conversion.strategy")
	})
	t.Run("a placeholder caBundle conflicts with the owner of the real one", func(t *testing.T) {
		wantStatus(t, p.applyCRD(t, false, "v1* v1beta1", placeholder), 409, "Conflict", ".spec.conversion.webhook.clientConfig.caBundle")
	})
}

func applyByForce(t *testing.T, p *plane, ca string) {
	const forbidden = "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook"
	conversion := func() *apiextensionsv1.CustomResourceConversion { return p.crd(t, crdName(applyGroup)).Spec.Conversion }
	t.Run("leaving conversion out leaves somebody else's webhook", func(t *testing.T) {
		if a := p.applyCRD(t, true, "v1* v1beta1", noConversion); a.Status != http.StatusOK {
			t.Fatalf("%v", a)
		}
		if have := conversion(); have.Strategy != apiextensionsv1.WebhookConverter || have.Webhook == nil {
			t.Errorf("conversion %+v; want the webhook as it was", have)
		}
	})
	t.Run("strategy None leaves the webhook behind, and validation refuses that", func(t *testing.T) {
		wantStatus(t, p.applyCRD(t, true, "v1* v1beta1", noneConversion), 422, "Invalid", forbidden)
	})
	t.Run("strategy None with webhook null is refused just so", func(t *testing.T) {
		wantStatus(t, p.applyCRD(t, true, "v1* v1beta1", `,"conversion":{"strategy":"None","webhook":null}`), 422, "Invalid", forbidden)
	})
	t.Run("a placeholder caBundle is refused where the real one is valid", func(t *testing.T) {
		a := p.applyCRD(t, true, "v1* v1beta1", placeholder)
		wantStatus(t, a, 422, "Invalid", "spec.conversion.webhookClientConfig.caBundle: Invalid value", "unable to load root certificates")
		if have := conversion(); string(have.Webhook.ClientConfig.CABundle) != ca {
			t.Errorf("caBundle %q; want the real one", have.Webhook.ClientConfig.CABundle)
		}
	})
}

// placeholderAtCreation creates a CRD as a release manifest brings it, before anything has put the real CA in.
func placeholderAtCreation(t *testing.T, p *plane) {
	const group = "placeholder.facts.example.com"
	c := newCRD(group, "v1*")
	c.Spec.Conversion = webhookConversion("https://127.0.0.1:1/convert", []byte("\n"))
	if _, err := p.crds.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("is not Established, and its handler answers all the same", func(t *testing.T) {
		p.await(t, "Established=False, and a list 200", func(ctx context.Context) (string, bool) {
			a, err := p.first().try(ctx, request{Path: widgets(group, "v1") + "?limit=1"})
			var reason string
			for _, condition := range p.crd(t, c.Name).Status.Conditions {
				if condition.Type == apiextensionsv1.Established {
					reason = string(condition.Status) + " " + condition.Reason
				}
			}
			return fmt.Sprint(a, err, reason), err == nil && a.Status == http.StatusOK && reason == "False InvalidCABundle"
		})
	})
	t.Run("is not in discovery", func(t *testing.T) {
		wantPlain404(t, p.first().get(t, "/apis/"+group+"/v1"))
		if doc, err := p.first().document(t.Context()); err != nil || doc.version(group, "v1").serves(plural) {
			t.Errorf("%+v, %v", doc.versionsOf(group), err)
		}
	})
	t.Run("is Established and in discovery once the real CA is in", func(t *testing.T) {
		p.awaitServed(t, p.change(t, group, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.CABundle = newConverter(t).ca()
		}))
	})
}
