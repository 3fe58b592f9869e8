package discovery

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkFetch reads 1,000 custom resource groups: for the first time, when one of them has changed, and when none has.
func BenchmarkFetch(b *testing.B) {
	s := &script{replies: map[string]reply{}}
	groups := make([]serves, 1000)
	for i := range groups {
		groups[i] = widgets("v2", "v1")
		groups[i].group = fmt.Sprintf("group-%d.example.com", i)
	}
	s.serve(true, groups...)
	c, err := NewClient(s.config(), nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	before, err := c.Fetch(context.Background(), nil)
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, prev *Snapshot) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := c.Fetch(context.Background(), prev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("first", nil)
	run("unchanged", before)
	groups[500] = serves{group: groups[500].group, versions: []string{"v2"}}
	s.set("aggregated /apis", aggregatedReply(groups...))
	run("one-changed", before)
}
