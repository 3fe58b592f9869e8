package facts

import (
	"fmt"
	"testing"
)

// rewriting pins that a patch without a change moves an object to the storage version, and is no write at all when it lies there already (design U9).
func rewriting(t *testing.T, p *plane) {
	const group = "rewrite.facts.example.com"
	p.widgetsAt(t, group, "v1beta1* v1")
	names := []string{"by-version", "by-nothing", "stale"}
	for _, name := range names {
		p.first().must(t, apply("somebody", widgets(group, "v1beta1")+"/"+name, widget(group, "v1beta1", name, `"color":"red"`)))
	}
	p.flip(t, group, "v1beta1 v1*", "v1")
	path := func(name string) string { return widgets(group, "v1") + "/" + name }
	resourceVersion := func(name string) string { return p.first().must(t, request{Path: path(name)}).Metadata.ResourceVersion }
	versionOnly := func(resourceVersion string) string {
		return fmt.Sprintf(`{"metadata":{"resourceVersion":"%s"}}`, resourceVersion)
	}

	t.Run("the flip alone moves nothing", func(t *testing.T) {
		for _, name := range names {
			p.wantStored(t, group, name, "v1beta1")
		}
	})
	for name, body := range map[string]func(resourceVersion string) string{
		"by-version": versionOnly,
		"by-nothing": func(string) string { return "{}" },
	} {
		t.Run(name+": a merge patch without a change rewrites an object at the old version", func(t *testing.T) {
			before := resourceVersion(name)
			after := p.first().must(t, mergePatch(path(name), body(before)))
			p.wantStored(t, group, name, "v1")
			if after.Metadata.ResourceVersion == before || after.Spec["color"] != "red" {
				t.Errorf("resourceVersion %s before, %s after; spec %v", before, after.Metadata.ResourceVersion, after.Spec)
			}
		})
		t.Run(name+": a second one is no write", func(t *testing.T) {
			before := resourceVersion(name)
			if after := p.first().must(t, mergePatch(path(name), body(before))); after.Metadata.ResourceVersion != before {
				t.Errorf("resourceVersion %s before, %s after", before, after.Metadata.ResourceVersion)
			}
			if now := resourceVersion(name); now != before {
				t.Errorf("resourceVersion %s before, %s after", before, now)
			}
		})
	}
	t.Run("the patch at a resourceVersion that is old is a conflict and moves nothing", func(t *testing.T) {
		wantStatus(t, p.first().send(t, mergePatch(path("stale"), versionOnly(resourceVersion("by-version")))), 409, "Conflict")
		p.wantStored(t, group, "stale", "v1beta1")
	})
	t.Run("the version of the request does not matter, only the storage version does", func(t *testing.T) {
		p.first().must(t, mergePatch(widgets(group, "v1beta1")+"/stale", versionOnly(resourceVersion("stale"))))
		p.wantStored(t, group, "stale", "v1")
	})
	t.Run("a rewrite leaves managedFields as they are", func(t *testing.T) {
		for _, name := range names {
			fields := p.first().must(t, request{Path: path(name)}).Metadata.ManagedFields
			if len(fields) != 1 || fields[0].Manager != "somebody" || fields[0].APIVersion != group+"/v1beta1" {
				t.Errorf("%s: %+v; want one entry, somebody's, at v1beta1", name, fields)
			}
		}
	})
}
