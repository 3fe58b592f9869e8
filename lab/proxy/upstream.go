package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// upstream carries requests to the API server. It has connections of its own, because those that client-go shares between
// equal configurations could not be closed with the proxy.
type upstream struct {
	bare *http.Transport // no credentials but what the request carries
	cert *http.Transport // with the target's client certificate; nil when it has none
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	conns  map[*trackedConn]struct{}
	closed bool
}

func newUpstream(target *rest.Config) (*upstream, error) {
	u := &upstream{dial: target.Dial, conns: map[*trackedConn]struct{}{}}
	if u.dial == nil {
		u.dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	var err error
	if u.bare, err = u.transport(rest.AnonymousClientConfig(target)); err != nil {
		return nil, err
	}
	tlsFiles := target.TLSClientConfig
	if len(tlsFiles.CertData) > 0 || tlsFiles.CertFile != "" {
		if u.cert, err = u.transport(target); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *upstream) transport(cfg *rest.Config) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		DialContext:         u.dialTracked,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // compression is between the client and the server
		MaxIdleConnsPerHost: 100,
	}, nil
}

// RoundTrip sends r with what it carries; with the client certificate when it carries nothing.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.cert != nil && r.Header.Get("Authorization") == "" {
		return u.cert.RoundTrip(r)
	}
	return u.bare.RoundTrip(r)
}

func (u *upstream) dialTracked(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := u.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &trackedConn{Conn: raw, upstream: u}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		raw.Close()
		return nil, errors.New("proxy is closed")
	}
	u.conns[conn] = struct{}{}
	return conn, nil
}

// close ends every connection, idle or not.
func (u *upstream) close() {
	u.mu.Lock()
	u.closed = true
	conns := make([]*trackedConn, 0, len(u.conns))
	for conn := range u.conns {
		conns = append(conns, conn)
	}
	u.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
	u.bare.CloseIdleConnections()
	if u.cert != nil {
		u.cert.CloseIdleConnections()
	}
}

// trackedConn leaves its upstream's books when it is closed.
type trackedConn struct {
	net.Conn
	upstream *upstream
}

func (c *trackedConn) Close() error {
	c.upstream.mu.Lock()
	delete(c.upstream.conns, c)
	c.upstream.mu.Unlock()
	return c.Conn.Close()
}

// aggregatedParameter marks the media ranges that ask for aggregated discovery, whatever its version.
const aggregatedParameter = "as=APIGroupDiscoveryList"

func isDiscoveryRoot(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return path == "/api" || path == "/apis"
}

// dropAggregated removes the aggregated alternatives from what a client accepts. One who accepts nothing else is taken for
// one who does not care: there the server sends legacy JSON.
func dropAggregated(h http.Header) {
	var kept []string
	for _, header := range h.Values("Accept") {
		for _, mediaRange := range strings.Split(header, ",") {
			if !strings.Contains(mediaRange, aggregatedParameter) {
				kept = append(kept, strings.TrimSpace(mediaRange))
			}
		}
	}
	if len(kept) == 0 {
		h.Del("Accept")
		return
	}
	h.Set("Accept", strings.Join(kept, ","))
}
