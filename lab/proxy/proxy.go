// Package proxy puts scripted trouble between the parts of the lab.
//
// An [HTTP] proxy stands between clients and one API server. Rules hold, delay, fail or rewrite chosen requests, so that
// a race becomes a script: hold the read of one version, change the CRD, release. It counts what passes.
//
// A [Lag] proxy stands between an API server and etcd and delays every byte that etcd sends, so that this server lags
// behind its twins.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// HTTP is a reverse proxy in front of one API server. It is safe for concurrent use.
//
// It speaks TLS (HTTP/2 and HTTP/1.1) to its clients, with a certificate of its own that only [HTTP.Config] trusts. What no
// rule touches passes unchanged and unbuffered, watches included. Where the API server cannot be reached, or breaks off an
// answer, the client's request breaks off as well: the proxy never answers in the server's place unless a rule says so.
type HTTP struct {
	target *rest.Config
	url    string
	caPEM  []byte
	log    *log.Logger

	listener net.Listener
	server   *http.Server
	forward  *httputil.ReverseProxy
	upstream *upstream

	// ctx is the parent of every request's context: its end is what makes Close quick.
	ctx    context.Context
	cancel context.CancelFunc
	served chan struct{} // closed when the accept loop has ended

	noAggregated atomic.Bool
	requests     requests

	mu       sync.Mutex
	rules    []*Rule
	closed   bool
	handlers sync.WaitGroup // Add only under mu and while not closed
}

// Options are the options of Start. The zero value works.
type Options struct {
	// Log receives a line for each request that a rule touched or that broke off. Default: none.
	Log io.Writer
}

// Start starts a proxy in front of the API server of target, listening on a free port of the loopback interface. The caller
// closes it with [HTTP.Close]. It sends nothing by itself, so target need not be up yet.
//
// A request passes with the credentials it carries. Only where target authenticates with a client certificate, which cannot
// pass a proxy that ends TLS, requests without an Authorization header go out with that certificate.
func Start(target *rest.Config, o Options) (*HTTP, error) {
	if target == nil {
		return nil, errors.New("proxy: no target")
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	targetURL, _, err := rest.DefaultServerUrlFor(target)
	if err != nil {
		return nil, fmt.Errorf("proxy: target %q: %w", target.Host, err)
	}
	up, err := newUpstream(target)
	if err != nil {
		return nil, fmt.Errorf("proxy: target %q: %w", target.Host, err)
	}
	cert, caPEM, err := newCertificate()
	if err != nil {
		return nil, fmt.Errorf("proxy: certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &HTTP{
		target:   rest.CopyConfig(target),
		url:      "https://" + listener.Addr().String(),
		caPEM:    caPEM,
		log:      log.New(o.Log, "proxy: ", log.Ltime|log.Lmicroseconds),
		listener: listener,
		upstream: up,
		served:   make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.forward = p.newForward(targetURL)
	p.server = &http.Server{
		Handler:     http.HandlerFunc(p.handle),
		BaseContext: func(net.Listener) context.Context { return p.ctx },
		ErrorLog:    p.log,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		// Held requests keep their streams: a storm of them must not block the requests that no rule touches.
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 4096},
		ReadHeaderTimeout: time.Minute,
	}
	go func() {
		defer close(p.served)
		if err := p.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			p.log.Printf("serving ended: %v", err)
		}
	}()
	return p, nil
}

// URL returns the address of the proxy, "https://127.0.0.1:" and the port.
func (p *HTTP) URL() string { return p.url }

// Config returns a copy of the target's configuration that leads through the proxy. It keeps the target's token, user agent,
// rate limits and wrappers; it trusts the proxy's certificate and no other.
func (p *HTTP) Config() *rest.Config {
	cfg := rest.CopyConfig(p.target)
	cfg.Host = p.url // without the path of the target's address, which the proxy puts in front
	cfg.TLSClientConfig = rest.TLSClientConfig{CAData: append([]byte(nil), p.caPEM...)}
	cfg.Dial = nil
	cfg.Proxy = nil
	return cfg
}

// NoAggregated forces legacy discovery from now on: the aggregated alternatives disappear from what clients say they accept
// on /api and /apis, so that the real server itself answers in the legacy form, as one without aggregated discovery would.
// Rules and counts still see the client's own Accept header.
func (p *HTTP) NoAggregated() { p.noAggregated.Store(true) }

// Close ends the proxy: held requests and watches break off, connections to both sides are closed. It returns when no request is
// being handled any more. Further calls do nothing.
func (p *HTTP) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	// Serve has not registered the listener yet when Close follows Start at once.
	p.listener.Close()
	<-p.served
	p.handlers.Wait()
	p.upstream.close()
	return err
}

// enter says whether a request may be handled; if so, leave must follow.
func (p *HTTP) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.handlers.Add(1)
	return true
}

func (p *HTTP) leave() { p.handlers.Done() }

// newForward makes the part that talks to the API server at target.
func (p *HTTP) newForward(target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery // ReverseProxy drops what it cannot parse
			if p.noAggregated.Load() && isDiscoveryRoot(r.In.URL.Path) {
				dropAggregated(r.Out.Header)
			}
			if rule := ruleOf(r.In.Context()); rule != nil && rule.Rewrite != nil {
				r.Out.Header.Del("Accept-Encoding") // the hook gets a plain body
			}
		},
		Transport:      p.upstream,
		FlushInterval:  -1, // watch events pass as they come
		ErrorLog:       p.log,
		ModifyResponse: p.modifyResponse,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			p.log.Printf("%s %s breaks off: %v", r.Method, r.URL.Path, err)
			panic(http.ErrAbortHandler) // net/http's way to break off: never an answer of our own
		},
	}
}
