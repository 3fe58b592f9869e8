package main

import (
	"context"
	"io"
	"math"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/race"
)

// raceStorm counts mappers that are stuck or stale after a CRD stopped serving a version: in a storm of 30 rounds, and in each variant
// of the script.
func raceStorm(ctx context.Context, log io.Writer, emit func(line) error) (err error) {
	c, err := lab.Start(ctx, lab.Options{NoControllerManager: true, Log: log})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := c.Stop(); err == nil {
			err = stopErr
		}
	}()
	storm, err := race.Storm(ctx, c, race.StormOptions{Log: log})
	if err != nil {
		return err
	}
	script, err := race.Script(ctx, c, race.ScriptOptions{Mappers: 10, Log: log})
	if err != nil {
		return err
	}
	results := append(storm, script...)
	if err := race.WriteTable(log, results); err != nil {
		return err
	}
	for _, l := range raceLines(results) {
		if err := emit(l); err != nil {
			return err
		}
	}
	return nil
}

// raceLines makes one line of the results of each mode.
func raceLines(results []race.Result) []line {
	var modes []string
	byMode := map[string][]race.Result{}
	for _, r := range results {
		if byMode[r.Mode] == nil {
			modes = append(modes, r.Mode)
		}
		byMode[r.Mode] = append(byMode[r.Mode], r)
	}
	var lines []line
	for _, mode := range modes {
		lines = append(lines, raceLine(mode, byMode[mode]))
	}
	return lines
}

func raceLine(mode string, results []race.Result) line {
	l := line{Name: "race-storm", Unit: "mappers", Peers: map[string]float64{}, Ratio: math.Inf(1), Ratios: map[string]float64{}}
	var ours race.Result
	for _, r := range results {
		if r.Peer == race.Ours() {
			ours = r
		}
	}
	l.Ours = float64(ours.Wrong())
	l.Params = map[string]any{"mode": mode, "rounds": ours.Rounds, "mappers": ours.Verdict.Mappers}
	for _, r := range results {
		if r.Peer == ours.Peer {
			continue
		}
		// How many mappers a storm comes to differs a little from peer to peer.
		l.Params["mappers "+r.Peer.Name] = r.Verdict.Mappers
		l.Params["stuck "+r.Peer.Name] = r.Verdict.Stuck
		l.Peers[r.Peer.Name] = float64(r.Wrong())
		l.Ratios[r.Peer.Name] = timesBetter(ours, r)
		l.Ratio = min(l.Ratio, l.Ratios[r.Peer.Name])
	}
	return l
}

// timesBetter compares the shares of mappers that were wrong. Where none of ours was, ours counts as one wrong mapper: "how many times
// better than none" has no answer, and the ratio is then one that can be stood by, a lower bound that grows with the number of mappers. Where
// the peer had none either, it is 1.
func timesBetter(ours, peer race.Result) float64 {
	if ours.Wrong() == 0 && peer.Wrong() == 0 {
		return 1
	}
	share := func(wrong int, r race.Result) float64 { return float64(wrong) / float64(max(r.Verdict.Mappers, 1)) }
	ratio := share(peer.Wrong(), peer) / share(max(ours.Wrong(), 1), ours)
	return math.Round(ratio*100) / 100
}
