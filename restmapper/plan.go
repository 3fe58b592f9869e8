package restmapper

import "time"

// What to do next is decided in this file, by functions of values alone: they read no clock, take no lock and do no I/O, so
// that every race becomes a row in a table. mapper.go observes, asks here, and acts.

const (
	// spacing is the shortest time between the beginnings of two reads. One read is two requests, so that a second of misses
	// costs 18 requests at most.
	spacing = 125 * time.Millisecond
	// grace is how old a read may be when a miss comes sooner than the budget allows the next one.
	grace = 250 * time.Millisecond
	// bulkSpacing stands in for spacing where a single miss makes us read every group by itself: a resource without its
	// group, from a server that has the legacy form only.
	bulkSpacing = time.Second

	// suspicionLimit is how long a suspicion stays open. On a loaded API server discovery was seen to follow the handlers 9 s
	// later.
	suspicionLimit = 15 * time.Second
	// resourcePace and versionPace are the longest times between two reads for the sake of an open suspicion: while the mapper's
	// answers may be wrong, and while it only does not know whether a version that is listed will be served.
	resourcePace = 200 * time.Millisecond
	versionPace  = time.Second
	// suspicionRest is how long evidence is ignored after a suspicion ended without a finding, so that a resource which always
	// answers like that costs little.
	suspicionRest = time.Minute
)

// history is what is remembered of the reads of one thing: of everything, or in legacy form of one group.
type history struct {
	// reading says that a read is in flight.
	reading bool
	// began is when the newest read began, whether or not it has ended.
	began time.Time
	// known is when the newest read began that succeeded; zero when it does not count any more.
	known time.Time
	// failed is when the newest read failed, and err how; zero when a later one succeeded.
	failed time.Time
	err    error
	// failures in a row.
	failures int
}

type verdict int

const (
	// settle: what is known, or that nothing can be known, is the answer.
	settle verdict = iota
	// join: wait for the read that is in flight.
	join
	// begin a read and wait for it.
	begin
	// wait until the budget allows a read.
	wait
)

// onMiss decides for a lookup that was asked at the given time and finds no answer in what is known. The duration says how long
// to wait, when that is the verdict.
func (h history) onMiss(asked, now time.Time, spacing time.Duration) (verdict, time.Duration) {
	never := h.began.IsZero()
	overBudget := !never && now.Sub(h.began) < spacing
	switch {
	case !h.known.IsZero() && !h.known.Before(asked):
		return settle, 0
	case !h.failed.IsZero() && !h.failed.Before(asked):
		// The read may have begun earlier, but that it failed is news.
		return settle, 0
	case overBudget && !h.known.IsZero() && asked.Sub(h.known) < max(grace, spacing):
		return settle, 0
	case overBudget && !h.reading && !h.failed.IsZero() && asked.Sub(h.failed) < max(grace, spacing):
		return settle, 0
	case h.reading:
		return join, 0
	case overBudget:
		return wait, spacing - now.Sub(h.began)
	}
	return begin, 0
}

// cause is why a read began.
type cause string

const (
	forMiss      cause = "miss"
	forStart     cause = "start"
	forInterval  cause = "interval"
	forSuspicion cause = "suspicion"
)

// facts are what the background goes by.
type facts struct {
	// reading says that everything is being read; the end of that will look again.
	reading bool
	// due is when what is known becomes old; zero when nothing is known, or when it is marked as old already.
	due time.Time
	// inUse says that there was a hit since the last read, or that there was none that succeeded; started that Start is running.
	inUse, started bool
	// check is when the next open suspicion may have a read; zero when there is none whose reader is free.
	check time.Time
}

// plan is what the background shall do: at most one of the two at once, and then look again after a while; never when zero.
type plan struct {
	begin cause
	// old: mark what is known as old, so that the next hit begins a read.
	old   bool
	after time.Duration
}

func (f facts) next(now time.Time) plan {
	if !f.check.IsZero() && !f.check.After(now) {
		return plan{begin: forSuspicion}
	}
	var p plan
	due := f.due
	if f.reading {
		due = time.Time{}
	}
	if !due.IsZero() && !due.After(now) {
		if f.started && f.inUse {
			return plan{begin: forInterval}
		}
		p.old, due = true, time.Time{}
	}
	for _, t := range []time.Time{f.check, due} {
		if !t.IsZero() && (p.after == 0 || t.Sub(now) < p.after) {
			p.after = t.Sub(now)
		}
	}
	return p
}

// freshFor says how long what is known counts as fresh, when it last changed that long ago. Changes come in bursts, and a mapper
// may have been created in the midst of one: so what is young is looked at again soon, however long the interval.
func freshFor(sinceChange, interval time.Duration) time.Duration {
	return min(interval, max(time.Second, sinceChange/3))
}

// retryAfter says how long after a failed read in the background the next one may begin.
func retryAfter(failures int, interval time.Duration) time.Duration {
	d := time.Second
	for i := 1; i < failures && d < interval; i++ {
		d *= 2
	}
	return min(d, interval)
}

// suspicion is the state of a doubt whether a resource is still served.
type suspicion struct {
	opened time.Time
	// check is when the next read is wanted.
	check time.Time
	// given is when it was given up; zero while it is open.
	given time.Time
}

// onEvidence returns the suspicion after another 404.
func (s suspicion) onEvidence(now time.Time) suspicion {
	switch {
	case s.opened.IsZero(), !s.given.IsZero() && now.Sub(s.given) >= suspicionRest:
		return suspicion{opened: now, check: now}
	}
	return s
}

// onRead returns the suspicion after a read that did not dispel it. pace is the longest time until the next one.
func (s suspicion) onRead(began, now time.Time, pace time.Duration) suspicion {
	open := now.Sub(s.opened)
	switch {
	case !s.given.IsZero():
	case began.Before(s.opened):
		// It may have seen the world before the evidence.
		s.check = now
	case open >= suspicionLimit:
		s.given = now
	default:
		s.check = now.Add(min(pace, max(spacing, open/2)))
	}
	return s
}

// readAt says when the suspicion may have its next read, when the last one of the same thing began at the given time; zero when
// it wants none.
func (s suspicion) readAt(began time.Time) time.Time {
	earliest := began.Add(spacing)
	switch {
	case !s.given.IsZero():
		return time.Time{}
	case s.check.Before(earliest):
		return earliest
	}
	return s.check
}
