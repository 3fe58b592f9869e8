package restmapper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/changeover-dev/changeover/discovery"
)

// question is a lookup that met no answer in what was known.
type question struct {
	// about is what the lookup can find an answer in: the groups that begin with group, or only that one when exact is set.
	about schema.GroupVersionResource
	// exact says that only the group about.Group can have the answer.
	exact bool
	// versions restrict the lookup when not empty.
	versions []string
	// find looks in the tables, and reports whether there was an answer. Unless final is set, it finds nothing where a version that
	// nobody has read yet might change the answer.
	find func(t *tables, final bool) bool
}

// knowledge is what an error says about its grounds.
type knowledge struct {
	*tables
	asOf time.Time
	age  time.Duration
}

// ask answers a question by reading discovery. It returns true when find has found; otherwise the error says why it cannot be
// known, or is nil when there is no match.
func (m *Mapper) ask(ctx context.Context, q question) (bool, knowledge, error) {
	asked := time.Now()
	for {
		if idx := m.current.Load(); idx != nil && q.find(idx.tables, false) {
			return true, knowledge{}, nil
		}
		until, after := m.step(q, asked)
		if until == nil && after == 0 {
			return m.conclude(q)
		}
		if err := pause(ctx, until, after); err != nil {
			return false, knowledge{}, err
		}
	}
}

// pause waits for a read to end, for some time, or for both when both are given.
func pause(ctx context.Context, until <-chan struct{}, after time.Duration) error {
	var expired chan struct{}
	if after > 0 {
		// Not a timer's own channel: Go 1.26's runtime crashes where those meet the race detector in a testing/synctest bubble.
		expired = make(chan struct{})
		timer := time.AfterFunc(after, func() { close(expired) })
		defer timer.Stop()
	}
	select {
	case <-until:
	case <-expired:
	case <-ctx.Done():
		return ended(ctx)
	}
	return nil
}

// step begins the reads that a question needs. It returns what to wait for before looking again, or nothing when no read could
// change the answer.
func (m *Mapper) step(q question, asked time.Time) (until <-chan struct{}, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	whole, groups, bulk := m.targets(q)
	rest := spacing
	if bulk {
		rest = bulkSpacing
	}
	consider := func(r *reader, start func()) {
		verdict, d := r.onMiss(asked, now, rest)
		switch verdict {
		case settle:
			return
		case wait:
			if after == 0 || d < after {
				after = d
			}
			return
		case begin:
			start()
		}
		until = r.flight.done
	}
	if whole {
		consider(&m.whole, func() { m.beginWhole(forMiss, now) })
	}
	for _, name := range groups {
		consider(m.reader(name), func() { m.beginGroup(name, forMiss, bulk, now) })
	}
	return until, after
}

// targets says what to read for a question: everything, or in legacy form groups, in bulk when it is not about one group. m.mu
// is held.
func (m *Mapper) targets(q question) (whole bool, groups []string, bulk bool) {
	idx := m.current.Load()
	if idx == nil || !idx.legacy {
		return true, nil, false
	}
	if q.exact {
		if _, listed := idx.groups[q.about.Group]; !listed {
			return true, nil, false
		}
		return false, []string{q.about.Group}, false
	}
	for _, g := range idx.unread {
		if concerns(q.about, g.source.Name) {
			groups = append(groups, g.source.Name)
		}
	}
	if groups != nil {
		return false, groups, true
	}
	for _, g := range idx.order {
		if concerns(q.about, g.source.Name) {
			groups = append(groups, g.source.Name)
		}
	}
	return true, groups, true
}

// conclude answers a question by what is known, now that reading more does not help.
func (m *Mapper) conclude(q question) (bool, knowledge, error) {
	idx := m.current.Load()
	if idx != nil && q.find(idx.tables, true) {
		return true, knowledge{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	asOf, err := m.grounds(idx, q)
	if err == nil && idx == nil {
		err = errReset
	}
	if err == nil {
		err = idx.unknown(q)
	}
	if err != nil {
		return false, knowledge{}, err
	}
	return false, knowledge{tables: idx.tables, asOf: asOf, age: time.Since(asOf)}, nil
}

// grounds returns when the newest read began that has a say in the question, or its error when it failed. m.mu is held.
func (m *Mapper) grounds(idx *index, q question) (time.Time, error) {
	if idx == nil {
		return time.Time{}, m.whole.err
	}
	if !idx.legacy {
		return idx.asOf, m.whole.err
	}
	if q.exact {
		if _, listed := idx.groups[q.about.Group]; listed {
			r := m.reader(q.about.Group)
			return r.known, r.err
		}
		return idx.asOf, m.whole.err
	}
	for _, g := range idx.order {
		if !concerns(q.about, g.source.Name) {
			continue
		}
		if err := m.reader(g.source.Name).err; err != nil {
			return time.Time{}, err
		}
	}
	return idx.asOf, m.whole.err
}

// unknown returns an error when a version that the question is about is listed, but nothing is known of what it serves.
func (t *tables) unknown(q question) error {
	for _, g := range t.order {
		if q.exact && g.source.Name != q.about.Group || !q.exact && !concerns(q.about, g.source.Name) {
			continue
		}
		for _, gv := range g.source.Versions {
			if unknown(gv) && (len(q.versions) == 0 || slices.Contains(q.versions, gv.Version)) {
				return fmt.Errorf("%s is %v: %w", gvString(g.source.Name, gv), gv.State, gv.Reason)
			}
		}
	}
	return nil
}

func gvString(group string, gv discovery.GroupVersion) string {
	return schema.GroupVersion{Group: group, Version: gv.Version}.String()
}
