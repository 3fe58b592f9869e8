package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/lab/proxy"
)

// api is a TLS server in the place of an API server; it remembers what reached it.
type api struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	conns    map[net.Conn]bool // those that are open
}

// newAPI starts an api that speaks HTTP/2, as API servers do, and asks for a client certificate without insisting.
func newAPI(t *testing.T, handler http.HandlerFunc) *api {
	t.Helper()
	a := &api{conns: map[net.Conn]bool{}}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.requests = append(a.requests, r)
		a.mu.Unlock()
		handler(w, r)
	}))
	a.EnableHTTP2 = true
	a.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that a closing proxy breaks off
	a.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if state == http.StateClosed {
			delete(a.conns, conn)
		} else {
			a.conns[conn] = true
		}
	}
	a.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }

// config leads to the api with a bearer token.
func (a *api) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	return &rest.Config{
		Host: a.URL, BearerToken: "secret", UserAgent: "tester/1.0",
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}
}

func (a *api) seen() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*http.Request(nil), a.requests...)
}

// open returns how many connections to the api are open.
func (a *api) open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.conns)
}

func start(t *testing.T, target *rest.Config) *proxy.HTTP {
	t.Helper()
	p, err := proxy.Start(target, proxy.Options{Log: testLog{t}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return p
}

// testLog writes into a test's log for as long as the test runs.
type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

func add(t *testing.T, p *proxy.HTTP, r *proxy.Rule) *proxy.Rule {
	t.Helper()
	if err := p.Add(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func client(t *testing.T, p *proxy.HTTP) *http.Client {
	t.Helper()
	hc, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	return hc
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	proto  string
	err    error
}

func get(ctx context.Context, hc *http.Client, url string, header ...string) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{err: err}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := hc.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body), proto: resp.Proto, err: err}
}

// goGet is get in the background.
func goGet(ctx context.Context, hc *http.Client, url string, header ...string) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- get(ctx, hc, url, header...) }()
	return done
}

// soon is the deadline of everything that should happen at once.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// await checks again and again until ok, and says what it saw last when that never comes.
func await(t *testing.T, what string, check func() (seen string, ok bool)) {
	t.Helper()
	ctx := soon(t)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, ok := check()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not in time; last seen: %s", what, seen)
		}
	}
}

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-soon(t).Done():
		t.Fatalf("%s: nothing came", what)
		panic("unreachable")
	}
}

func TestPasses(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Header.Get("Authorization"), r.UserAgent(), r.RequestURI)
	})
	p := start(t, a.config())
	hc := client(t, p)
	got := get(soon(t), hc, p.URL()+"/apis/a%2Fb/v1?limit=1;x&watch=0")
	if got.err != nil {
		t.Fatal(got.err)
	}
	if want := "HTTP/2.0 Bearer secret tester/1.0 /apis/a%2Fb/v1?limit=1;x&watch=0"; got.body != want {
		t.Errorf("server saw %q, want %q", got.body, want)
	}
	if got.status != http.StatusTeapot || got.header.Get("ETag") != `"1"` || got.proto != "HTTP/2.0" {
		t.Errorf("answer %+v, want the server's status and header over HTTP/2", got)
	}
	if _, ok := a.seen()[0].Header["X-Forwarded-For"]; ok {
		t.Error("the proxy shows itself to the server")
	}
}

func TestAddressWithPath(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	cfg := a.config()
	cfg.Host += "/clusters/one"
	p := start(t, cfg)
	if got := get(soon(t), client(t, p), p.Config().Host+"/api"); got.body != "/clusters/one/api" {
		t.Errorf("server saw %q (%v), want the target's path in front", got.body, got.err)
	}
}

func TestClientCertificate(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d %s", len(r.TLS.PeerCertificates), r.Header.Get("Authorization"))
	})
	cfg := a.config()
	cfg.BearerToken = ""
	cert, key := keyPair(t)
	cfg.CertData, cfg.KeyData = cert, key
	p := start(t, cfg)
	hc := client(t, p)
	if got := get(soon(t), hc, p.URL()); got.body != "1 " {
		t.Errorf("without a token the server saw %q (%v), want the target's certificate", got.body, got.err)
	}
	if got := get(soon(t), hc, p.URL(), "Authorization", "Bearer nobody"); got.body != "0 Bearer nobody" {
		t.Errorf("with a token the server saw %q (%v), want the token alone", got.body, got.err)
	}
}

func TestWatchStreams(t *testing.T) {
	next, gone := make(chan string), make(chan struct{})
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-next:
				io.WriteString(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				close(gone)
				return
			}
		}
	})
	p := start(t, a.config())
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+"/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client(t, p).Do(req) // returns though no event has come
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, event := range []string{"added", "deleted"} {
		next <- event
		got := make([]byte, len(event))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
			t.Fatalf("read %q (%v), want %q before the next event is sent", got, err, event)
		}
	}
	cancel()
	receive(t, "the server's watch ending after the client's", gone)
}

func TestServerDown(t *testing.T) {
	a := newAPI(t, ok)
	p := start(t, a.config())
	a.Close()
	if got := get(soon(t), client(t, p), p.URL()+"/api"); got.err == nil {
		t.Errorf("answer %d %q, want a broken request", got.status, got.body)
	}
}

func TestServerBreaksOff(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	p := start(t, a.config())
	if got := get(soon(t), client(t, p), p.URL()+"/api"); got.err == nil {
		t.Errorf("answer %d %q, want a broken request", got.status, got.body)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		gone := make(chan struct{}, 1)
		a := newAPI(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/watch" {
				return
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
		})
		p := start(t, a.config())
		hc := client(t, p)
		held := add(t, p, &proxy.Rule{Path: "/held", Hold: proxy.HoldRequest})
		answered := add(t, p, &proxy.Rule{Path: "/answered", Hold: proxy.HoldResponse})
		delayed := add(t, p, &proxy.Rule{Path: "/delayed", Delay: time.Hour})
		var pending []<-chan answer
		for _, path := range []string{"/held", "/answered", "/delayed", "/watch"} {
			pending = append(pending, goGet(soon(t), hc, p.URL()+path))
		}
		for _, rule := range []*proxy.Rule{held, answered} {
			if err := rule.AwaitHeld(soon(t), 1); err != nil {
				t.Fatal(err)
			}
		}
		await(t, "the rest on its way", func() (string, bool) {
			return fmt.Sprintf("delayed %d, server %d", delayed.Taken(), len(a.seen())), delayed.Taken() == 1 && len(a.seen()) == 2
		})
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for _, c := range pending {
			if got := receive(t, "the end of a pending request", c); got.err == nil {
				t.Errorf("answer %d %q, want a broken request", got.status, got.body)
			}
		}
		receive(t, "the server's watch", gone)
		await(t, "no connection to the server", func() (string, bool) {
			return fmt.Sprintf("%d connections", a.open()), a.open() == 0
		})
		hc.CloseIdleConnections()
		a.Close()
	}()
	await(t, "goroutines gone", func() (string, bool) {
		var stacks bytes.Buffer
		buf := make([]byte, 1<<20)
		stacks.Write(buf[:runtime.Stack(buf, true)])
		return stacks.String(), runtime.NumGoroutine() <= before
	})
}

func TestStartRefuses(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{
		"nothing":    nil,
		"bad host":   {Host: "https://[::1"},
		"no CA file": {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}},
	} {
		if p, err := proxy.Start(cfg, proxy.Options{}); err == nil {
			p.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
