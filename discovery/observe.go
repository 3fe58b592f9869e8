package discovery

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// observer looks at one endpoint, round after round.
type observer struct {
	endpoint Endpoint
	options  AwaitOptions
	// aggregated, legacy and lists ask the same API server through the same connections.
	aggregated, legacy, lists *Client
	// doc is the aggregated document as last seen, to be revalidated.
	doc document
}

func newObserver(e Endpoint, o AwaitOptions) (*observer, error) {
	ob := &observer{endpoint: e, options: o}
	return ob, ob.connect()
}

// connect makes the clients. For a shared address they get a transport of their own, so that the next round is likely to reach
// another API server, and all requests of one round reach the same one where HTTP/2 is spoken.
func (ob *observer) connect() error {
	var hc *http.Client
	cfg := ob.endpoint.Config
	if ob.endpoint.Shared && cfg != nil && cfg.Transport == nil {
		own := rest.CopyConfig(cfg)
		// With certificates in memory the transport starts no goroutine that watches their files.
		if err := rest.LoadTLSFiles(own); err != nil {
			return err
		}
		if own.Proxy == nil {
			own.Proxy = http.ProxyFromEnvironment
		}
		// client-go shares transports between equal configurations, but never those with a Proxy function.
		var err error
		if hc, err = rest.HTTPClientFor(own); err != nil {
			return err
		}
	}
	c, err := NewClient(cfg, hc, Options{Timeout: ob.options.Timeout, NoPeer: true})
	if err != nil {
		return err
	}
	legacy := *c
	legacy.accept = legacyAccept
	lists := legacy
	lists.timeout = ob.options.ListTimeout
	ob.close()
	ob.aggregated, ob.legacy, ob.lists = c, &legacy, &lists
	return nil
}

// close gives up connections that nobody else shares.
func (ob *observer) close() {
	if ob.aggregated != nil && ob.endpoint.Shared && ob.endpoint.Config.Transport == nil {
		utilnet.CloseIdleConnectionsFor(ob.aggregated.http.Transport)
	}
}

func (ob *observer) report() EndpointReport {
	r := EndpointReport{Name: ob.endpoint.Name, Shared: ob.endpoint.Shared}
	if ob.doc.form != Legacy {
		r.Aggregated = ob.doc.form
	}
	return r
}

// look asks for everything that bears on what is wanted and returns what differs, and how many requests it took. The order of
// the differences does not depend on the order of the answers.
func (ob *observer) look(ctx context.Context, want []Want) ([]Difference, int) {
	if ob.endpoint.Shared {
		if err := ob.connect(); err != nil {
			return []Difference{{Endpoint: ob.endpoint.Name, Want: "a connection", Have: err.Error()}}, 0
		}
	}
	checks := ob.checks(want)
	found := make([][]Difference, len(checks))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(ob.options.Parallel, len(checks)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				found[i] = checks[i](ctx)
			}
		}()
	}
	for i := range checks {
		next <- i
	}
	close(next)
	wg.Wait()
	var all []Difference
	for _, some := range found {
		for _, d := range some {
			d.Endpoint = ob.endpoint.Name
			all = append(all, d)
		}
	}
	return all, len(checks)
}

// A check makes one request and says in what its answer differs from what is wanted.
type check func(context.Context) []Difference

func (ob *observer) checks(want []Want) []check {
	checks := []check{
		func(ctx context.Context) []Difference { return ob.checkAggregated(ctx, want) },
		func(ctx context.Context) []Difference { return ob.checkGroupList(ctx, want) },
	}
	for _, w := range want {
		checks = append(checks, func(ctx context.Context) []Difference {
			g, found, err := ob.legacy.groupEntry(ctx, w.Group)
			at := Difference{Form: Legacy, Path: groupPath(w.Group), Group: w.Group}
			if err != nil {
				return at.unknown("an answer", err)
			}
			return w.compareVersions(at, g, found)
		})
		for _, version := range w.versions() {
			checks = append(checks, func(ctx context.Context) []Difference {
				return ob.checkVersion(ctx, w, version)
			})
			for _, resource := range w.Served[version] {
				checks = append(checks, ob.listCheck(w.Group, version, resource, true))
			}
			for _, resource := range w.Gone[version] {
				checks = append(checks, ob.listCheck(w.Group, version, resource, false))
			}
		}
	}
	return checks
}

func (ob *observer) checkAggregated(ctx context.Context, want []Want) []Difference {
	doc, err := ob.aggregated.document(ctx, groupsPath, ob.doc)
	if err != nil {
		at := Difference{Form: AggregatedV2, Path: groupsPath}
		return at.unknown("an answer", err)
	}
	ob.doc = doc
	if doc.form == Legacy {
		// The server has no aggregated form, and this is the list of groups that checkGroupList looks at.
		return nil
	}
	var out []Difference
	for _, w := range want {
		at := Difference{Form: doc.form, Path: groupsPath, Group: w.Group}
		g, found := doc.group(w.Group)
		out = append(out, w.compareVersions(at, g, found)...)
		for _, v := range g.Versions {
			out = append(out, w.compareResources(at, v)...)
		}
	}
	return out
}

func (ob *observer) checkGroupList(ctx context.Context, want []Want) []Difference {
	at := Difference{Form: Legacy, Path: groupsPath}
	doc, err := ob.legacy.document(ctx, groupsPath, document{})
	if err != nil {
		return at.unknown("an answer", err)
	}
	var out []Difference
	for _, w := range want {
		at.Group = w.Group
		g, found := doc.group(w.Group)
		out = append(out, w.compareVersions(at, g, found)...)
	}
	return out
}

// checkVersion reads one group-version's own document.
func (ob *observer) checkVersion(ctx context.Context, w Want, version string) []Difference {
	at := Difference{Form: Legacy, Path: groupPath(w.Group, version), Group: w.Group, Version: version}
	resources, err := ob.legacy.resources(ctx, w.Group, version)
	_, served := w.Served[version]
	switch {
	case notFound(err) && !served:
		return nil
	case notFound(err):
		at.Want, at.Have = "resources", "404"
		return []Difference{at}
	case err != nil:
		return at.unknown("an answer", err)
	case !served && !w.Others:
		at.Want, at.Have = "404", fmt.Sprintf("%d resources", len(resources))
		return []Difference{at}
	}
	return w.compareResources(at, GroupVersion{Version: version, Resources: resources})
}

// listCheck asks for one object of a resource, in any namespace.
func (ob *observer) listCheck(group, version, resource string, served bool) check {
	at := Difference{
		Form: ListRequest, Path: groupPath(group, version, resource),
		Group: group, Version: version, Resource: resource,
	}
	query := url.Values{"limit": {"1"}}.Encode()
	return func(ctx context.Context) []Difference {
		a, err := ob.lists.get(ctx, at.Path+"?"+query, legacyAccept, "")
		if err != nil {
			return at.unknown(listWanted(served), err)
		}
		return at.compareList(served, a)
	}
}
