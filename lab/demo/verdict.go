package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/changeover-dev/changeover/lab/capi"
	"github.com/changeover-dev/changeover/lab/crds"
	"github.com/changeover-dev/changeover/lab/peers/probe"
	"github.com/changeover-dev/changeover/lab/race"
	corev1 "k8s.io/api/core/v1"
)

// mapperState sums up what one mapper's controllers said.
type mapperState struct {
	mappers, stuck, stale int
	requests              int64
	sample                string
}

func (s mapperState) wrong() int { return s.stuck + s.stale }

func (s *mapperState) add(v probe.Verdict) {
	s.mappers += v.Mappers
	s.stuck += v.Stuck
	s.stale += v.Stale
	s.requests += v.Requests.Discovery
	s.sample = cmp.Or(s.sample, v.SampleError, v.SampleStale)
}

// judge asks every controller of every Pod for its verdict, with the versions that a release serves as the truth, and sums them up by mapper.
func (t *telling) judge(ctx context.Context, release []crds.Provider) (map[string]mapperState, error) {
	pods, err := t.controllers.Pods(ctx)
	if err != nil {
		return nil, err
	}
	if want := len(t.before) * replicas; len(pods) != want {
		return nil, fmt.Errorf("%d Pods of controllers, want %d", len(pods), want)
	}
	query := servedQuery(release)
	states := map[string]mapperState{}
	for _, peer := range race.Peers() {
		var sum mapperState
		for i := range pods {
			v, err := t.ask(ctx, &pods[i], capi.ContainerName(peer.Name), query)
			if err != nil {
				return nil, err
			}
			sum.add(v)
		}
		states[peer.Name] = sum
	}
	return states, nil
}

// ask gets one container's verdict.
func (t *telling) ask(ctx context.Context, pod *corev1.Pod, container string, query url.Values) (v probe.Verdict, err error) {
	where := pod.Namespace + "/" + pod.Name + " " + container
	port, ok := t.node.Port(pod.Namespace, pod.Name, container)
	if !ok {
		return v, fmt.Errorf("%s: does not run", where)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/verdict?%s", port, query.Encode()), nil)
	if err != nil {
		return v, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return v, fmt.Errorf("%s: %w", where, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", where, err)
	}
	return v, nil
}

// servedQuery names the versions that a release serves, group by group.
func servedQuery(release []crds.Provider) url.Values {
	var served []string
	for _, crd := range crds.All(release) {
		for _, v := range crd.Spec.Versions {
			if v.Served {
				served = append(served, crd.Spec.Group+"/"+v.Name)
			}
		}
	}
	slices.Sort(served)
	return url.Values{"served": slices.Compact(served)}
}

// table is the end of the story. Requests are those for discovery, by all mappers together.
func (t *telling) table() {
	t.line("%-28s%-34s%s", "", "updated while controllers run", "after the changeover")
	t.line("%-28s%-10s%-10s%-14s%-10s%-10s%s", "mapper", "stuck", "stale", "requests", "stuck", "stale", "requests")
	for _, peer := range race.Peers() {
		var raced mapperState
		for _, r := range t.race {
			if r.Peer == peer {
				raced.add(r.Verdict)
			}
		}
		s := t.changed[peer.Name]
		of := func(n, all int) string { return fmt.Sprintf("%d of %d", n, all) }
		t.line("%-28s%-10s%-10s%-14d%-10s%-10s%d", peer.Name, of(raced.stuck, raced.mappers), of(raced.stale, raced.mappers), raced.requests,
			of(s.stuck, s.mappers), of(s.stale, s.mappers), s.requests)
	}
	t.line("")
}
