package restmapper

import (
	"context"
	"slices"
	"time"

	"github.com/changeover-dev/changeover/discovery"
)

// reader is everything that belongs to reading one thing: the whole, or in legacy form one group. At most one flight is up.
type reader struct {
	history
	flight *flight
}

// flight is one read. It goes on whether or not anybody waits for it, until its own deadline.
type flight struct {
	cause  cause
	began  time.Time
	done   chan struct{} // closed when it has ended and what it found is installed
	cancel context.CancelFunc
	// void says that its result shall count for nothing: it was cancelled, or what it saw was to be forgotten.
	void bool
}

// forget makes everything that was read so far, or is being read, count for nothing. That a read began still counts against
// the budget.
func (r *reader) forget() {
	r.known, r.failed, r.err, r.failures = time.Time{}, time.Time{}, nil, 0
	if r.flight != nil {
		r.flight.void = true
	}
}

// takeOff notes that a read begins now.
func (r *reader) takeOff(c cause, now time.Time, timeout time.Duration) (context.Context, *flight) {
	// Not a caller's context: the read is shared, and no caller's end may end it.
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	f := &flight{cause: c, began: now, done: make(chan struct{}), cancel: cancel}
	r.flight, r.reading, r.began = f, true, now
	return ctx, f
}

// land notes how the read ended. It reports whether its result counts.
func (r *reader) land(f *flight, err error, now time.Time) bool {
	f.cancel()
	r.flight, r.reading = nil, false
	switch {
	case f.void:
		return false
	case err != nil:
		r.failed, r.err = now, err
		r.failures++
		return false
	}
	r.known, r.failed, r.err, r.failures = f.began, time.Time{}, nil, 0
	return true
}

// beginWhole begins to read everything, or in legacy form the list of groups. m.mu is held, and no such read is in flight.
func (m *Mapper) beginWhole(c cause, now time.Time) {
	ctx, f := m.whole.takeOff(c, now, m.opts.Timeout)
	var prev *discovery.Snapshot
	if m.last != nil {
		prev = m.last.snapshot
	}
	go func() {
		defer close(f.done)
		snapshot, err := m.fetch.Fetch(ctx, prev)

		m.mu.Lock()
		defer m.mu.Unlock()
		now := time.Now()
		switch {
		case m.whole.land(f, err, now):
			m.installWhole(f, snapshot, now)
		case f.void && m.current.Load() != nil:
			m.due = now // nothing was renewed
		case !f.void:
			m.due = now.Add(retryAfter(m.whole.failures, m.opts.Interval))
		}
		m.reviewSuspects(f.began, now, "")
		m.act(now)
	}()
}

// installWhole makes a snapshot what lookups are answered from. m.mu is held.
func (m *Mapper) installWhole(f *flight, snapshot *discovery.Snapshot, now time.Time) {
	legacy := snapshot.Form() == discovery.Legacy
	groups := snapshot.Groups()
	// After Reset nothing may be kept.
	if idx := m.current.Load(); idx != nil {
		groups = slices.Clone(groups)
		for i, g := range groups {
			if prev, ok := idx.groups[g.Name]; ok {
				groups[i] = carry(prev.source, g)
			}
		}
	}
	idx := &index{asOf: f.began, legacy: legacy, snapshot: snapshot}
	prev := m.current.Load()
	due := m.due
	m.install(groups, idx, now)
	m.due = now.Add(freshFor(now.Sub(m.changed), m.opts.Interval))
	if legacy && f.cause == forMiss && prev != nil {
		// A miss renews the list alone: the groups that are known stay as old as they were, however many misses there are.
		idx.mark.Store(prev.mark.Load())
		switch {
		case idx.mark.Load() == markOld:
			m.due = time.Time{}
		case due.IsZero():
			m.due = now // a hit found it old while this read was up
		case due.Before(m.due):
			m.due = due
		}
	}
	if !legacy {
		clear(m.groups)
		return
	}
	for name, r := range m.groups {
		g, listed := m.last.groups[name]
		switch {
		case r.reading:
		case !listed:
			delete(m.groups, name)
		case f.cause != forMiss && !r.known.IsZero():
			m.beginGroup(name, f.cause, true, now)
		case g.unread:
			// It has new versions: what was read of it does not do any more.
			r.known = time.Time{}
		}
	}
}

// install builds idx's tables from groups, and makes it the current index. m.mu is held.
func (m *Mapper) install(groups []discovery.Group, idx *index, now time.Time) {
	var prev *tables
	if m.last != nil {
		prev = m.last.tables
	}
	idx.tables = buildTables(prev, groups)
	if idx.tables != prev {
		m.changed = now
	}
	m.last = idx
	m.current.Store(idx)
}

// reader returns the reader of a group. m.mu is held.
func (m *Mapper) reader(group string) *reader {
	r, ok := m.groups[group]
	if !ok {
		r = &reader{}
		m.groups[group] = r
	}
	return r
}

// beginGroup begins to read one group in legacy form. A read in bulk waits for its turn. m.mu is held, and no read of that group
// is in flight.
func (m *Mapper) beginGroup(name string, c cause, bulk bool, now time.Time) {
	r := m.reader(name)
	ctx, f := r.takeOff(c, now, m.opts.Timeout)
	go func() {
		defer close(f.done)
		g, found, err := m.fetchGroup(ctx, name, bulk)

		m.mu.Lock()
		defer m.mu.Unlock()
		now := time.Now()
		// The server may have turned to the aggregated form meanwhile; then that has the say.
		if r.land(f, err, now) && m.last != nil && m.last.legacy && m.current.Load() != nil {
			m.installGroup(name, g, found, now)
		}
		m.reviewSuspects(f.began, now, name)
		m.act(now)
	}()
}

func (m *Mapper) fetchGroup(ctx context.Context, name string, bulk bool) (discovery.Group, bool, error) {
	if bulk {
		select {
		case m.bulk <- struct{}{}:
			defer func() { <-m.bulk }()
		case <-ctx.Done():
			return discovery.Group{}, false, context.Cause(ctx)
		}
	}
	return m.fetch.FetchGroup(ctx, name)
}

// installGroup replaces one group in what lookups are answered from. m.mu is held.
func (m *Mapper) installGroup(name string, g discovery.Group, found bool, now time.Time) {
	last := m.last
	groups := last.sources()
	at := slices.IndexFunc(groups, func(g discovery.Group) bool { return g.Name == name })
	switch {
	case !found && at >= 0:
		groups = slices.Delete(groups, at, at+1)
	case !found:
	case at >= 0:
		groups[at] = carry(groups[at], g)
	default:
		groups = append(groups, g)
	}
	idx := &index{asOf: last.asOf, legacy: true, snapshot: last.snapshot}
	idx.mark.Store(last.mark.Load())
	m.install(groups, idx, now)
	for _, gv := range g.Versions {
		if isUnserved(gv) {
			m.suspectVersion(name, gv.Version, now)
		}
	}
}

// abortBackground cancels all reads that no lookup has begun, and returns them. Lookups that wait for one of them begin
// their own. m.mu is held.
func (m *Mapper) abortBackground() []*flight {
	var ending []*flight
	abort := func(f *flight) {
		if f == nil || f.cause == forMiss {
			return
		}
		f.void = true
		f.cancel()
		ending = append(ending, f)
	}
	abort(m.whole.flight)
	for _, r := range m.groups {
		abort(r.flight)
	}
	return ending
}
