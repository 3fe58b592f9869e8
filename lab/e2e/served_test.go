package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// wantServed demands that every API server, in both forms of discovery and by a real list of every version, serves what the
// CRDs say, and nothing else in their groups.
func (p *plane) wantServed(t testing.TB, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for i, s := range p.Servers() {
		if wrong := misserved(t.Context(), s, crds); wrong != "" {
			t.Errorf("API server %d: %s", i, wrong)
		}
	}
}

// misserved says in what an API server serves something else than the CRDs say; "" when in nothing.
func misserved(ctx context.Context, s *lab.Server, crds []*apiextensionsv1.CustomResourceDefinition) string {
	want := map[string]bool{} // resources that are served, by group/version/plural
	groups := map[string]bool{}
	client, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		return err.Error()
	}
	for _, c := range crds {
		groups[c.Spec.Group] = true
		for _, v := range c.Spec.Versions {
			path := c.Spec.Group + "/" + v.Name + "/" + c.Spec.Names.Plural
			if v.Served {
				want[path] = true
			}
			status, err := get(ctx, client, s.URL()+"/apis/"+path+"?limit=1")
			if err != nil {
				return err.Error()
			}
			if served := status == http.StatusOK; served != v.Served || !served && status != http.StatusNotFound {
				return fmt.Sprintf("a list of %s is a %d", path, status)
			}
		}
	}
	for _, legacy := range []bool{false, true} {
		got, err := discovered(ctx, s.Config(), client, groups, legacy)
		if err != nil {
			return err.Error()
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("discovery, legacy: %t, shows %v; want %v", legacy, got, want)
		}
	}
	return ""
}

func get(ctx context.Context, client *http.Client, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// discovered reads with client-go what an API server says it serves in some groups.
func discovered(ctx context.Context, cfg *rest.Config, h *http.Client, groups map[string]bool, legacy bool) (map[string]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	client.UseLegacyDiscovery = legacy
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			if groups[group] && !strings.Contains(r.Name, "/") {
				found[list.GroupVersion+"/"+r.Name] = true
			}
		}
	}
	return found, ctx.Err()
}
