package discovery

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultMaxBytes = 64 << 20
)

// Options of a Client. The zero value is fit for use.
type Options struct {
	// Timeout is the longest time that any single request may take, its body included; 10 s when zero.
	Timeout time.Duration
	// MaxBytes is the largest body that is read, after decompression; 64 MiB when zero.
	MaxBytes int64
	// LegacyOnly never asks for aggregated documents.
	LegacyOnly bool
	// NoPeer asks for an aggregated document of that one API server alone, without what its peers serve.
	NoPeer bool
}

func (o Options) validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("discovery options: timeout %v is negative", o.Timeout)
	case o.MaxBytes < 0:
		return fmt.Errorf("discovery options: size limit %d is negative", o.MaxBytes)
	case o.LegacyOnly && o.NoPeer:
		return errors.New("discovery options: legacy form has no profile, so legacy only and no peer exclude each other")
	}
	return nil
}

// A Client reads discovery from one API server. It is safe for concurrent use and keeps nothing between calls.
type Client struct {
	http      *http.Client
	base      *url.URL
	userAgent string
	accept    string
	timeout   time.Duration
	maxBytes  int64
}

// NewClient returns a client for the API server that cfg names. It does no I/O. hc may be nil: then a client is made from cfg;
// otherwise hc does the requests, with cfg's authentication already in it, except that redirects are never followed.
func NewClient(cfg *rest.Config, hc *http.Client, o Options) (*Client, error) {
	if cfg == nil {
		return nil, errors.New("discovery client: no configuration")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	base, err := baseURL(cfg)
	if err != nil {
		return nil, err
	}
	if hc == nil {
		if hc, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, fmt.Errorf("discovery client for %s: %w", cfg.Host, err)
		}
		// Options.Timeout alone decides how long a request may take.
		hc.Timeout = 0
	}
	// A copy, because the caller's own requests may follow redirects.
	own := *hc
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{
		http: &own, base: base,
		userAgent: cfg.UserAgent,
		accept:    acceptFor(o),
		timeout:   o.Timeout,
		maxBytes:  o.MaxBytes,
	}
	if c.userAgent == "" {
		c.userAgent = rest.DefaultKubernetesUserAgent()
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if c.maxBytes == 0 {
		c.maxBytes = defaultMaxBytes
	}
	return c, nil
}

// baseURL returns the address below which /api and /apis are, which has a path where a proxy puts many clusters behind one
// name.
func baseURL(cfg *rest.Config) (*url.URL, error) {
	bare := *cfg
	bare.APIPath, bare.GroupVersion = "", nil
	base, _, err := rest.DefaultServerUrlFor(&bare)
	if err != nil {
		return nil, fmt.Errorf("discovery client: address %q: %w", cfg.Host, err)
	}
	return base, nil
}
