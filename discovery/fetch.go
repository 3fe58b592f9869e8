package discovery

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

const (
	corePath   = "/api"
	groupsPath = "/apis"
)

// Fetch reads everything that the API server says it serves: the core group under /api and all others under /apis, in
// aggregated form where the server has it. prev may be nil; otherwise it is revalidated, groups that did not change are
// shared with it, and group-versions that are stale or unavailable now keep the resources that prev knows. When nothing changed
// at all, the result has prev's content and a newer AsOf.
//
// In legacy form, the groups and their versions are listed, and each version is Unavailable with ErrNotRead, with the
// resources that prev knows, until FetchGroup has read the group.
//
// On an error there is no snapshot, and prev is as good as it was. The error is a *ResponseError where the server answered,
// but not with discovery, and wraps the context's error where it did not answer in time.
func (c *Client) Fetch(ctx context.Context, prev *Snapshot) (*Snapshot, error) {
	if prev == nil {
		prev = &Snapshot{}
	}
	asOf := time.Now()
	core, rest, err := c.documents(ctx, prev)
	if err != nil {
		return nil, err
	}
	if !prev.spliced && core.same(prev.core) && rest.same(prev.rest) {
		next := *prev
		next.asOf = asOf
		return &next, nil
	}
	groups := make([]Group, 0, len(core.groups)+len(rest.groups))
	groups = append(append(groups, core.groups...), rest.groups...)
	keepLastKnown(groups, prev)
	// From here on the documents share the snapshot's memory, with what was kept in it.
	core.groups, rest.groups = groups[:len(core.groups)], groups[len(core.groups):]
	next := build(groups, asOf)
	next.form, next.core, next.rest = rest.form, core, rest
	return next, nil
}

// documents reads the two documents at the same time. When one cannot be had, the other is not waited for.
func (c *Client) documents(ctx context.Context, prev *Snapshot) (core, rest document, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		doc  document
		core bool
		err  error
	}
	results := make(chan result, 2)
	go func() {
		doc, err := c.coreDocument(ctx, prev.core)
		results <- result{doc, true, err}
	}()
	go func() {
		doc, err := c.document(ctx, groupsPath, prev.rest)
		results <- result{doc, false, err}
	}()
	for range 2 {
		r := <-results
		if r.err != nil && err == nil {
			err = r.err
			cancel()
		}
		if r.core {
			core = r.doc
		} else {
			rest = r.doc
		}
	}
	return core, rest, err
}

// coreDocument allows for API servers without a core group, such as one behind an aggregated API that is spoken to directly. A
// server that had one does not lose it: then a 404 comes from something else.
func (c *Client) coreDocument(ctx context.Context, prev document) (document, error) {
	doc, err := c.document(ctx, corePath, prev)
	if notFound(err) && len(prev.groups) == 0 {
		return document{}, nil
	}
	return doc, err
}

// document reads one document, conditionally where prev has a validator. prev itself comes back when the server confirms it.
func (c *Client) document(ctx context.Context, path string, prev document) (document, error) {
	etag := prev.etag
	if c.accept == legacyAccept {
		etag = ""
	}
	a, err := c.get(ctx, path, c.accept, etag)
	if err != nil {
		return document{}, err
	}
	if a.status == http.StatusNotModified && etag != "" {
		return prev, nil
	}
	if err := a.refusal(); err != nil {
		return document{}, err
	}
	var doc document
	switch form := a.aggregatedForm(); {
	case form != "":
		doc, err = parseAggregated(a, form, prev)
	case path == corePath:
		doc, err = parseCoreVersions(a)
	default:
		doc, err = parseGroupList(a)
	}
	if err != nil {
		return document{}, err
	}
	for i := range doc.groups {
		if isCore := doc.groups[i].Name == ""; isCore != (path == corePath) {
			return document{}, a.problem("answered with a group that does not belong there: \""+doc.groups[i].Name+"\"", nil)
		}
	}
	return doc, nil
}

// same reports whether d is prev itself, confirmed by the server, or the same absence.
func (d *document) same(prev document) bool {
	if len(d.groups) == 0 || len(prev.groups) == 0 {
		return len(d.groups) == len(prev.groups)
	}
	return &d.groups[0] == &prev.groups[0]
}

// keepLastKnown gives group-versions whose resources could not be read those that prev has.
func keepLastKnown(groups []Group, prev *Snapshot) {
	for i := range groups {
		if before, ok := prev.Group(groups[i].Name); ok {
			groups[i].keepLastKnown(before)
		}
	}
}

// keepLastKnown replaces g's versions rather than write to them: they may be shared with an older snapshot that lacks what
// was spliced in since.
func (g *Group) keepLastKnown(before Group) {
	cloned := false
	for j, v := range g.Versions {
		if v.State == Current || len(v.Resources) > 0 || errors.Is(v.Reason, ErrNotServed) {
			continue
		}
		known, ok := before.Version(v.Version)
		if !ok || len(known.Resources) == 0 {
			continue
		}
		if !cloned {
			g.Versions, cloned = slices.Clone(g.Versions), true
		}
		g.Versions[j].Resources = known.Resources
	}
}
