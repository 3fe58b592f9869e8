package proxy_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/lab/proxy"
)

func TestHoldRequest(t *testing.T) {
	a := newAPI(t, ok)
	p := start(t, a.config())
	hc := client(t, p)
	rule := add(t, p, &proxy.Rule{Path: "/apis/*/v1alpha4", Hold: proxy.HoldRequest})
	one := goGet(soon(t), hc, p.URL()+"/apis/a.example.com/v1alpha4")
	two := goGet(soon(t), hc, p.URL()+"/apis/b.example.com/v1alpha4")
	if err := rule.AwaitHeld(soon(t), 2); err != nil {
		t.Fatal(err)
	}
	if got := get(soon(t), hc, p.URL()+"/apis/a.example.com/v1"); got.body != "ok" {
		t.Errorf("another version: %+v, want it to pass", got)
	}
	for _, r := range a.seen() {
		if strings.HasSuffix(r.URL.Path, "/v1alpha4") {
			t.Errorf("the server has seen %s while it is held", r.URL.Path)
		}
	}
	rule.Release()
	rule.Release()
	for _, c := range []<-chan answer{one, two} {
		if got := receive(t, "a released request", c); got.body != "ok" {
			t.Errorf("released request: %+v, want ok", got)
		}
	}
	if got := get(soon(t), hc, p.URL()+"/apis/a.example.com/v1alpha4"); got.body != "ok" {
		t.Errorf("after the release: %+v, want ok", got)
	}
	if rule.Held() != 0 || rule.Taken() != 2 {
		t.Errorf("holds %d and took %d, want 0 and 2: a released rule is out of the way", rule.Held(), rule.Taken())
	}
}

func TestHoldResponse(t *testing.T) {
	a := newAPI(t, ok)
	p := start(t, a.config())
	rule := add(t, p, &proxy.Rule{Hold: proxy.HoldResponse})
	pending := goGet(soon(t), client(t, p), p.URL()+"/api")
	if err := rule.AwaitHeld(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	if n := len(a.seen()); n != 1 {
		t.Errorf("the server has seen %d requests, want 1", n)
	}
	select {
	case got := <-pending:
		t.Errorf("the client has an answer while it is held: %+v", got)
	default:
	}
	p.Remove(rule)
	if got := receive(t, "the answer", pending); got.body != "ok" {
		t.Errorf("released answer: %+v, want ok", got)
	}
}

// TestHeldClientGoes: a request whose client went away is not held any more, and never reaches the server. HTTP/1 tells
// a server that only once the request's body has been read.
func TestHeldClientGoes(t *testing.T) {
	for _, proto := range []string{"http/1.1", "h2"} {
		t.Run(proto, func(t *testing.T) {
			a := newAPI(t, ok)
			p := start(t, a.config())
			cfg := p.Config()
			cfg.NextProtos = []string{proto}
			hc, err := rest.HTTPClientFor(cfg)
			if err != nil {
				t.Fatal(err)
			}
			rule := add(t, p, &proxy.Rule{Method: http.MethodPost, Hold: proxy.HoldRequest})
			ctx, cancel := context.WithCancel(soon(t))
			done := make(chan error, 1)
			go func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(), strings.NewReader("body"))
				if err == nil {
					_, err = hc.Do(req)
				}
				done <- err
			}()
			if err := rule.AwaitHeld(soon(t), 1); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := receive(t, "the client's end", done); !errors.Is(err, context.Canceled) {
				t.Errorf("client ended with %v, want its context's end", err)
			}
			await(t, "the rule to notice", func() (string, bool) {
				return fmt.Sprintf("%d held", rule.Held()), rule.Held() == 0
			})
			rule.Release()
			if n := len(a.seen()); n != 0 {
				t.Errorf("the server has seen %d requests, want none", n)
			}
		})
	}
}

func TestHeldBodyArrives(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	p := start(t, a.config())
	add(t, p, &proxy.Rule{Delay: time.Nanosecond})
	resp, err := client(t, p).Post(p.URL(), "text/plain", strings.NewReader("the body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "the body" {
		t.Errorf("server got %q (%v), want the body", body, err)
	}
}

func TestAwaitHeldSaysWhatItSaw(t *testing.T) {
	a := newAPI(t, ok)
	p := start(t, a.config())
	rule := add(t, p, &proxy.Rule{Path: "/apis", UserAgent: "probe", Hold: proxy.HoldRequest})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the test's reason")
	cancel(reason)
	err := rule.AwaitHeld(ctx, 3)
	want := "proxy: rule /apis agent probe, hold request: holds 0 of 3 requests, took 0: the test's reason"
	if !errors.Is(err, reason) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestFailDelayAndRewrite(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			io.WriteString(z, `{"from":"server"}`)
			return
		}
		io.WriteString(w, `{"from":"server"}`)
	})
	p := start(t, a.config())
	hc := client(t, p)
	add(t, p, &proxy.Rule{Path: "/fail", Times: 2, Fail: &proxy.Failure{Status: 503, Body: "later\n"}})
	add(t, p, &proxy.Rule{Path: "/typed", Fail: &proxy.Failure{Status: 404, Body: "<html>", ContentType: "text/html"}})
	add(t, p, &proxy.Rule{Path: "/slow", Delay: 30 * time.Millisecond, Fail: &proxy.Failure{Status: 504}})
	add(t, p, &proxy.Rule{Path: "/rewrite", Rewrite: func(r *proxy.Response) {
		r.Status = http.StatusAccepted
		r.Header.Set("Content-Type", "text/plain")
		r.Body = []byte(strings.ReplaceAll(string(r.Body), "server", "the rule"))
	}})
	add(t, p, &proxy.Rule{Path: "/empty", Rewrite: func(r *proxy.Response) { r.Status, r.Body = http.StatusNoContent, nil }})
	add(t, p, &proxy.Rule{Path: "/fail", Fail: &proxy.Failure{Status: 500, Body: "second rule"}})
	for _, want := range []struct {
		path        string
		status      int
		contentType string
		body        string
	}{
		{"/fail", 503, "text/plain; charset=utf-8", "later\n"},
		{"/fail", 503, "text/plain; charset=utf-8", "later\n"},
		{"/fail", 500, "text/plain; charset=utf-8", "second rule"},
		{"/typed", 404, "text/html", "<html>"},
		{"/rewrite", 202, "text/plain", `{"from":"the rule"}`},
		{"/empty", 204, "application/json", ""},
		{"/other", 200, "application/json", `{"from":"server"}`},
	} {
		got := get(soon(t), hc, p.URL()+want.path)
		if got.err != nil || got.status != want.status || got.body != want.body || got.header.Get("Content-Type") != want.contentType {
			t.Errorf("%s: %+v, want %+v", want.path, got, want)
		}
	}
	began := time.Now()
	if got := get(soon(t), hc, p.URL()+"/slow"); got.status != 504 {
		t.Errorf("/slow: %+v, want 504", got)
	}
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("/slow took %v, want at least 30ms", took)
	}
	for _, r := range a.seen() {
		if r.URL.Path == "/fail" || r.URL.Path == "/typed" || r.URL.Path == "/slow" {
			t.Errorf("%s reached the server", r.URL.Path)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	a := newAPI(t, ok)
	p := start(t, a.config())
	hook := func(*proxy.Response) {}
	for _, tt := range []struct {
		rule *proxy.Rule
		want string
	}{
		{&proxy.Rule{}, "one of Hold, Delay, Fail and Rewrite must be set"},
		{&proxy.Rule{Hold: 7}, "unknown hold 7"},
		{&proxy.Rule{Delay: -1}, "negative delay -1ns"},
		{&proxy.Rule{Delay: 1, Times: -1}, "negative times -1"},
		{&proxy.Rule{Fail: &proxy.Failure{}}, "failure status 0 is not a final one"},
		{&proxy.Rule{Fail: &proxy.Failure{Status: 101}}, "failure status 101 is not a final one"},
		{&proxy.Rule{Fail: &proxy.Failure{Status: 500}, Rewrite: hook}, "a failure leaves no answer"},
		{&proxy.Rule{Fail: &proxy.Failure{Status: 500}, Hold: proxy.HoldResponse}, "a failure leaves no answer"},
		{&proxy.Rule{Delay: 1, Path: "/apis/["}, "syntax error in pattern"},
		{&proxy.Rule{Delay: 1, Path: "apis"}, "does not begin with a slash"},
	} {
		if err := p.Add(tt.rule); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	if got := get(soon(t), client(t, p), p.URL()); got.body != "ok" {
		t.Errorf("a refused rule is in force: %+v", got)
	}
}
