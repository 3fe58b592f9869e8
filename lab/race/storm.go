package race

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/changeover-dev/changeover/lab"
)

// StormMode is the mode of Storm's results.
const StormMode = "storm"

// StormOptions are the options of Storm. The zero value works.
type StormOptions struct {
	Peers   []Peer        // default: all
	Rounds  int           // default 30
	Mappers int           // that each peer creates per round at most; default 60
	Rate    float64       // mappers that each peer creates per second; default 60
	Early   int           // mappers of each peer at which the CRD changes; default 20
	Settle  time.Duration // from convergence to the verdict; default 5 s
	Log     io.Writer     // progress; default none
}

func (o *StormOptions) validate() error {
	if o.Rounds < 0 || o.Mappers < 0 || o.Rate < 0 || o.Early < 0 || o.Settle < 0 {
		return errors.New("race: storm: Rounds, Mappers, Rate, Early and Settle must not be negative")
	}
	if o.Peers == nil {
		o.Peers = Peers()
	}
	if o.Rounds == 0 {
		o.Rounds = 30
	}
	if o.Mappers == 0 {
		o.Mappers = 60
	}
	if o.Rate == 0 {
		o.Rate = 60
	}
	if o.Early == 0 {
		o.Early = 20
	}
	if o.Early > o.Mappers {
		return fmt.Errorf("race: storm: Early is %d: there are %d mappers", o.Early, o.Mappers)
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return nil
}

// Storm plays the race as life does, Rounds times, all peers side by side. In each round the peers
// begin together to create mappers at a rate; once all have some, the CRD changes; as soon as every API server serves the new form, the
// creation ends, and after Settle the verdict is taken. On an idle machine that comes to about 40 mappers per peer and round. The API servers take turns in serving the peers; the change always goes to the first.
//
// The results are in the order of the peers. The CRD is created where it is absent, and is in its new form afterwards. There must be
// no other CRD in its group.
func Storm(ctx context.Context, c *lab.Cluster, o StormOptions) ([]Result, error) {
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
	results := make([]Result, len(o.Peers))
	for i, peer := range o.Peers {
		results[i] = Result{Mode: StormMode, Peer: peer}
	}
	for round := range o.Rounds {
		r := stormRound{subject: s, options: o, programs: programs, number: round}
		if err := r.run(ctx, results); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(o.Log, "storm: round %d of %d: so far %s\n", round+1, o.Rounds, summary(results))
	}
	return results, nil
}

// summary is a line for people who wait.
func summary(results []Result) string {
	var parts []string
	for _, r := range results {
		v := r.Verdict
		parts = append(parts, fmt.Sprintf("%s %d stuck, %d stale of %d", r.Peer.Name, v.Stuck, v.Stale, v.Mappers))
	}
	return strings.Join(parts, "; ")
}

type stormRound struct {
	subject  *subject
	options  StormOptions
	programs map[string]string
	number   int
	runners  []*runner
}

// run plays the round and adds each peer's verdict to its result.
func (r *stormRound) run(ctx context.Context, results []Result) (err error) {
	defer func() { err = errors.Join(err, stopAll(ctx, r.runners)) }()
	if err := r.subject.reset(ctx); err != nil {
		return err
	}
	if err := r.startAll(ctx); err != nil {
		return err
	}
	for _, peer := range r.runners {
		if err := r.awaitEarly(ctx, peer); err != nil {
			return err
		}
	}
	if err := r.subject.upgrade(ctx); err != nil {
		return err
	}
	for _, peer := range r.runners {
		if err := peer.freeze(ctx); err != nil {
			return err
		}
	}
	if err := pause(ctx, r.options.Settle); err != nil {
		return err
	}
	for i, peer := range r.runners {
		verdict, err := peer.verdict(ctx, r.subject.served())
		if err != nil {
			return err
		}
		results[i].add(verdict)
	}
	return nil
}

// startAll starts the peers, one after another, and then has them begin together.
func (r *stormRound) startAll(ctx context.Context) error {
	servers := r.subject.cluster.Servers()
	cfg := servers[r.number%len(servers)].Config()
	for _, peer := range r.options.Peers {
		runner, err := start(ctx, r.subject.cluster, peer, r.programs[peer.Name], cfg,
			"--wait", fmt.Sprintf("--rate=%g", r.options.Rate), fmt.Sprintf("--max=%d", r.options.Mappers), "--interval=1s")
		if err != nil {
			return err
		}
		r.runners = append(r.runners, runner)
	}
	for _, runner := range r.runners {
		if err := runner.begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitEarly waits until a peer has the mappers that it should have when the CRD changes.
func (r *stormRound) awaitEarly(ctx context.Context, peer *runner) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return lab.Await(ctx, "peer "+peer.peer.Name+" creates mappers", func(ctx context.Context) (string, bool) {
		n, err := peer.count(ctx)
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d mappers", n.Mappers), n.Mappers >= r.options.Early
	})
}
