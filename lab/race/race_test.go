package race

import (
	"bytes"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab"
)

// TestRace is the project's reason, on one control plane: the race of the report, by a script and as a storm.
func TestRace(t *testing.T) {
	c := lab.ForTest(t, lab.Options{NoControllerManager: true})
	t.Run("script", func(t *testing.T) { testScript(t, c) })
	t.Run("storm", func(t *testing.T) { testShortStorm(t, c) })
}

// testScript: the stock mapper of the report sticks every time, with the report's error, and ours, beside it and against the same
// change of the same CRD, never does.
func testScript(t *testing.T, c *lab.Cluster) {
	results, err := Script(t.Context(), c, ScriptOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	show(t, results)
	if want := len(Variants()) * len(Peers()); len(results) != want {
		t.Errorf("%d results, want %d: each peer in each variant", len(results), want)
	}
	for _, r := range results {
		v := r.Verdict
		if v.Mappers != 3 {
			t.Errorf("%s, %s: %d mappers, want 3", r.Mode, r.Peer.Name, v.Mappers)
		}
		if r.Peer == Ours() && r.Wrong() > 0 {
			t.Errorf("%s: ours: %d stuck, %d stale: %s%s", r.Mode, v.Stuck, v.Stale, v.SampleError, v.SampleStale)
		}
	}
	const report = "unable to retrieve the complete list of server APIs: infrastructure.cluster.x-k8s.io/v1alpha4: the server could not find the requested resource"
	reported := find(t, results, VersionHeld, "controller-runtime v0.16.3").Verdict
	if reported.Stuck != reported.Mappers || !strings.Contains(reported.SampleError, report) {
		t.Errorf("controller-runtime v0.16.3 must stick every time: %+v; want the error %q", reported, report)
	}
	// Stock mappers that know everything are never told: if this fails, a peer has become as good as ours, or the script
	// looks too late.
	for _, peer := range Peers() {
		if r := find(t, results, Settled, peer.Name); peer != Ours() && r.Verdict.Stale != r.Verdict.Mappers {
			t.Errorf("%s: %s: %+v; want all stale", r.Mode, peer.Name, r.Verdict)
		}
	}
}

// testShortStorm is too short to catch the stock mappers for sure; it is about ours.
func testShortStorm(t *testing.T, c *lab.Cluster) {
	results, err := Storm(t.Context(), c, StormOptions{Rounds: 3, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	show(t, results)
	for _, r := range results {
		v := r.Verdict
		if r.Rounds != 3 || v.Mappers < 3*20 || v.Stuck+v.Stale+v.Right != v.Mappers {
			t.Errorf("%s: %d rounds, %+v: want 3 rounds with 20 mappers at least, each counted once", r.Peer.Name, r.Rounds, v)
		}
		if r.Peer == Ours() && r.Wrong() > 0 {
			t.Errorf("ours: %d stuck, %d stale: %s%s", v.Stuck, v.Stale, v.SampleError, v.SampleStale)
		}
	}
}

func find(t *testing.T, results []Result, v Variant, peer string) Result {
	t.Helper()
	for _, r := range results {
		if r.Mode == v.String() && r.Peer.Name == peer {
			return r
		}
	}
	t.Fatalf("%s: no result for %s", v, peer)
	return Result{}
}

func show(t *testing.T, results []Result) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, results); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
}
