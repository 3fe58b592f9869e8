package race

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/proxy"
)

// Variant is one way in which a mapper and a CRD's change can meet.
type Variant int

const (
	// VersionHeld is the reported race. The API server answers in legacy form: the mapper has read the list of groups, and is about
	// to read v1alpha4 when that stops being served.
	VersionHeld Variant = iota
	// DocumentHeld is the same for a mapper that reads all groups in one answer: the answer is on its way, and old when it arrives.
	DocumentHeld
	// Settled has no unlucky moment at all: the mapper knows everything, and then the CRD changes.
	Settled
)

// Variants lists all variants.
func Variants() []Variant { return []Variant{VersionHeld, DocumentHeld, Settled} }

// String names the variant as in results.
func (v Variant) String() string {
	switch v {
	case VersionHeld:
		return "script: version held"
	case DocumentHeld:
		return "script: document held"
	case Settled:
		return "script: settled"
	}
	return fmt.Sprintf("script: Variant(%d)", int(v))
}

// hold is the rule that stops the mappers at the moment that the variant is about; nil where there is none.
func (v Variant) hold() *proxy.Rule {
	switch v {
	case VersionHeld:
		return &proxy.Rule{Method: "GET", Path: "/apis/" + group + "/" + gone, Hold: proxy.HoldRequest}
	case DocumentHeld:
		return &proxy.Rule{Method: "GET", Path: "/apis", Hold: proxy.HoldResponse}
	}
	return nil
}

// ScriptOptions are the options of Script. The zero value works.
type ScriptOptions struct {
	Peers    []Peer        // default: all
	Variants []Variant     // default: all
	Mappers  int           // per peer and variant; default 3
	Settle   time.Duration // from the release to the verdict; default 5 s
	Log      io.Writer     // progress; default none
}

func (o *ScriptOptions) validate() error {
	if o.Mappers < 0 || o.Settle < 0 {
		return errors.New("race: script: Mappers and Settle must not be negative")
	}
	if o.Peers == nil {
		o.Peers = Peers()
	}
	if o.Variants == nil {
		o.Variants = Variants()
	}
	if o.Mappers == 0 {
		o.Mappers = 3
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return nil
}

// Script plays each variant once, all peers side by side, each behind a proxy of its own. The results are in the order of the
// variants, and within one of the peers. The CRD is created where it is absent, and is in its new form afterwards. There must be
// no other CRD in its group.
func Script(ctx context.Context, c *lab.Cluster, o ScriptOptions) ([]Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	programs, err := build(ctx, o.Peers, o.Log)
	if err != nil {
		return nil, err
	}
	s, err := newSubject(ctx, c)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, v := range o.Variants {
		p := play{subject: s, variant: v, options: o, programs: programs}
		some, err := p.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v, err)
		}
		results = append(results, some...)
	}
	return results, nil
}

// play is one variant on the way.
type play struct {
	subject  *subject
	variant  Variant
	options  ScriptOptions
	programs map[string]string
	actors   []*actor
}

// actor is a peer behind its proxy.
type actor struct {
	*runner
	proxy *proxy.HTTP
	hold  *proxy.Rule
}

// run is the script.
func (p *play) run(ctx context.Context) (results []Result, err error) {
	defer func() { err = errors.Join(err, p.end(ctx)) }()
	if err := p.subject.reset(ctx); err != nil {
		return nil, err
	}
	for _, peer := range p.options.Peers {
		if err := p.enter(ctx, peer); err != nil {
			return nil, err
		}
	}
	for _, a := range p.actors {
		if err := p.awaitMoment(ctx, a); err != nil {
			return nil, err
		}
	}
	if err := p.subject.upgrade(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(p.options.Log, "%s: %s is gone; releasing the mappers\n", p.variant, gone)
	for _, a := range p.actors {
		if a.hold != nil {
			a.hold.Release()
		}
	}
	if err := pause(ctx, p.options.Settle); err != nil {
		return nil, err
	}
	for _, a := range p.actors {
		verdict, err := a.verdict(ctx, p.subject.served())
		if err != nil {
			return nil, err
		}
		r := Result{Mode: p.variant.String(), Peer: a.peer}
		r.add(verdict)
		results = append(results, r)
	}
	return results, nil
}

// enter starts a peer behind a proxy.
func (p *play) enter(ctx context.Context, peer Peer) error {
	pr, err := proxy.Start(p.subject.cluster.Config(), proxy.Options{})
	if err != nil {
		return err
	}
	a := &actor{proxy: pr, hold: p.variant.hold()}
	p.actors = append(p.actors, a)
	if p.variant == VersionHeld {
		pr.NoAggregated()
	}
	if a.hold != nil {
		if err := pr.Add(a.hold); err != nil {
			return err
		}
	}
	a.runner, err = start(ctx, p.subject.cluster, peer, p.programs[peer.Name], pr.Config(), fmt.Sprintf("--mappers=%d", p.options.Mappers))
	return err
}

// awaitMoment waits until all mappers of a peer are where the variant wants them when the CRD changes.
func (p *play) awaitMoment(ctx context.Context, a *actor) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if a.hold != nil {
		if err := a.hold.AwaitHeld(ctx, p.options.Mappers); err != nil {
			return fmt.Errorf("peer %s: %w", a.peer.Name, err)
		}
		return nil
	}
	return lab.Await(ctx, "peer "+a.peer.Name+" knows all versions", func(ctx context.Context) (string, bool) {
		n, err := a.count(ctx)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d of %d mappers have answered", n.Answered, n.Mappers), n.Answered == p.options.Mappers
	})
}

// end stops the peers and closes the proxies, in this order: a peer whose connection breaks would complain.
func (p *play) end(ctx context.Context) error {
	var runners []*runner
	for _, a := range p.actors {
		if a.runner != nil {
			runners = append(runners, a.runner)
		}
	}
	err := stopAll(ctx, runners)
	for _, a := range p.actors {
		err = errors.Join(err, a.proxy.Close())
	}
	return err
}

// pause waits for d, or for the end of ctx, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
