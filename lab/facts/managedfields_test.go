package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// managedFieldsOfGoneVersion pins what a write does to the ownership of an object, one of whose managedFields entries stands at a version that
// its CRD has no longer (design U9, k/k#111937).
func managedFieldsOfGoneVersion(t *testing.T, p *plane) {
	const group = "managed.facts.example.com"
	p.widgetsAt(t, group, "v1beta1* v1")
	at := func(name string) string { return widgets(group, "v1") + "/" + name }
	names := []string{"unserved", "patched", "applied", "repaired", "untouched"}
	for _, name := range names {
		p.first().must(t, apply("owner", widgets(group, "v1beta1")+"/"+name, widget(group, "v1beta1", name, `"color":"red"`)))
	}
	p.flip(t, group, "v1beta1 v1*", "v1")
	for _, name := range names {
		p.first().must(t, mergePatch(at(name), "{}"))
		p.wantStored(t, group, name, "v1")
	}
	p.trim(t, group, "v1")
	writer := func(name string) request {
		return mergePatch(at(name)+"?fieldManager=writer", `{"spec":{"size":"big"}}`)
	}

	t.Run("while the version is there, served or not, a write keeps the entry and records its own", func(t *testing.T) {
		p.changeVersions(t, group, "v1beta1- v1*")
		o := p.first().must(t, writer("unserved"))
		wantManagers(t, o, "owner v1beta1", "writer v1")
	})

	p.change(t, group, setVersions("v1*"))
	const gone = "request to convert CR to an invalid group/version: " + group + "/v1beta1"
	p.await(t, "the version is gone from the server's handler", func(ctx context.Context) (string, bool) {
		r := apply("another", at("applied"), widget(group, "v1", "applied", ""))
		r.Path += "&dryRun=All"
		a, err := p.first().try(ctx, r)
		return fmt.Sprint(a, err), err == nil && strings.Contains(a.Body, gone)
	})
	t.Run("a read shows the entry of the version that is gone", func(t *testing.T) {
		wantManagers(t, p.first().must(t, request{Path: at("untouched")}), "owner v1beta1")
	})
	t.Run("an empty patch: see the table", func(t *testing.T) {
		wantManagers(t, p.first().must(t, mergePatch(at("untouched"), "{}")), p.release.afterEmptyPatch...)
		wantManagers(t, p.first().must(t, request{Path: at("untouched")}), p.release.afterEmptyPatch...)
	})
	t.Run("a write: see the table", func(t *testing.T) {
		o := p.first().must(t, writer("patched"))
		if o.Spec["size"] != "big" || o.Spec["color"] != "red" {
			t.Errorf("spec %v", o.Spec)
		}
		wantManagers(t, o, p.release.afterWrite...)
	})
	t.Run("an apply, the owner's or another's, is a 500 Status", func(t *testing.T) {
		for _, manager := range []string{"owner", "another"} {
			a := p.first().send(t, apply(manager, at("applied"), widget(group, "v1", "applied", `"color":"blue"`)))
			wantStatus(t, a, 500, "", gone)
		}
	})
	t.Run("a patch that brings the entries at the new version repairs them in the same write", func(t *testing.T) {
		repair(t, p, group, at("repaired"))
		wantManagers(t, p.first().must(t, writer("repaired")), "owner v1", "writer v1")
		p.first().must(t, apply("owner", at("repaired"), widget(group, "v1", "repaired", `"color":"blue"`)))
	})
}

// repair moves the entries of the object at path to v1 in one merge patch.
func repair(t *testing.T, p *plane, group, path string) {
	before := p.first().must(t, request{Path: path})
	fields := slices.Clone(before.Metadata.ManagedFields)
	for i := range fields {
		fields[i].APIVersion = group + "/v1"
	}
	list, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"metadata":{"resourceVersion":"%s","managedFields":%s}}`, before.Metadata.ResourceVersion, list)
	wantManagers(t, p.first().must(t, mergePatch(path+"?fieldManager=changeover", body)), "owner v1")
}

// managers lists the entries of managedFields, sorted, as "manager version".
func managers(o object) []string {
	list := []string{}
	for _, f := range o.Metadata.ManagedFields {
		list = append(list, f.Manager+" "+path.Base(f.APIVersion))
	}
	slices.Sort(list)
	return list
}

func wantManagers(t testing.TB, o object, want ...string) {
	t.Helper()
	if have := managers(o); !slices.Equal(have, want) {
		t.Errorf("managedFields %q; want %q", have, want)
	}
}
