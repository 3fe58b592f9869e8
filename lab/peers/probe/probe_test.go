package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const kindOfTest = "example.com/Widget"

var widget = schema.GroupKind{Group: "example.com", Kind: "Widget"}

// mapping answers with the versions it holds, or with err.
type mapping struct {
	meta.RESTMapper
	versions []string
	err      error
}

func (m mapping) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	all, err := m.RESTMappings(gk, versions...)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (m mapping) RESTMappings(gk schema.GroupKind, _ ...string) ([]*meta.RESTMapping, error) {
	var all []*meta.RESTMapping
	for _, v := range m.versions {
		gvk := gk.WithVersion(v)
		all = append(all, &meta.RESTMapping{Resource: gvk.GroupVersion().WithResource("widgets"), GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace})
	}
	return all, m.err
}

// serveV1 is an API server that serves widgets at v1 and nothing else.
func serveV1(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			fmt.Fprint(w, `{}`)
		case "/apis/example.com/v1/widgets":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`)
		default:
			http.Error(w, "404 page not found", http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// start runs a probe until the end of the test and returns its address.
func start(t *testing.T, api string, newMapper NewMapper, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, addressFile := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "address")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", api)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--kubeconfig", kubeconfig, "--address-file", addressFile, "--kind", kindOfTest}, args...)
	o, err := parseOptions("test", args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, "test", o, newMapper) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	var address []byte
	await(t, "address file", func() (string, bool) {
		address, err = os.ReadFile(addressFile)
		return fmt.Sprint(err), err == nil
	})
	return "http://" + string(address)
}

func await(t *testing.T, what string, check func() (seen string, ok bool)) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, ok := check()
		if ok {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not so after 10 s; last seen: %s", what, seen)
		case <-tick.C:
		}
	}
}

func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func count(t *testing.T, address string) (c Count) {
	t.Helper()
	_, body := ask(t, "GET", address+"/mappers")
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatalf("/mappers: %v: %s", err, body)
	}
	return c
}

func TestVerdictCountsEachMapperOnce(t *testing.T) {
	api := serveV1(t)
	// The n-th mapper is the n-th of these.
	mappers := []mapping{
		{versions: []string{"v1"}},
		{versions: []string{"v1", "v1alpha1"}},
		{versions: []string{"v1alpha1", "v1"}},
		{err: errors.New("no luck")},
		{versions: []string{"v1"}},
		{versions: []string{"v1"}},
	}
	var n atomic.Int64
	address := start(t, api.URL, func(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, *http.Client, error) {
		return mappers[n.Add(1)-1], hc, nil
	}, "--mappers", fmt.Sprint(len(mappers)))
	await(t, "all mappers, and all but the one with the error have answered", func() (string, bool) {
		c := count(t, address)
		return fmt.Sprint(c), c == Count{Mappers: 6, Answered: 5}
	})

	status, body := ask(t, "GET", address+"/verdict?served=v1")
	if status != http.StatusOK {
		t.Fatalf("/verdict: %d %s", status, body)
	}
	var v Verdict
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	if v.Requests.Discovery != 0 || v.Requests.Other < 8 {
		t.Errorf("requests %+v: want none for discovery, and at least the 8 lists of the verdict", v.Requests)
	}
	v.Requests = Requests{}
	want := Verdict{Name: "test", Mappers: 6, Stuck: 1, Stale: 2, Right: 3, SampleError: "no luck", SampleStale: "example.com/v1alpha1"}
	if v != want {
		t.Errorf("verdict\n%+v, want\n%+v", v, want)
	}
	// A version that is served but cannot be listed is no success either.
	_, body = ask(t, "GET", address+"/verdict?served=v1,v1alpha1")
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	if v.Stuck != 3 || v.Stale != 0 {
		t.Errorf("with v1alpha1 among the served: %+v, want 3 stuck", v)
	}
	if status, _ := ask(t, "GET", address+"/verdict"); status != http.StatusBadRequest {
		t.Errorf("/verdict without served: %d, want 400", status)
	}
}

func TestStuckIsStillReady(t *testing.T) {
	api := serveV1(t)
	address := start(t, api.URL, func(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, *http.Client, error) {
		return mapping{err: errors.New("stuck")}, hc, nil
	}, "--mappers", "1")
	if status, body := ask(t, "GET", address+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz with a stuck mapper: %d %s, want 200", status, body)
	}
	api.Close()
	if status, body := ask(t, "GET", address+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without an API server: %d %s, want 503", status, body)
	}
}

func TestRateWaitsForStartAndStopsAtMaxAndAtFreeze(t *testing.T) {
	api := serveV1(t)
	newMapper := func(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, *http.Client, error) {
		return mapping{versions: []string{"v1"}}, hc, nil
	}
	bounded := start(t, api.URL, newMapper, "--rate", "500", "--max", "3")
	await(t, "3 mappers", func() (string, bool) {
		n := count(t, bounded).Mappers
		return fmt.Sprint(n), n == 3
	})
	endless := start(t, api.URL, newMapper, "--rate", "500", "--wait")
	if n := count(t, endless).Mappers; n != 0 {
		t.Errorf("%d mappers before /start with --wait, want none", n)
	}
	ask(t, "POST", endless+"/start")
	await(t, "5 mappers", func() (string, bool) {
		n := count(t, endless).Mappers
		return fmt.Sprint(n), n >= 5
	})
	// One mapper may be in the making when the freeze comes; after that there is no further one.
	ask(t, "POST", endless+"/freeze")
	await(t, "a number that stays", func() (string, bool) {
		first := count(t, endless).Mappers
		for range 20 {
			if now := count(t, endless).Mappers; now != first {
				return fmt.Sprint(now), false
			}
		}
		return fmt.Sprint(first), true
	})
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--kubeconfig=k", "--mappers=1"}, "--kind: missing"},
		{[]string{"--kubeconfig=k", "--kind=" + kindOfTest}, "there would be no mapper"},
		{[]string{"--kubeconfig=", "--mappers=1", "--kind=" + kindOfTest}, "--kubeconfig: missing"},
		{[]string{"--kubeconfig=k", "--mappers=1", "--kind=Widget"}, "want group/Kind"},
		{[]string{"--kubeconfig=k", "--mappers=1", "--kind=" + kindOfTest, "--interval=0"}, "must be positive"},
		{[]string{"--kubeconfig=k", "--mappers=1", "--kind=" + kindOfTest, "more"}, "there are only flags"},
	} {
		var out bytes.Buffer
		_, err := parseOptions("test", c.args, &out)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestServed(t *testing.T) {
	s := parseServed(url.Values{"served": {"v1,v1beta1", "other.example.com/v2"}})
	for _, c := range []struct {
		group, version string
		want           bool
	}{
		{widget.Group, "v1", true},
		{widget.Group, "v1beta1", true},
		{widget.Group, "v2", false},
		{"other.example.com", "v2", true},
		{"other.example.com", "v1", false}, // its own entry speaks for it alone
	} {
		if got := s.has(c.group, c.version); got != c.want {
			t.Errorf("%s/%s served: %t, want %t", c.group, c.version, got, c.want)
		}
	}
}

func TestDiscoveryPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/api": true, "/api/v1": true, "/apis": true, "/apis/": true, "/apis/g": true, "/apis/g/v1": true,
		"/api/v1/nodes": false, "/apis/g/v1/widgets": false, "/version": false, "/": false,
	} {
		if got := isDiscovery(path); got != want {
			t.Errorf("%s is discovery: %t, want %t", path, got, want)
		}
	}
}
