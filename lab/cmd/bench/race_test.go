package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab/peers/probe"
	"github.com/changeover-dev/changeover/lab/race"
)

func result(peer race.Peer, mappers, stuck, stale int) race.Result {
	return race.Result{Mode: "storm", Peer: peer, Rounds: 30, Verdict: probe.Verdict{
		Mappers: mappers, Stuck: stuck, Stale: stale, Right: mappers - stuck - stale,
	}}
}

func TestTimesBetter(t *testing.T) {
	peer := race.Peer{Name: "peer"}
	for _, c := range []struct {
		ours, peer race.Result
		want       float64
	}{
		{result(race.Ours(), 100, 0, 0), result(peer, 100, 0, 0), 1},
		{result(race.Ours(), 100, 0, 0), result(peer, 100, 10, 20), 30}, // at least
		{result(race.Ours(), 100, 1, 1), result(peer, 200, 0, 40), 10},
		{result(race.Ours(), 100, 0, 5), result(peer, 100, 0, 0), 0},
	} {
		if got := timesBetter(c.ours, c.peer); got != c.want {
			t.Errorf("ours %d of %d, peer %d of %d: %g times better, want %g", c.ours.Wrong(), c.ours.Verdict.Mappers, c.peer.Wrong(), c.peer.Verdict.Mappers, got, c.want)
		}
	}
}

func TestRaceLine(t *testing.T) {
	lines := raceLines([]race.Result{
		result(race.Peer{Name: "old"}, 100, 30, 10),
		result(race.Peer{Name: "new"}, 100, 0, 20),
		result(race.Ours(), 100, 0, 0),
	})
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1 for the one mode", len(lines))
	}
	got, err := json.Marshal(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"name":"race-storm","params":{"mappers":100,"mappers new":100,"mappers old":100,"mode":"storm","rounds":30,"stuck new":0,"stuck old":30},` +
		`"unit":"mappers","ours":0,"peers":{"new":20,"old":40},"ratio":20,"ratios":{"new":20,"old":40}}`
	if string(got) != want {
		t.Errorf("line\n%s, want\n%s", got, want)
	}
}

func TestChoose(t *testing.T) {
	all := []bench{{name: "a"}, {name: "b"}, {name: "c"}}
	for _, c := range []struct{ selected, want string }{
		{"", "a b c"}, {"b", "b"}, {"c,a", "a c"}, {"a,d", `bench "d": there are a, b, c`},
	} {
		var names []string
		chosen, err := choose(all, c.selected)
		for _, b := range chosen {
			names = append(names, b.name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = fmt.Sprint(err)
		}
		if got != c.want {
			t.Errorf("%q chooses %s, want %s", c.selected, got, c.want)
		}
	}
}
