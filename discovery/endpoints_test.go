package discovery

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// apiServer runs a script behind TLS, with a certificate for example.com and 127.0.0.1, like API servers that share one name.
func apiServer(t *testing.T, s *script) (*httptest.Server, *rest.Config) {
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func sliceReply(servers ...*httptest.Server) reply {
	var slices []any
	for _, server := range servers {
		u, _ := url.Parse(server.URL)
		port, _ := strconv.Atoi(u.Port())
		slices = append(slices, map[string]any{
			"endpoints": []any{map[string]any{"addresses": []string{u.Hostname()}}},
			"ports":     []any{map[string]any{"name": "https", "port": port}, map[string]any{"name": "other", "port": 1}},
		})
	}
	return jsonReply(map[string]any{"kind": "EndpointSliceList", "items": slices})
}

const endpointSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

func TestFindEndpoints(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	first, cfg := apiServer(t, s)
	second, _ := apiServer(t, s)
	gone, _ := apiServer(t, s)
	gone.Close()

	s.set(endpointSlices, sliceReply(first, second))
	endpoints, doubt, err := FindEndpoints(context.Background(), cfg)
	if err != nil || doubt != "" || len(endpoints) != 2 {
		t.Fatalf("got %+v, %q, %v", endpoints, doubt, err)
	}
	for i, server := range []*httptest.Server{first, second} {
		if e := endpoints[i]; e.Config.Host != server.URL || e.Name != server.Listener.Addr().String() || e.Shared {
			t.Errorf("endpoint %+v", e)
		}
	}
	if _, err := Await(context.Background(), endpoints, wanted1(), AwaitOptions{Interval: 1}); err != nil {
		t.Error(err)
	}

	for name, test := range map[string]struct {
		reply reply
		doubt string
	}{
		"one unreachable": {sliceReply(first, gone), "API server at " + gone.Listener.Addr().String() + ": GET /api: "},
		"no addresses":    {sliceReply(), "answered without any address of an API server"},
		"forbidden":       {statusReply(403, "not for you"), "answered 403: not for you"},
		"other kind":      {jsonReply(map[string]any{"kind": "Status"}), `answered with kind "Status" instead of EndpointSliceList`},
	} {
		s.set(endpointSlices, test.reply)
		endpoints, doubt, err := FindEndpoints(context.Background(), cfg)
		if err != nil || len(endpoints) != 1 || !endpoints[0].Shared || endpoints[0].Config.Host != cfg.Host || !strings.Contains(doubt, test.doubt) {
			t.Errorf("%s: got %+v, %q, %v", name, endpoints, doubt, err)
		}
	}
}

// Each round at a shared address goes over a connection of its own, and leaves none behind.
func TestSharedEndpointConnections(t *testing.T) {
	s := newScript(t)
	s.serve(true, widgets("v1"))
	_, cfg := apiServer(t, s)
	connections := map[string]bool{}
	count := func(shared bool) int {
		for k := range connections {
			delete(connections, k)
		}
		s.mu.Lock()
		s.remote = connections
		s.mu.Unlock()
		_, err := Await(context.Background(), []Endpoint{{Name: "a", Config: cfg, Shared: shared}}, wanted1(),
			AwaitOptions{Interval: 1, Parallel: 1, SharedRounds: 5})
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(connections)
	}
	if n := count(false); n != 1 {
		t.Errorf("%d connections to an address of one API server", n)
	}
	if n := count(true); n != 5 {
		t.Errorf("%d connections in 5 rounds at a shared address", n)
	}
}

func wanted1() []Want {
	return []Want{{Group: "example.com", Served: map[string][]string{"v1": {"widgets"}}}}
}

func TestFindEndpointsRefuses(t *testing.T) {
	if _, _, err := FindEndpoints(context.Background(), nil); err == nil {
		t.Error("no configuration is accepted")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := FindEndpoints(ctx, &rest.Config{Host: "127.0.0.1:1"}); err == nil {
		t.Error("a cancelled search has a result")
	}
}
