package converge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
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
		return Address{}, fmt.Errorf("apiserver %q: not of the form NAME=URL or URL, such as https://10.0.0.1:6443", s)
	}
	if name == "" {
		name = u.Host
	}
	return Address{Name: name, URL: address}, nil
}

// ParseAddresses reads each of the list with ParseAddress. Naming a server twice is an error.
func ParseAddresses(list []string) ([]Address, error) {
	var out []Address
	for _, s := range list {
		a, err := ParseAddress(s)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(out, func(b Address) bool { return a.Name == b.Name || a.URL == b.URL }); i >= 0 {
			return nil, fmt.Errorf("apiserver %q: named already, as %s=%s; each API server is named once", s, out[i].Name, out[i].URL)
		}
		out = append(out, a)
	}
	return out, nil
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

// UnreachableError names API servers that do not say what they serve, so that there is no waiting for them to agree.
type UnreachableError struct {
	Reasons []string // "NAME: why"
	Err     error    // all of them, joined
}

func (e *UnreachableError) Error() string {
	return "api server " + strings.Join(e.Reasons, "\napi server ")
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Hints says what to do about it.
func (e *UnreachableError) Hints() []string {
	return []string{"nothing was changed: correct --apiserver, or wait until the server answers; it must be one of the same cluster, with the kubeconfig's credentials and CA"}
}

// Check asks each server once what it serves. The error is an *UnreachableError that names all that did not answer.
func (s Servers) Check(ctx context.Context) error {
	failed := &UnreachableError{}
	var errs []error
	for _, e := range s.Endpoints {
		c, err := discovery.NewClient(e.Config, nil, discovery.Options{NoPeer: true})
		if err == nil {
			_, err = c.Fetch(ctx, nil)
		}
		if err != nil {
			failed.Reasons = append(failed.Reasons, fmt.Sprintf("%s: %v", e.Name, err))
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	failed.Err = errors.Join(errs...)
	return failed
}
