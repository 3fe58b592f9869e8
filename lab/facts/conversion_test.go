package facts

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// deadConversion pins what a client sees while a conversion webhook is down, as it is whenever its controllers are scaled to zero. Convergence (design
// D6) takes "anything but the plain 404" as served because of this, and migration comes before quiesce.
func deadConversion(t *testing.T, p *plane) {
	const group = "conversion.facts.example.com"
	converter := newConverter(t)
	url, ca := converter.URL, converter.ca()
	converter.kill()
	c := newCRD(group, "v1* v1beta1")
	c.Spec.Conversion = webhookConversion(url, ca)
	stored, converted := widgets(group, "v1"), widgets(group, "v1beta1")

	t.Run("both versions are served and discovered", func(t *testing.T) { p.install(t, c) })
	t.Run("an empty list is a 200 at either version", func(t *testing.T) {
		for _, w := range p.wires {
			for _, path := range []string{stored, converted, stored + "?limit=1", converted + "?limit=1"} {
				if a := w.get(t, path); a.Status != http.StatusOK {
					t.Errorf("%s: %v", path, a)
				}
			}
		}
	})
	t.Run("a write at the storage version works", func(t *testing.T) {
		p.first().must(t, apply("somebody", stored+"/w", widget(group, "v1", "w", "")))
	})
	t.Run("objects that need no conversion can be read", func(t *testing.T) {
		for _, w := range p.wires {
			for _, path := range []string{stored, stored + "/w", stored + "?limit=1"} {
				if a := w.get(t, path); a.Status != http.StatusOK {
					t.Errorf("%s: %v", path, a)
				}
			}
		}
	})
	t.Run("a list, after 3 s, and a read that need conversion are a 500 Status", func(t *testing.T) {
		for _, path := range []string{converted, converted + "?limit=1", converted + "/w"} {
			wantConversionError(t, p.first().get(t, path), group)
		}
	})
	t.Run("a write at the other version is a 500 Status", func(t *testing.T) {
		a := p.first().send(t, apply("somebody", converted+"/x", widget(group, "v1beta1", "x", "")))
		if a.Status != http.StatusInternalServerError || !strings.Contains(a.Body, "failed: Post") {
			t.Errorf("%v; want 500", a)
		}
	})
}

// wantConversionError demands the 500 with which an API server reports that the conversion webhook of a group did not answer.
func wantConversionError(t testing.TB, a answer, group string) {
	t.Helper()
	o := parse(t, a.Body)
	if a.Status != http.StatusInternalServerError || o.Kind != "Status" || !strings.Contains(o.Message, "conversion webhook for "+group+"/v1, Kind=Widget failed: Post") {
		t.Errorf("%v; want a Status with 500 about the conversion webhook", a)
	}
}

// dyingConversion pins that an API server's watch cache hides that the conversion webhook is gone: a list may be answered from objects that were
// converted before. So a 200 for a list proves nothing about conversion; a read of an object does, and so does any list with a limit
// after the CRD was changed, which empties the cache (design D6, U3, U12).
func dyingConversion(t *testing.T, p *plane) {
	const group = "dying.facts.example.com"
	converter := newConverter(t)
	c := newCRD(group, "v1* v1beta1")
	c.Spec.Conversion = webhookConversion(converter.URL, converter.ca())
	p.install(t, c)
	p.first().must(t, apply("somebody", widgets(group, "v1")+"/w", widget(group, "v1", "w", "")))
	converted := widgets(group, "v1beta1")
	p.await(t, "the object in the watch cache", func(ctx context.Context) (string, bool) {
		a, err := p.first().try(ctx, request{Path: converted + "?resourceVersion=0"})
		return fmt.Sprint(a, err), err == nil && strings.Contains(a.Body, `"name":"w"`)
	})
	converter.kill()

	t.Run("lists that the watch cache can answer stay a 200", func(t *testing.T) {
		for _, query := range []string{"", "?limit=1", "?resourceVersion=0", "?resourceVersion=0&limit=1"} {
			if a := p.first().get(t, converted+query); a.Status != http.StatusOK || !strings.Contains(a.Body, `"name":"w"`) {
				t.Errorf("%s: %v; want 200", query, a)
			}
		}
	})
	t.Run("a read of an object is a 500 Status, unless it asks the cache", func(t *testing.T) {
		wantConversionError(t, p.first().get(t, converted+"/w"), group)
		if a := p.first().get(t, converted+"/w?resourceVersion=0"); a.Status != http.StatusOK {
			t.Errorf("%v; want 200", a)
		}
	})
	t.Run("after any change of the CRD a list is a 429 Status, and with a limit the 500", func(t *testing.T) {
		p.change(t, group, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Names.ShortNames = []string{"wdgt"} })
		p.awaitReinitializing(t, converted)
		wantConversionError(t, p.first().get(t, converted+"?limit=1"), group)
	})
	t.Run("a list at the storage version never noticed", func(t *testing.T) {
		if a := p.first().get(t, widgets(group, "v1")+"?limit=1"); a.Status != http.StatusOK {
			t.Errorf("%v; want 200", a)
		}
	})
}

// awaitReinitializing waits for the answer to a list without a limit whose watch cache cannot be filled. A list with a limit and no selector goes
// to etcd in that case.
func (p *plane) awaitReinitializing(t testing.TB, path string) {
	t.Helper()
	p.await(t, path+" is a 429", func(ctx context.Context) (string, bool) {
		a, err := p.first().try(ctx, request{Path: path})
		return fmt.Sprint(a, err), err == nil && a.Status == http.StatusTooManyRequests && strings.Contains(a.Body, "storage is (re)initializing")
	})
}
