package discovery

import (
	"context"
	"testing"
)

// FuzzFetch answers with any body, in each form. Nothing may panic, and a snapshot comes without an error or not at all.
func FuzzFetch(f *testing.F) {
	f.Add(true, aggregatedReply(widgets("v2", "v1")).body)
	f.Add(false, groupListReply(widgets("v2", "v1")).body)
	f.Add(true, `{"kind":"APIGroupDiscoveryList","items":[null,{"metadata":{"name":"a"},"versions":[{"version":"v1","resources":[{}]}]}]}`)
	f.Add(false, `{"kind":"APIGroupList","groups":[{"name":"a","versions":null}]}`)
	f.Fuzz(func(t *testing.T, aggregated bool, body string) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		c := s.client(Options{})
		before := fetch(t, c, nil)
		r := reply{contentType: jsonType, body: body}
		if aggregated {
			r.contentType = aggregatedV2Type
		}
		s.set("aggregated /apis", r)
		after, err := c.Fetch(context.Background(), before)
		if (after == nil) != (err != nil) {
			t.Fatalf("snapshot %v beside error %v", after, err)
		}
		for _, g := range after.Groups() {
			if found, ok := after.Group(g.Name); !ok || found.Preferred == "" && len(found.Versions) > 0 {
				t.Errorf("group %+v is found as %+v", g, found)
			}
			for _, v := range g.Versions {
				if (v.State == Current) != (v.Reason == nil) {
					t.Errorf("version %+v", v)
				}
			}
		}
	})
}
