package converge

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/discovery"
)

// Address is an API server that the operator names.
type Address struct {
	Name string
	URL  string
}

// ParseAddress reads NAME=URL or URL; without a name the URL's host and port is the name.
func ParseAddress(s string) (Address, error) {
	name, address, named := strings.Cut(s, "=")
	if !named || strings.Contains(name, "://") {
		name, address = "", s
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return Address{}, fmt.Errorf("apiserver %q: not of the form NAME=URL or URL, with https", s)
	}
	if name == "" {
		name = u.Host
	}
	return Address{Name: name, URL: address}, nil
}

// Servers are the API servers that have to agree.
type Servers struct {
	Endpoints []discovery.Endpoint
	// Sure: these are all API servers, so that their agreement proves convergence.
	Sure bool
	// Certainty says in words how sure it is.
	Certainty string
}

// FindServers gives the named API servers, reached with config's credentials; without any, those that the cluster itself
// lists, where all of them answer from here; else config's own address, behind which any number may be. An error is
// for config itself, or ctx.
func FindServers(ctx context.Context, config *rest.Config, named []Address) (Servers, error) {
	if len(named) > 0 {
		s := Servers{Sure: true, Certainty: "each API server that --apiserver names"}
		for _, a := range named {
			own := rest.CopyConfig(config)
			own.Host = a.URL
			s.Endpoints = append(s.Endpoints, discovery.Endpoint{Name: a.Name, Config: own})
		}
		return s, nil
	}
	endpoints, doubt, err := discovery.FindEndpoints(ctx, config)
	if err != nil {
		return Servers{}, err
	}
	if doubt != "" {
		return Servers{Endpoints: endpoints,
			Certainty: "samples of the kubeconfig's address only, as further API servers may be behind it; name each with --apiserver to be sure (" + doubt + ")"}, nil
	}
	return Servers{Endpoints: endpoints, Sure: true, Certainty: "each API server in EndpointSlice default/kubernetes"}, nil
}
