// The module asks for Go 1.22, whose timers a bubble cannot hold.
//
//go:debug asynctimerchan=0

//go:build go1.25

package discovery

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hang holds a reply until its request is given up.
func hang(req *http.Request) { <-req.Context().Done() }

// A server that never answers costs one deadline, of ours or of the caller, whichever comes first.
func TestFetchDeadlines(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		caller  time.Duration
		took    time.Duration
		want    string
	}{
		"default": {Options{}, time.Hour, 10 * time.Second, "GET /apis: no complete answer within 10s: context deadline exceeded"},
		"ours":    {Options{Timeout: time.Second}, time.Hour, time.Second, "GET /apis: no complete answer within 1s: context deadline exceeded"},
		"theirs":  {Options{}, 3 * time.Second, 3 * time.Second, "GET /apis: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				s.serve(true, widgets("v1"))
				r := aggregatedReply(widgets("v1"))
				r.before = hang
				s.set("aggregated /apis", r)
				ctx, cancel := context.WithTimeout(context.Background(), test.caller)
				defer cancel()
				start := time.Now()
				_, err := s.client(test.options).Fetch(ctx, nil)
				if err == nil || err.Error() != test.want || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want %s", err, test.want)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
		})
	}
}

// When one document fails, the other is not waited for.
func TestFetchFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(true, widgets("v1"))
		r := aggregatedReply(coreGroup)
		r.before = hang
		s.set("aggregated /api", r)
		s.set("aggregated /apis", reply{status: 503, contentType: textType, body: "down"})
		start := time.Now()
		_, err := s.client(Options{}).Fetch(context.Background(), nil)
		if err == nil || !strings.Contains(err.Error(), "GET /apis: answered 503: down") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

// A group-version that hangs costs its own deadline once, however many hang, and the others are there.
func TestFetchGroupHungVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		group := widgets("v4", "v3", "v2", "v1")
		s.serve(false, group)
		for _, v := range []string{"v4", "v3", "v2"} {
			r := group.version(v)
			r.before = hang
			s.set("/apis/example.com/"+v, r)
		}
		start := time.Now()
		g, found, err := s.client(Options{}).FetchGroup(context.Background(), "example.com")
		if err != nil || !found {
			t.Fatal(found, err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		for _, v := range g.Versions[:3] {
			if v.State != Unavailable || !errors.Is(v.Reason, context.DeadlineExceeded) {
				t.Errorf("%+v", v)
			}
		}
		if v := g.Versions[3]; v.State != Current {
			t.Errorf("%+v", v)
		}
	})
}

// A caller that gives up gets its own error, and no group that blames the server.
func TestFetchGroupCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serve(false, widgets("v1"))
		r := widgets("v1").version("v1")
		r.before = hang
		s.set("/apis/example.com/v1", r)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		g, found, err := s.client(Options{}).FetchGroup(ctx, "example.com")
		if found || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v, %v", g, found, err)
		}
	})
}
