package discovery

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"k8s.io/client-go/rest"
)

// slicesPath is where a cluster says at which addresses its API servers answer.
const slicesPath = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices" +
	"?labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes"

// FindEndpoints returns the API servers of a cluster, for Await, when nobody has named them: each at its own address as the
// EndpointSlices of the service "kubernetes" have it, where those can be read and every one of the addresses answers to the
// same credentials; otherwise the one address of cfg, as Shared, and then doubt says why. An error is for cfg itself, or ctx.
//
// The configurations in the result are copies.
func FindEndpoints(ctx context.Context, cfg *rest.Config) (endpoints []Endpoint, doubt string, err error) {
	c, err := NewClient(cfg, nil, Options{LegacyOnly: true})
	if err != nil {
		return nil, "", err
	}
	addresses, err := c.addresses(ctx)
	if err == nil {
		endpoints, err = direct(ctx, cfg, c.base.Hostname(), addresses)
	}
	if ctx.Err() != nil {
		return nil, "", fmt.Errorf("finding the API servers behind %s: %w", cfg.Host, ctx.Err())
	}
	if err != nil {
		return []Endpoint{{Name: c.base.Host, Config: rest.CopyConfig(cfg), Shared: true}}, err.Error(), nil
	}
	return endpoints, "", nil
}

// addresses reads the host:port pairs at which API servers answer.
func (c *Client) addresses(ctx context.Context) ([]string, error) {
	a, err := c.get(ctx, slicesPath, legacyAccept, "")
	if err != nil {
		return nil, err
	}
	if err := a.refusal(); err != nil {
		return nil, err
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Endpoints []struct {
				Addresses []string `json:"addresses"`
			} `json:"endpoints"`
			Ports []struct {
				Name string `json:"name"`
				Port int    `json:"port"`
			} `json:"ports"`
		} `json:"items"`
	}
	if err := a.decode(&list, &list.Kind, "EndpointSliceList"); err != nil {
		return nil, err
	}
	var out []string
	for _, slice := range list.Items {
		for _, port := range slice.Ports {
			if port.Name != "https" || port.Port == 0 {
				continue
			}
			for _, e := range slice.Endpoints {
				for _, address := range e.Addresses {
					out = append(out, net.JoinHostPort(address, strconv.Itoa(port.Port)))
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, a.problem("answered without any address of an API server", nil)
	}
	return out, nil
}

// direct returns an endpoint for each address, or an error when one of them does not answer: then there is an API server that
// cannot be asked, and asking only the others would look surer than it is.
func direct(ctx context.Context, cfg *rest.Config, host string, addresses []string) ([]Endpoint, error) {
	var out []Endpoint
	for _, address := range addresses {
		own := rest.CopyConfig(cfg)
		own.Host = "https://" + address
		if own.ServerName == "" {
			// Their certificates are known to be good for the name under which they are reached together, and may not
			// name every address.
			own.ServerName = host
		}
		c, err := NewClient(own, nil, Options{LegacyOnly: true})
		if err != nil {
			return nil, err
		}
		if _, err := c.document(ctx, corePath, document{}); err != nil {
			return nil, fmt.Errorf("API server at %s: %w", address, err)
		}
		out = append(out, Endpoint{Name: address, Config: own})
	}
	return out, nil
}
