package race

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/changeover-dev/changeover/lab/peers/probe"
)

// Result is how one peer fared in one mode.
type Result struct {
	Mode   string // "storm", or the name of a Variant
	Peer   Peer
	Rounds int
	// Verdict sums up all rounds; its samples are the first ones.
	Verdict probe.Verdict
}

// Wrong is the number of mappers that were stuck or stale.
func (r Result) Wrong() int { return r.Verdict.Stuck + r.Verdict.Stale }

// add counts a further round.
func (r *Result) add(v probe.Verdict) {
	r.Rounds++
	sum := &r.Verdict
	sum.Name = v.Name
	sum.Mappers += v.Mappers
	sum.Stuck += v.Stuck
	sum.Stale += v.Stale
	sum.Right += v.Right
	sum.Requests.Discovery += v.Requests.Discovery
	sum.Requests.Other += v.Requests.Other
	sum.SampleError = cmp.Or(sum.SampleError, v.SampleError)
	sum.SampleStale = cmp.Or(sum.SampleStale, v.SampleStale)
}

// WriteTable writes results for people: one line per result, and below it what a wrong mapper said.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODE\tMAPPER\tMAPPERS\tSTUCK\tSTALE\tRIGHT\tDISCOVERY REQUESTS\tPER MAPPER")
	for _, r := range results {
		v := r.Verdict
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.1f\n", r.Mode, r.Peer.Name, v.Mappers, v.Stuck, v.Stale, v.Right,
			v.Requests.Discovery, float64(v.Requests.Discovery)/float64(max(v.Mappers, 1)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Verdict.SampleError != "" {
			fmt.Fprintf(w, "stuck: %s, %s: %s\n", r.Mode, r.Peer.Name, r.Verdict.SampleError)
		}
		if r.Verdict.SampleStale != "" {
			fmt.Fprintf(w, "stale: %s, %s: still answers with %s\n", r.Mode, r.Peer.Name, r.Verdict.SampleStale)
		}
	}
	return nil
}
