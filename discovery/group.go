package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// FetchGroup reads one group in legacy form: its entry, then all its versions at once. An empty name is the core group. found
// is false when the server does not list the group.
//
// A version that is listed and yet answers 404 was not served at that moment: the entry is read once more, and with it what is
// missing. A version that is listed still and still answers 404 is Unavailable with ErrNotServed: it may be about to come or
// to go, and only a later read can tell. A version that cannot be read for another reason is Unavailable with that reason. Neither
// affects the group's other versions; the error is for the entry alone.
func (c *Client) FetchGroup(ctx context.Context, group string) (g Group, found bool, err error) {
	if err := checkName("group", group); err != nil && group != "" {
		return Group{}, false, err
	}
	first, found, err := c.groupEntry(ctx, group)
	if err != nil || !found {
		return Group{}, false, err
	}
	missing := c.readVersions(ctx, &first)
	if err := ctx.Err(); err != nil {
		// Otherwise the caller's own impatience would be written down as the server's fault.
		return Group{}, false, fmt.Errorf("reading group %q: %w", group, err)
	}
	if !missing {
		return first, true, nil
	}
	second, found, err := c.groupEntry(ctx, group)
	if err != nil {
		// What was read stays good; the missing versions say themselves that they may come or go.
		return first, true, nil
	}
	if !found {
		return Group{}, false, nil
	}
	for i := range second.Versions {
		v := &second.Versions[i]
		if read, ok := first.Version(v.Version); ok && !errors.Is(read.Reason, ErrNotServed) {
			*v = read
		}
	}
	c.readVersions(ctx, &second)
	if err := ctx.Err(); err != nil {
		return Group{}, false, fmt.Errorf("reading group %q: %w", group, err)
	}
	return second, true, nil
}

// groupEntry reads which versions a group has.
func (c *Client) groupEntry(ctx context.Context, group string) (Group, bool, error) {
	a, err := c.get(ctx, groupPath(group), legacyAccept, "")
	if err != nil {
		return Group{}, false, err
	}
	if a.saysNotFound() {
		return Group{}, false, nil
	}
	if err := a.refusal(); err != nil {
		return Group{}, false, err
	}
	if group == "" {
		doc, err := parseCoreVersions(a)
		if err != nil {
			return Group{}, false, err
		}
		return doc.groups[0], true, nil
	}
	g, err := parseGroupEntry(a, group)
	if err != nil {
		return Group{}, false, err
	}
	// A group whose last version has just gone.
	return g, len(g.Versions) > 0, nil
}

// readVersions reads the resources of every version that was not read yet, all at the same time, so that one that hangs costs no
// more than one deadline. It reports whether any answered 404.
func (c *Client) readVersions(ctx context.Context, g *Group) (missing bool) {
	var wg sync.WaitGroup
	for i := range g.Versions {
		v := &g.Versions[i]
		if !errors.Is(v.Reason, ErrNotRead) {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			c.readVersion(ctx, g.Name, v)
		}()
	}
	wg.Wait()
	for i := range g.Versions {
		missing = missing || errors.Is(g.Versions[i].Reason, ErrNotServed)
	}
	return missing
}

func (c *Client) readVersion(ctx context.Context, group string, v *GroupVersion) {
	resources, err := c.resources(ctx, group, v.Version)
	switch {
	case err == nil:
		v.State, v.Reason, v.Resources = Current, nil, resources
	case notFound(err):
		v.Reason = ErrNotServed
	default:
		v.Reason = err
	}
}

func (c *Client) resources(ctx context.Context, group, version string) ([]Resource, error) {
	a, err := c.get(ctx, groupPath(group, version), legacyAccept, "")
	if err != nil {
		return nil, err
	}
	if err := a.refusal(); err != nil {
		return nil, err
	}
	return parseResources(a, group, version)
}

// saysNotFound reports whether this is a 404 from an API server, and not a page of a proxy that has lost its way.
func (a *answer) saysNotFound() bool {
	if a.status != http.StatusNotFound {
		return false
	}
	_, isStatus := a.statusObject()
	return isStatus || a.mediaType == "text/plain"
}

// notFound reports whether err is about a 404 from an API server.
func notFound(err error) bool {
	var re *ResponseError
	return errors.As(err, &re) && re.notFound
}
