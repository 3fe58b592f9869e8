package proxy_test

import (
	"net/http"
	"testing"

	"github.com/changeover-dev/changeover/lab/proxy"
)

// TestFilter asks each filter through Count, which chooses as rules do.
func TestFilter(t *testing.T) {
	a := newAPI(t, ok)
	p := start(t, a.config())
	hc := client(t, p)
	for _, r := range []struct{ path, accept, agent string }{
		{"/api", "application/json", "old/1"},
		{"/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "new/2"},
		{"/apis/example.com", "application/json", "new/2"},
		{"/apis/example.com/v1", "application/json", "old/1"},
		{"/apis/example.com/v1/widgets?watch=true", "application/json", "old/1"},
		{"/apisomething", "application/json", "old/1"},
	} {
		if got := get(soon(t), hc, p.URL()+r.path, "Accept", r.accept, "User-Agent", r.agent); got.err != nil {
			t.Fatal(got.err)
		}
	}
	for _, tt := range []struct {
		filter proxy.Filter
		want   int
	}{
		{proxy.Filter{}, 6},
		{proxy.Filter{Path: "/apis"}, 1},
		{proxy.Filter{Path: "/apis/*"}, 1},
		{proxy.Filter{Path: "/apis/*/*"}, 1},
		{proxy.Filter{Path: "/apis/*/v1"}, 1},
		{proxy.Filter{Path: "/apis/**"}, 4},
		{proxy.Filter{Path: "/apis/*/**"}, 3},
		{proxy.Filter{Path: "/apis/*/v1/**"}, 2},
		{proxy.Filter{Path: "/**"}, 6},
		{proxy.Filter{Path: "/ap?"}, 1},
		{proxy.Filter{Path: "/apis/["}, 0},
		{proxy.Filter{Method: http.MethodPost}, 0},
		{proxy.Filter{Method: http.MethodGet}, 6},
		{proxy.Filter{Query: "watch=true"}, 1},
		{proxy.Filter{Accept: "as=APIGroupDiscoveryList"}, 1},
		{proxy.Filter{UserAgent: "new"}, 2},
		{proxy.Filter{Path: "/apis/**", UserAgent: "old"}, 2},
	} {
		if n := p.Count(tt.filter); n != tt.want {
			t.Errorf("%s: %d requests, want %d", tt.filter, n, tt.want)
		}
	}
	counts := p.Counts()
	if counts["old/1"]["/apis/example.com/v1/widgets"] != 1 || counts["new/2"]["/apis"] != 1 || len(counts["old/1"]) != 4 {
		t.Errorf("counts %v", counts)
	}
	if all := p.Requests(); len(all) != 6 || all[4].Query != "watch=true" || all[0].Path != "/api" {
		t.Errorf("requests %+v, want six in order", all)
	}
	p.Forget()
	if n := len(p.Requests()); n != 0 {
		t.Errorf("%d requests after Forget", n)
	}
}

func TestNoAggregated(t *testing.T) {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	const beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) {
		if accept, ok := r.Header["Accept"]; ok {
			w.Write([]byte(accept[0]))
		}
	})
	p := start(t, a.config())
	hc := client(t, p)
	all := aggregated + "," + beta + ", application/json"
	if got := get(soon(t), hc, p.URL()+"/apis", "Accept", all); got.body != all {
		t.Fatalf("before: server saw %q (%v), want %q", got.body, got.err, all)
	}
	p.NoAggregated()
	for _, tt := range []struct{ path, accept, want string }{
		{"/apis", all, "application/json"},
		{"/apis/", all, "application/json"},
		{"/api", aggregated + ",application/vnd.kubernetes.protobuf, */*;q=0.1", "application/vnd.kubernetes.protobuf,*/*;q=0.1"},
		{"/api", "application/json", "application/json"},
		{"/api", aggregated, ""},
		{"/apis/example.com", all, all},
		{"/version", all, all},
	} {
		if got := get(soon(t), hc, p.URL()+tt.path, "Accept", tt.accept); got.body != tt.want {
			t.Errorf("%s: server saw %q (%v), want %q", tt.path, got.body, got.err, tt.want)
		}
	}
	if n := p.Count(proxy.Filter{Accept: "APIGroupDiscoveryList"}); n != 7 {
		t.Errorf("%d requests counted as aggregated, want the clients' own 7", n)
	}
}
