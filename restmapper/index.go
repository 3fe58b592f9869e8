package restmapper

import (
	"sync/atomic"
	"time"

	"github.com/changeover-dev/changeover/discovery"
)

// index is what all lookups are answered from. Apart from its mark it never changes.
type index struct {
	*tables
	// asOf is when the read began that this rests on.
	asOf time.Time
	// legacy says that groups are read one by one.
	legacy bool
	// snapshot is what the next read is conditional on.
	snapshot *discovery.Snapshot
	// mark is read by every hit, and written once or twice in the life of an index: so that hits on many cores do not
	// contend for it.
	mark atomic.Uint32
}

// Values of index.mark.
const (
	markUnused uint32 = iota
	markUsed
	markOld
)

// tables hold the groups of an index. They are shared by indexes of equal content.
type tables struct {
	// order is the server's.
	order  []*group
	groups map[string]*group
	// named finds the first group, in the order of the server, that knows a resource by this plural or singular, and namedToo the
	// others. Most words are known to one group only.
	named    map[string]*group
	namedToo map[string][]*group
	// unread holds the groups that have versions which nobody has read yet.
	unread []*group
}

// buildTables prepares groups for lookups. It reuses what it can of prev, which may be nil, and returns prev itself when nothing
// has changed.
func buildTables(prev *tables, groups []discovery.Group) *tables {
	t := &tables{groups: make(map[string]*group, len(groups))}
	same := prev != nil && len(prev.order) == len(groups)
	for i, source := range groups {
		if _, dup := t.groups[source.Name]; dup {
			same = false
			continue
		}
		var g *group
		if prev != nil {
			g = prev.groups[source.Name]
		}
		if g == nil || !sameGroup(g.source, source) {
			g = buildGroup(source)
		}
		same = same && prev.order[i] == g
		t.order = append(t.order, g)
		t.groups[source.Name] = g
		if g.unread {
			t.unread = append(t.unread, g)
		}
	}
	if same {
		return prev
	}
	t.nameGroups(prev)
	return t
}

func (t *tables) nameGroups(prev *tables) {
	size := 0
	if prev != nil {
		size = len(prev.named)
	}
	t.named, t.namedToo = make(map[string]*group, size), map[string][]*group{}
	for _, g := range t.order {
		for word := range g.names {
			if _, taken := t.named[word]; taken {
				t.namedToo[word] = append(t.namedToo[word], g)
			} else {
				t.named[word] = g
			}
		}
	}
}

// sources returns the groups that the tables were built from. The slice is the caller's.
func (t *tables) sources() []discovery.Group {
	out := make([]discovery.Group, 0, len(t.order))
	for _, g := range t.order {
		out = append(out, g.source)
	}
	return out
}
