//go:build go1.25

package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// wanted is what the tests' group shall serve after the upgrade.
var wanted = []Want{{
	Group:  "example.com",
	Served: map[string][]string{"v1": {"widgets"}},
	Gone:   map[string][]string{"v1alpha4": {"widgets"}},
}}

func endpointsOf(scripts ...*script) []Endpoint {
	var out []Endpoint
	for i, s := range scripts {
		out = append(out, Endpoint{Name: fmt.Sprintf("server-%d", i), Config: s.config()})
	}
	return out
}

// await calls Await with a time limit, and returns all rounds.
func await(t *testing.T, limit time.Duration, endpoints []Endpoint, want []Want) (Report, []Progress, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var rounds []Progress
	r, err := Await(ctx, endpoints, want, AwaitOptions{OnProgress: func(p Progress) { rounds = append(rounds, p) }})
	return r, rounds, err
}

// Two servers, one of which follows 5 s later.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newScript(t), newScript(t)
		a.serve(true, widgets("v1"), gadgets("v1"))
		b.serve(false, widgets("v1", "v1alpha4"), gadgets("v1"))
		go func() {
			time.Sleep(5 * time.Second)
			b.serve(false, widgets("v1"), gadgets("v1"))
		}()
		r, rounds, err := await(t, time.Minute, endpointsOf(a, b), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if r.Elapsed < 5*time.Second || r.Elapsed > 7*time.Second {
			t.Errorf("elapsed %v", r.Elapsed)
		}
		if r.Rounds != len(rounds) || r.Rounds > 15 || r.Requests != 2*r.Rounds*7 || r.Sampled {
			t.Errorf("report %+v", r)
		}
		want := []EndpointReport{{Name: "server-0", Aggregated: AggregatedV2}, {Name: "server-1"}}
		if fmt.Sprint(r.Endpoints) != fmt.Sprint(want) {
			t.Errorf("endpoints %+v", r.Endpoints)
		}
		first := rounds[0].Differences
		var got []string
		for _, d := range first {
			got = append(got, d.Endpoint+": "+d.String())
		}
		wantDifferences := []string{
			"server-1: legacy /apis example.com/v1alpha4: want not listed, have listed",
			"server-1: legacy /apis/example.com example.com/v1alpha4: want not listed, have listed",
			"server-1: legacy /apis/example.com/v1alpha4 example.com/v1alpha4: want 404, have 1 resources",
			"server-1: list request /apis/example.com/v1alpha4/widgets: want 404 page not found, have a list",
		}
		if strings.Join(got, "\n") != strings.Join(wantDifferences, "\n") {
			t.Errorf("differences of the first round:\n%s", strings.Join(got, "\n"))
		}
		last := rounds[len(rounds)-1]
		if last.Agreed != 2 || last.Needed != 2 || rounds[len(rounds)-2].Agreed != 1 {
			t.Errorf("last round %+v", last)
		}
	})
}

// An API server speaks for itself, not for its peers. A client asks for both, which is what a client of all of them needs.
func TestAwaitAsksForNoPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		var asked []string
		r := aggregatedReply(widgets("v1"))
		r.before = func(req *http.Request) { asked = append(asked, req.Header.Get("Accept")) }
		s.set("aggregated /apis", r)
		if _, _, err := await(t, time.Minute, endpointsOf(s), wanted); err != nil {
			t.Fatal(err)
		}
		fetch(t, s.client(Options{}), nil)
		if len(asked) != 3 || !strings.Contains(asked[0], "v=v2;as=APIGroupDiscoveryList;profile=nopeer,") || strings.Contains(asked[2], "profile") {
			t.Errorf("asked for %q", asked)
		}
	})
}

// Each form by itself can lag behind the others, and each is waited for and named.
func TestAwaitEachForm(t *testing.T) {
	old, now := widgets("v1", "v1alpha4"), widgets("v1")
	tests := map[string]struct {
		path  string
		reply reply
		form  Form
	}{
		"aggregated": {"aggregated /apis", aggregatedReply(old), AggregatedV2},
		"group list": {"/apis", groupListReply(old), Legacy},
		"group":      {"/apis/example.com", jsonReply(old.entry()), Legacy},
		"version":    {"/apis/example.com/v1alpha4", old.version("v1alpha4"), Legacy},
		"handler":    {"/apis/example.com/v1alpha4/widgets", jsonReply(map[string]any{"kind": "WidgetList"}), ListRequest},
		"gone":       {"/apis/example.com/v1", reply{status: 404, contentType: textType}, Legacy},
		"not yet":    {"/apis/example.com/v1/widgets", reply{status: 404, contentType: textType, body: "404 page not found\n"}, ListRequest},
		"resource":   {"/apis/example.com/v1", serves{group: "example.com", plurals: map[string][]string{"v1": {"others"}}}.version("v1"), Legacy},
		"extra":      {"aggregated /apis", aggregatedReply(serves{group: "example.com", versions: []string{"v1"}, plurals: map[string][]string{"v1": {"widgets", "others"}}}), AggregatedV2},
		"stale":      {"aggregated /apis", aggregatedReply(serves{group: "example.com", versions: []string{"v1"}, plurals: now.plurals, stale: map[string]bool{"v1": true}}), AggregatedV2},
		"group gone": {"aggregated /apis", aggregatedReply(gadgets("v1")), AggregatedV2},
		"broken":     {"aggregated /apis", reply{status: 500, contentType: textType, body: "oh"}, AggregatedV2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				s.serve(true, now)
				s.set(test.path, test.reply)
				_, rounds, err := await(t, 30*time.Second, endpointsOf(s), wanted)
				var nc *NotConvergedError
				if !errors.As(err, &nc) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("error %v", err)
				}
				if nc.Rounds != len(rounds) || nc.Elapsed != 30*time.Second || len(nc.Differences) == 0 {
					t.Fatalf("error %+v", nc)
				}
				for _, d := range nc.Differences {
					if d.Form != test.form || d.Path != strings.TrimPrefix(test.path, "aggregated ") || d.Endpoint != "server-0" {
						t.Errorf("difference %+v", d)
					}
				}
				t.Log(err)
			})
		})
	}
}

// A server that flaps agrees only every other round, which is not two in a row.
func TestAwaitFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		n := 0
		r := jsonReply(widgets("v1").entry())
		r.before = func(*http.Request) {
			if n++; n%2 == 0 {
				s.set("/apis/example.com/v1alpha4/widgets", jsonReply(map[string]any{"kind": "WidgetList"}))
			} else {
				s.drop("/apis/example.com/v1alpha4/widgets")
			}
		}
		s.set("/apis/example.com", r)
		// One request at a time, so that the entry is read before the list is asked for.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		most := 0
		_, err := Await(ctx, endpointsOf(s), wanted, AwaitOptions{Parallel: 1, OnProgress: func(p Progress) { most = max(most, p.Agreed) }})
		if !errors.As(err, new(*NotConvergedError)) || most != 1 {
			t.Errorf("error %v, at most %d rounds agreed", err, most)
		}
	})
}

// While controllers are down, so is their conversion webhook. The version is served all the same.
func TestAwaitDeadConversionWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		r := statusReply(500, "conversion webhook for example.com/v1, Kind=Widget failed")
		s.set("/apis/example.com/v1/widgets", r)
		if _, _, err := await(t, time.Minute, endpointsOf(s), wanted); err != nil {
			t.Error(err)
		}
		// One that is not refused but not answered either holds the list for as long as the API server waits for it.
		r.before = func(*http.Request) { time.Sleep(30 * time.Second) }
		s.set("/apis/example.com/v1/widgets", r)
		if r, _, err := await(t, 2*time.Minute, endpointsOf(s), wanted); err != nil || r.Rounds != 2 {
			t.Errorf("report %+v, %v", r, err)
		}
	})
}

// A 403 proves nothing, since it comes before routing. It ends the wait when nothing else is left, and says what is missing.
func TestAwaitForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		for _, v := range []string{"v1", "v1alpha4"} {
			s.set("/apis/example.com/"+v+"/widgets", statusReply(403, `widgets.example.com is forbidden: User "nobody" cannot list`))
		}
		r, _, err := await(t, time.Hour, endpointsOf(s), wanted)
		var pe *PermissionError
		if !errors.As(err, &pe) || len(pe.Refusals) != 1 || r.Elapsed > time.Second {
			t.Fatalf("error %v after %v", err, r.Elapsed)
		}
		want := `cannot tell whether server-0 serves what is wanted: not allowed to list widgets.example.com: 403 widgets.example.com is forbidden: User "nobody" cannot list`
		if err.Error() != want {
			t.Errorf("error %q", err)
		}
		// As long as something else differs, there is something to wait for.
		s.set("/apis/example.com/v1alpha4", widgets("v1alpha4").version("v1alpha4"))
		if _, _, err := await(t, time.Minute, endpointsOf(s), wanted); !errors.As(err, new(*NotConvergedError)) {
			t.Errorf("error %v", err)
		}
	})
}

// A server that hangs, and one that nobody listens at, are named with what happened.
func TestAwaitUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, hung := newScript(t), newScript(t)
		good.serve(true, widgets("v1"))
		hung.serve(true, widgets("v1"))
		r := aggregatedReply(widgets("v1"))
		r.before = hang
		hung.set("aggregated /apis", r)
		endpoints := append(endpointsOf(good, hung), Endpoint{Name: "server-2", Config: &rest.Config{Host: "http://down", Transport: down{}}})
		_, _, err := await(t, 25*time.Second, endpoints, wanted)
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{
			"not converged after 25s, 2 rounds; server-1: aggregated v2 /apis: want an answer, have GET /apis: no complete answer within 10s",
			"; server-2: aggregated v2 /apis: want an answer, have GET /apis: connection refused, legacy /apis: ", " more; context deadline exceeded",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		}
		if strings.Contains(err.Error(), "server-0") {
			t.Errorf("error %q names a server that agrees", err)
		}
		// The first round is cut short by the caller: better what is known of it than nothing.
		_, _, err = await(t, time.Second, endpointsOf(hung), wanted)
		if err == nil || !strings.Contains(err.Error(), "0 rounds; server-0: aggregated v2 /apis: want an answer") {
			t.Errorf("error %v", err)
		}
	})
}

type down struct{}

func (down) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// A whole group goes away, and another may serve more than is named.
func TestAwaitGroupGoneAndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		other := gadgets("v2", "v1")
		other.plurals["v2"] = []string{"gadgets", "widgets"}
		other.plurals["v1"] = []string{"gadgets"}
		s.serve(true, other)
		want := []Want{
			{Group: "example.com", Gone: map[string][]string{"v1": {"widgets"}}},
			{Group: "other.example.com", Others: true, Served: map[string][]string{"v2": {"widgets"}}, Gone: map[string][]string{"v1": {"widgets"}}},
		}
		if _, _, err := await(t, time.Minute, endpointsOf(s), want); err != nil {
			t.Error(err)
		}
		want[1].Others = false
		if _, _, err := await(t, time.Minute, endpointsOf(s), want); err == nil {
			t.Error("versions and resources that nobody wants are accepted")
		}
		want[1].Others = true
		want[1].Gone["v1"] = []string{"gadgets"}
		if _, _, err := await(t, time.Minute, endpointsOf(s), want); err == nil {
			t.Error("a resource that is not gone is accepted")
		}
	})
}

// At an address that API servers share, more rounds are asked for, and the report says that it is a sample.
func TestAwaitShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		endpoints := endpointsOf(s)
		endpoints[0].Shared = true
		r, _, err := await(t, time.Minute, endpoints, wanted)
		if err != nil || !r.Sampled || r.Rounds != 10 {
			t.Errorf("report %+v, %v", r, err)
		}
	})
}

func TestAwaitRefusesInput(t *testing.T) {
	s := newScript(t)
	good := endpointsOf(s)
	group := func(w Want) []Want { w.Group = "example.com"; return []Want{w} }
	plural := map[string][]string{"v1": {"widgets"}}
	for name, test := range map[string]struct {
		endpoints []Endpoint
		want      []Want
		options   AwaitOptions
		message   string
	}{
		"no endpoint":      {nil, wanted, AwaitOptions{}, "no API server is named"},
		"same endpoint":    {append(endpointsOf(s), good[0]), wanted, AwaitOptions{}, `two endpoints are called "server-0"`},
		"no configuration": {[]Endpoint{{Name: "a"}}, wanted, AwaitOptions{}, "endpoint a: discovery client: no configuration"},
		"nothing wanted":   {good, nil, AwaitOptions{}, "nothing is wanted"},
		"no group":         {good, []Want{{Served: plural}}, AwaitOptions{}, `group name ""`},
		"same group":       {good, []Want{wanted[0], wanted[0]}, AwaitOptions{}, "group example.com is named twice"},
		"bad version":      {good, group(Want{Served: map[string][]string{"v1/x": {"widgets"}}}), AwaitOptions{}, `version name "v1/x"`},
		"bad resource":     {good, group(Want{Gone: map[string][]string{"v1": {""}}}), AwaitOptions{}, `resource name ""`},
		"no resource":      {good, group(Want{Served: map[string][]string{"v1": nil}}), AwaitOptions{}, "without any resource"},
		"both":             {good, group(Want{Served: plural, Gone: plural}), AwaitOptions{}, "widgets is wanted both served and gone"},
		"interval":         {good, wanted, AwaitOptions{Interval: -1}, "negative"},
		"rounds":           {good, wanted, AwaitOptions{Rounds: -1}, "negative"},
		"parallel":         {good, wanted, AwaitOptions{Parallel: -1}, "negative"},
	} {
		_, err := Await(context.Background(), test.endpoints, test.want, test.options)
		if err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: error %v, want %q", name, err, test.message)
		}
	}
	if seen := s.take(); len(seen) > 0 {
		t.Errorf("requests: %q", seen)
	}
}
