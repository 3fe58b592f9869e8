package restmapper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/discovery"
)

// A Mapper is a meta.ResettableRESTMapper that follows what the API server serves. Each of the seven lookups also exists with a
// context, which limits how long a miss waits; without one it waits for at most two reads, each limited by Options.Timeout.
// A Mapper is safe for concurrent use, and works without Start.
type Mapper struct {
	fetch *discovery.Client
	opts  Options
	// base is the path below which the API server's own paths begin.
	base string

	// current is nil until the first read has ended, and after Reset. It is the only thing that a hit looks at.
	current atomic.Pointer[index]

	// bulk limits the reads of groups that are not for one group's sake.
	bulk chan struct{}

	// mu guards all below. It is never held during I/O.
	mu sync.Mutex
	// last is the newest index, also after Reset: the next read is conditional on it.
	last *index
	// changed is when what is served was last seen to change.
	changed time.Time
	// due is when current becomes old; zero once it is marked so.
	due      time.Time
	whole    reader
	groups   map[string]*reader
	suspects map[suspect]suspicion
	// timer calls tick when something is due next.
	timer   *time.Timer
	started bool
}

var _ meta.ResettableRESTMapper = &Mapper{}

// New returns a mapper for the API server that cfg names. It does no I/O. hc may be nil: then a client is made from cfg;
// otherwise hc does the requests and must have cfg's authentication in it already.
func New(cfg *rest.Config, hc *http.Client, o Options) (*Mapper, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c, err := discovery.NewClient(cfg, hc, discovery.Options{
		Timeout: o.Timeout, MaxBytes: o.MaxBytes, LegacyOnly: o.LegacyOnly,
	})
	if err != nil {
		return nil, fmt.Errorf("restmapper: %w", err)
	}
	bare := *cfg
	bare.APIPath, bare.GroupVersion = "", nil
	u, _, err := rest.DefaultServerUrlFor(&bare)
	if err != nil {
		return nil, fmt.Errorf("restmapper: address %q: %w", cfg.Host, err)
	}
	return &Mapper{
		fetch: c, opts: o,
		base:     strings.TrimSuffix(u.Path, "/"),
		bulk:     make(chan struct{}, 8),
		groups:   map[string]*reader{},
		suspects: map[suspect]suspicion{},
	}, nil
}

// Start reads what is served and revalidates it in the background until ctx ends, ahead of the lookups that would otherwise
// meet old knowledge. It blocks until then, and until the reads that it began have ended too. It returns an error only when
// Start is running already. Failed reads are no reason to end: they are tried again.
func (m *Mapper) Start(ctx context.Context) error {
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return errors.New("restmapper: started already")
	}
	m.started = true
	if m.current.Load() == nil && !m.whole.reading {
		m.beginWhole(forStart, time.Now())
	}
	m.mu.Unlock()

	<-ctx.Done()

	m.mu.Lock()
	m.started = false
	clear(m.suspects)
	ending := m.abortBackground()
	// From here on the hits look after what is known, as they do without Start.
	m.act(time.Now())
	m.mu.Unlock()
	for _, f := range ending {
		<-f.done
	}
	return nil
}

// NeedLeaderElection tells controller-runtime that Start also belongs on replicas that do not lead: they look things up too.
func (m *Mapper) NeedLeaderElection() bool { return false }

// Reset forgets what is known. Lookups wait for a read that begins after it.
func (m *Mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.Store(nil)
	m.due = time.Time{}
	m.whole.forget()
	for _, r := range m.groups {
		r.forget()
	}
}

// ResetWithContext is Reset: it does not wait, so that it needs no context.
func (m *Mapper) ResetWithContext(context.Context) { m.Reset() }

// touch notes a hit on an index that is not marked as used yet, or is old.
func (m *Mapper) touch(idx *index) {
	if idx.mark.CompareAndSwap(markUnused, markUsed) {
		return
	}
	// A hit waits for nobody: while the lock is taken, the index stays old, and a later hit will do.
	if idx.mark.Load() != markOld || !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	// It is the current index that counts: a group that was read meanwhile has put another one, as old, in the place of idx.
	if idx = m.current.Load(); idx == nil || !idx.mark.CompareAndSwap(markOld, markUsed) {
		return
	}
	if !m.whole.reading {
		m.beginWhole(forInterval, time.Now())
	}
}

// tick does what is due.
func (m *Mapper) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.act(time.Now())
}

// act does what the background has to do now, and arms the timer for what comes next. m.mu is held.
func (m *Mapper) act(now time.Time) {
	idx := m.current.Load()
	f := facts{
		reading: m.whole.reading, due: m.due, started: m.started,
		inUse: idx == nil || idx.mark.Load() == markUsed,
	}
	f.check = m.nextCheck()
	p := f.next(now)
	if p.begin == forSuspicion {
		m.readSuspects(now)
		// What is being read now is not due any more; something else may be.
		f.reading, f.check = m.whole.reading, m.nextCheck()
		p = f.next(now)
	}
	if p.begin == forInterval {
		m.beginWhole(forInterval, now)
		f.reading, f.check = true, m.nextCheck()
		p = f.next(now)
	}
	if p.old {
		m.due = time.Time{}
		if idx != nil {
			idx.mark.Store(markOld)
		}
	}
	m.arm(p.after)
}

// arm sets the timer; zero stops it. m.mu is held.
func (m *Mapper) arm(after time.Duration) {
	switch {
	case after == 0 && m.timer != nil:
		m.timer.Stop()
	case after == 0:
	case m.timer == nil:
		m.timer = time.AfterFunc(after, m.tick)
	default:
		m.timer.Reset(after)
	}
}
