package restmapper

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/changeover-dev/changeover/discovery"
)

// fiveKinds returns n groups of five kinds in two versions each.
func fiveKinds(n int) []discovery.Group {
	var groups []discovery.Group
	for i := range n {
		var kinds []string
		for k := range 5 {
			kinds = append(kinds, fmt.Sprintf("Kind%dOf%d", k, i))
		}
		groups = append(groups, groupOf(fmt.Sprintf("group%d.example.com", i), crd("v1", kinds...), crd("v1beta1", kinds...)))
	}
	return groups
}

var benchSizes = []int{10, 100, 1000}

// benchmarkHit measures a lookup of the same 64 keys at each number of groups.
func benchmarkHit(b *testing.B, hit func(m *Mapper, gk schema.GroupKind, plural string) error) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("groups=%d", n), func(b *testing.B) {
			m := serving(fiveKinds(n)...).mapper(b, Options{})
			var keys [64]schema.GroupKind
			var plurals [64]string
			for i := range keys {
				group := i % 10
				keys[i] = schema.GroupKind{Group: fmt.Sprintf("group%d.example.com", group), Kind: fmt.Sprintf("Kind%dOf%d", i%5, group)}
				plurals[i] = fmt.Sprintf("kind%dof%ds", i%5, group)
			}
			if err := hit(m, keys[0], plurals[0]); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if err := hit(m, keys[i%64], plurals[i%64]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRESTMapping(b *testing.B) {
	benchmarkHit(b, func(m *Mapper, gk schema.GroupKind, _ string) error {
		_, err := m.RESTMapping(gk, "v1beta1")
		return err
	})
}

func BenchmarkRESTMappingPreferred(b *testing.B) {
	benchmarkHit(b, func(m *Mapper, gk schema.GroupKind, _ string) error {
		_, err := m.RESTMapping(gk)
		return err
	})
}

func BenchmarkKindFor(b *testing.B) {
	benchmarkHit(b, func(m *Mapper, _ schema.GroupKind, plural string) error {
		_, err := m.KindFor(schema.GroupVersionResource{Resource: plural})
		return err
	})
}

func BenchmarkResourceFor(b *testing.B) {
	benchmarkHit(b, func(m *Mapper, _ schema.GroupKind, plural string) error {
		_, err := m.ResourceFor(schema.GroupVersionResource{Resource: plural})
		return err
	})
}

func BenchmarkRESTMappingParallel(b *testing.B) {
	m := serving(fiveKinds(1000)...).mapper(b, Options{})
	gk := schema.GroupKind{Group: "group7.example.com", Kind: "Kind1Of7"}
	if _, err := m.RESTMapping(gk); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.RESTMapping(gk, "v1"); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkIndex measures what a changed group costs: the index is built anew, but for the groups that did not change.
func BenchmarkIndex(b *testing.B) {
	for _, n := range benchSizes {
		groups := fiveKinds(n)
		changed := fiveKinds(n)
		changed[n/2] = groupOf(changed[n/2].Name, crd("v1", "Other"))
		b.Run(fmt.Sprintf("groups=%d", n), func(b *testing.B) {
			t := buildTables(nil, groups)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				buildTables(t, changed)
			}
		})
	}
}

// BenchmarkMemory reports the live heap of a mapper that knows 1,000 groups of five kinds, the snapshot included.
func BenchmarkMemory(b *testing.B) {
	s := serving(fiveKinds(1000)...)
	for i := 0; i < b.N; i++ {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := s.mapper(b, Options{})
		if _, err := m.RESTMapping(schema.GroupKind{Group: "group7.example.com", Kind: "Kind1Of7"}); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(m)
		b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-B")
	}
}
