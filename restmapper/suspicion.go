package restmapper

import (
	"slices"
	"strings"
	"time"

	"github.com/changeover-dev/changeover/discovery"
)

// maxSuspects bounds what is remembered of doubts. Beyond it, evidence is ignored until older doubts are done with.
const maxSuspects = 256

// suspect is what a suspicion is about: a resource that answers as if it were not served or, without a resource, a version that
// is listed but not served.
type suspect struct {
	group, version, resource string
}

func (s suspect) pace() time.Duration {
	if s.resource == "" {
		return versionPace
	}
	return resourcePace
}

// observe takes note of a "404 page not found" for a resource path.
func (m *Mapper) observe(s suspect) {
	idx := m.current.Load()
	if idx == nil || !idx.believes(s) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if idx = m.current.Load(); idx == nil || !idx.believes(s) {
		// What we know has caught up while we waited for the lock.
		return
	}
	m.open(s, now)
	m.act(now)
}

// suspectVersion has a group read again soon, because it lists a version that is not there. m.mu is held.
func (m *Mapper) suspectVersion(group, version string, now time.Time) {
	m.open(suspect{group: group, version: version}, now)
}

// open opens a suspicion unless it is open, or was given up lately. m.mu is held.
func (m *Mapper) open(s suspect, now time.Time) {
	if _, ok := m.suspects[s]; !ok && len(m.suspects) >= maxSuspects {
		for k, old := range m.suspects {
			if !old.given.IsZero() && now.Sub(old.given) >= suspicionRest {
				delete(m.suspects, k)
			}
		}
		if len(m.suspects) >= maxSuspects {
			return
		}
	}
	m.suspects[s] = m.suspects[s].onEvidence(now)
}

// believes says that the index has what the suspicion doubts.
func (t *tables) believes(s suspect) bool {
	g, ok := t.groups[s.group]
	if !ok {
		return false
	}
	gv, ok := g.source.Version(s.version)
	if !ok {
		return false
	}
	if s.resource == "" {
		return isUnserved(gv)
	}
	at := slices.IndexFunc(gv.Resources, func(r discovery.Resource) bool { return r.Name == s.resource })
	return at >= 0 && gv.State == discovery.Current && ofCRD(s.group, gv.Resources[at])
}

// ofCRD says that a resource may be served by a CRD. Built-in resources do not come and go, and an aggregated API's server
// answers 404 as it likes; it cannot be told apart for sure, but most serve less than every CRD does.
func ofCRD(group string, r discovery.Resource) bool {
	if !strings.Contains(group, ".") {
		return false
	}
	if len(r.Verbs) == 0 {
		return true
	}
	// A CRD that is being deleted still has these.
	for _, verb := range []string{"delete", "deletecollection", "get", "list", "watch"} {
		if !slices.Contains(r.Verbs, verb) {
			return false
		}
	}
	return true
}

// readerOf returns what a suspicion is settled by: in legacy form the reader of its group. m.mu is held.
func (m *Mapper) readerOf(s suspect) *reader {
	if m.inLegacy() {
		return m.reader(s.group)
	}
	return &m.whole
}

func (m *Mapper) inLegacy() bool { return m.last != nil && m.last.legacy }

// nextCheck returns when the next open suspicion may have a read; zero when there is none whose reader is free. m.mu is held.
func (m *Mapper) nextCheck() time.Time {
	var first time.Time
	for s, state := range m.suspects {
		r := m.readerOf(s)
		if r.reading {
			continue
		}
		if at := state.readAt(r.began); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// readSuspects begins the reads that open suspicions may have now. m.mu is held.
func (m *Mapper) readSuspects(now time.Time) {
	for s, state := range m.suspects {
		r := m.readerOf(s)
		if at := state.readAt(r.began); r.reading || at.IsZero() || at.After(now) {
			continue
		}
		if m.inLegacy() {
			m.beginGroup(s.group, forSuspicion, false, now)
		} else {
			m.beginWhole(forSuspicion, now)
		}
	}
}

// reviewSuspects drops the suspicions that a read has dispelled or confirmed, and puts off the others. group is empty when
// everything was read. m.mu is held.
func (m *Mapper) reviewSuspects(began, now time.Time, group string) {
	idx := m.current.Load()
	for s, state := range m.suspects {
		switch {
		case idx == nil || !idx.believes(s):
			delete(m.suspects, s)
		case group != "" && s.group != group, group == "" && m.inLegacy():
			// Not what this read was about.
		default:
			m.suspects[s] = state.onRead(began, now, s.pace())
		}
	}
}
