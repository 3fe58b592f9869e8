package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/crds"
	"github.com/changeover-dev/changeover/lab/proxy"
)

const (
	// aggregatedV2 asks a server for what it knows itself, in the aggregated form and no other.
	aggregatedV2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer"
	dockerGroup  = "infrastructure.cluster.x-k8s.io"
)

// TestControlPlane runs both proxies in front of real API servers: what the race, the facts and the mapper's tests build on.
func TestControlPlane(t *testing.T) {
	c := lab.ForTest(t, lab.Options{Lag: []int{1}, NoControllerManager: true})
	t.Run("legacy discovery", func(t *testing.T) { testLegacy(t, c) })
	t.Run("held version", func(t *testing.T) { testHeldVersion(t, c) })
	t.Run("lagging server", func(t *testing.T) { testLaggingServer(t, c) })
}

func minute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func httpClient(t *testing.T, cfg *rest.Config) *http.Client {
	t.Helper()
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return hc
}

// testLegacy: the same server answers in the aggregated form, and in the legacy form once the proxy is told so.
func testLegacy(t *testing.T, c *lab.Cluster) {
	p := start(t, c.Server(0).Config())
	hc := httpClient(t, p.Config())
	for _, path := range []string{"/api", "/apis"} {
		got := get(minute(t), hc, p.URL()+path, "Accept", aggregatedV2)
		if got.status != 200 || !strings.Contains(got.header.Get("Content-Type"), "as=APIGroupDiscoveryList") || got.header.Get("ETag") == "" {
			t.Fatalf("%s before: %d %v %v, want the aggregated form with an ETag", path, got.status, got.header, got.err)
		}
	}
	p.NoAggregated()
	for path, kind := range map[string]string{"/api": "APIVersions", "/apis": "APIGroupList"} {
		got := get(minute(t), hc, p.URL()+path, "Accept", aggregatedV2)
		if got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.body, `"kind":"`+kind+`"`) {
			t.Errorf("%s: %d %v %.80q %v, want %s in JSON", path, got.status, got.header, got.body, got.err, kind)
		}
	}

	// client-go asks for all forms at once, takes what it gets, and reads each group-version on its own.
	p.Forget()
	client, err := discovery.NewDiscoveryClientForConfigAndClient(p.Config(), hc)
	if err != nil {
		t.Fatal(err)
	}
	groups, resources, err := client.ServerGroupsAndResources()
	if err != nil || len(groups) < 10 || len(resources) < len(groups) {
		t.Fatalf("client-go found %d groups and %d resource lists: %v", len(groups), len(resources), err)
	}
	if n := p.Count(proxy.Filter{Path: "/apis/*/*"}); n < len(groups)-1 {
		t.Errorf("client-go read %d group-versions one by one, want one for each of %d groups at least", n, len(groups))
	}

	nobody := p.Config()
	nobody.BearerToken = c.ConfigAs("nobody").BearerToken
	if got := get(minute(t), httpClient(t, nobody), p.URL()+"/api/v1/secrets"); got.status != http.StatusForbidden {
		t.Errorf("a user without rights gets %d %v through the proxy, want forbidden", got.status, got.err)
	}
}

// testHeldVersion is the race that all this is about, as a script: a client reads the list of versions, the version it reads
// next is un-served before the server sees that read, and the answer is a bare 404.
func testHeldVersion(t *testing.T, c *lab.Cluster) {
	ctx := minute(t)
	machines := dockerMachines(t, "v1.5.2")
	install(t, ctx, c, machines)
	p := start(t, c.Server(0).Config())
	p.NoAggregated()
	hc := httpClient(t, p.Config())
	const versionPath = "/apis/" + dockerGroup + "/v1alpha4"
	err := lab.Await(ctx, "v1alpha4 served", func(ctx context.Context) (string, bool) {
		got := get(ctx, hc, p.URL()+versionPath)
		return fmt.Sprintf("%d %.200s %v", got.status, got.body, got.err), strings.Contains(got.body, "dockermachines")
	})
	if err != nil {
		t.Fatal(err)
	}

	rule := add(t, p, &proxy.Rule{Path: versionPath, Hold: proxy.HoldRequest})
	if got := get(ctx, hc, p.URL()+"/apis/"+dockerGroup); !strings.Contains(got.body, `"v1alpha4"`) {
		t.Fatalf("group list %q %v, want v1alpha4 in it", got.body, got.err)
	}
	read := goGet(ctx, hc, p.URL()+versionPath)
	if err := rule.AwaitHeld(ctx, 1); err != nil {
		t.Fatal(err)
	}
	replace(t, ctx, c, dockerMachines(t, "v1.6.0"))
	err = lab.Await(ctx, "v1alpha4 not served", func(ctx context.Context) (string, bool) {
		got := get(ctx, httpClient(t, c.Server(0).Config()), c.Server(0).URL()+versionPath)
		return fmt.Sprintf("%d %v", got.status, got.err), got.status == http.StatusNotFound
	})
	if err != nil {
		t.Fatal(err)
	}
	rule.Release()
	if got := receive(t, "the held read", read); got.status != http.StatusNotFound || got.body != "404 page not found\n" {
		t.Errorf("the held read: %d %q %v, want the bare 404", got.status, got.body, got.err)
	}
}

// testLaggingServer: while the lag is on, a server's discovery is behind its twin's; then they agree.
func testLaggingServer(t *testing.T, c *lab.Cluster) {
	ctx := minute(t)
	const lag = 5 * time.Second
	c.Server(1).SetLag(lag)
	defer c.Server(1).SetLag(0)
	crd := dockerMachines(t, "v1.6.0")
	crd.Spec.Group = "lagging.example.com"
	crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
	began := time.Now()
	install(t, ctx, c, crd)
	if err := awaitGroup(ctx, c.Server(0), crd.Spec.Group); err != nil {
		t.Fatal(err)
	}
	first := time.Since(began)
	if first >= lag {
		t.Fatalf("the healthy server took %v to show the group: nothing to compare within the lag of %v", first, lag)
	}
	groups, err := aggregatedGroups(ctx, c.Server(1))
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(groups, crd.Spec.Group) {
		t.Errorf("the lagging server shows the group %v after its creation, the lag is %v", time.Since(began), lag)
	}
	c.Server(1).SetLag(0)
	if err := awaitGroup(ctx, c.Server(1), crd.Spec.Group); err != nil {
		t.Fatal(err)
	}
	t.Logf("shown by the healthy server after %v, by the lagging one after %v", first, time.Since(began))
	err = lab.Await(ctx, "both servers to show the same groups", func(ctx context.Context) (string, bool) {
		a, errA := aggregatedGroups(ctx, c.Server(0))
		b, errB := aggregatedGroups(ctx, c.Server(1))
		return fmt.Sprintf("%v %v and %v %v", a, errA, b, errB), errA == nil && errB == nil && slices.Equal(a, b)
	})
	if err != nil {
		t.Error(err)
	}
}

func awaitGroup(ctx context.Context, s *lab.Server, group string) error {
	return lab.Await(ctx, s.URL()+" to show "+group, func(ctx context.Context) (string, bool) {
		groups, err := aggregatedGroups(ctx, s)
		return fmt.Sprintf("%v %v", groups, err), slices.Contains(groups, group)
	})
}

// aggregatedGroups returns the groups that a server shows, sorted.
func aggregatedGroups(ctx context.Context, s *lab.Server) ([]string, error) {
	hc, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		return nil, err
	}
	got := get(ctx, hc, s.URL()+"/apis", "Accept", aggregatedV2)
	if got.err != nil {
		return nil, got.err
	}
	var document struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(got.body), &document); err != nil {
		return nil, err
	}
	var groups []string
	for _, item := range document.Items {
		groups = append(groups, item.Metadata.Name)
	}
	slices.Sort(groups)
	return groups, nil
}

func dockerMachines(t *testing.T, version string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	providers, err := crds.ClusterAPI(minute(t), version)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds.All(providers) {
		if crd.Name == "dockermachines."+dockerGroup {
			return crd
		}
	}
	t.Fatalf("Cluster API %s has no dockermachines", version)
	return nil
}

func install(t *testing.T, ctx context.Context, c *lab.Cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// replace updates an installed CRD to the given one.
func replace(t *testing.T, ctx context.Context, c *lab.Cluster, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	all := client.ApiextensionsV1().CustomResourceDefinitions()
	live, err := all.Get(ctx, crd.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.ResourceVersion = live.ResourceVersion
	if _, err := all.Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
