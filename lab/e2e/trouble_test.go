package e2e

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/proxy"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// late is the API server that can be made to lag.
const late = 1

// TestTrouble disturbs runs on one plane, each with a scene of its own.
func TestTrouble(t *testing.T) {
	p := newPlane(t, lab.Options{Lag: []int{late}})
	p.startNode(t)
	t.Run("killed", func(t *testing.T) { killed(t, p) })
	t.Run("interrupted while Pods do not end", func(t *testing.T) { interrupted(t, p) })
	t.Run("scaled up by another while Pods do not end", func(t *testing.T) { scaledUpInQuiesce(t, p) })
	t.Run("scaled up by another while API servers disagree", func(t *testing.T) { scaledUpInConverge(t, p) })
	t.Run("an API server lags", func(t *testing.T) { lagging(t, p) })
	t.Run("an API server is down", func(t *testing.T) { serverDown(t, p) })
}

// killed ends the command with SIGKILL at chosen points, each fixed by a proxy that holds the write, and runs the same command again.
func killed(t *testing.T, p *plane) {
	const deployments = "/apis/apps/v1/namespaces/*/deployments/*"
	const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	for name, at := range map[string]struct {
		path  string // pattern of the writes
		spare int    // how many of them pass before
		hold  proxy.Hold
	}{
		"between two scale-downs":                    {deployments, 1, proxy.HoldRequest},
		"before any CRD is written":                  {crdPath + "*", 0, proxy.HoldRequest},
		"after a CRD is written, before it is known": {crdPath + "*", 1, proxy.HoldResponse},
		"between two scale-ups":                      {deployments, 3, proxy.HoldRequest},
	} {
		t.Run(name, func(t *testing.T) {
			group := fmt.Sprintf("killed%d%d%d", len(at.path), at.spare, at.hold)
			s := newScene(t, p, group, obedient)
			front := p.startProxy(t)
			method := http.MethodPatch
			if at.path != deployments {
				method = http.MethodPut
			}
			// The first rule that takes a request decides; these let the dry runs and the writes before pass.
			pass := []*proxy.Rule{{Method: method, Path: at.path, Query: "dryRun", Delay: 1}}
			if at.spare > 0 {
				pass = append(pass, &proxy.Rule{Method: method, Path: at.path, Delay: 1, Times: at.spare})
			}
			stop := &proxy.Rule{Method: method, Path: at.path, Hold: at.hold}
			for _, r := range append(pass, stop) {
				if err := front.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			command := p.start(t, s.args("--kubeconfig", p.kubeconfigThrough(t, front))...)
			held(t, stop)
			command.Kill()
			s.rerun(t)
		})
	}
}

// interrupted sends SIGINT while a Pod takes its time to end: nothing is changed yet, so all is put back.
func interrupted(t *testing.T, p *plane) {
	s := newScene(t, p, "interrupted", stubborn)
	defer s.killPods(t)
	since := s.crdStates(t)
	command := s.start(t, s.args()...)
	s.awaitTerminating(t)
	command.Signal(syscall.SIGINT)
	e := command.wait(t)
	e.wantExit(t, 5, "quiesce: interrupted", "no CRD was changed")
	e.wantFailedIn(t, "quiesce")
	if e.report.Outcome != "interrupted" {
		t.Errorf("outcome %q", e.report.Outcome)
	}
	s.wantReplicas(t, s.name, "", s.replicas)
	s.wantNothingApplied(t, since)
}

// scaledUpInQuiesce: the changeover stops rather than fights, and puts back what it had stopped, but for what the other has said.
func scaledUpInQuiesce(t *testing.T, p *plane) {
	s := newScene(t, p, "fought", stubborn)
	defer s.killPods(t)
	since := s.crdStates(t)
	command := s.start(t, s.args()...)
	s.awaitTerminating(t)
	s.scaleUp(t, "two", 3)
	e := command.wait(t)
	e.wantExit(t, 1, `deployment fought/two: scaled up to 3 by "colleague" while it has to be down`, "pause what keeps the Deployment running")
	e.wantFailedIn(t, "quiesce")
	s.wantReplicas(t, s.name, "", map[string]int32{"one": 1, "two": 3})
	s.wantNothingApplied(t, since)
}

// scaledUpInConverge: CRDs are written, so the other controllers stay down. What the other has said counts in the next run.
func scaledUpInConverge(t *testing.T, p *plane) {
	s := newScene(t, p, "meddled", obedient)
	front := p.startProxy(t)
	converging := holdConverge(t, front)
	command := s.start(t, s.args("--kubeconfig", p.kubeconfigThrough(t, front), "--apiserver", "front="+front.URL())...)
	held(t, converging)
	s.wantHeld(t, s.name, s.replicas)
	s.scaleUp(t, "one", 3)
	e := command.wait(t)
	e.wantExit(t, 1, `deployment meddled/one: scaled up to 3 by "colleague" while it has to be down`, "run the same command again", "stopped: meddled/two (had 2)")
	e.wantFailedIn(t, "converge")
	for _, d := range s.deployments(t, s.name, "") {
		if want := map[string]int32{"one": 3, "two": 0}[d.Name]; *d.Spec.Replicas != want {
			t.Errorf("deployment %s has %d replicas; want %d", d.Name, *d.Spec.Replicas, want)
		}
	}
	s.replicas["one"] = 3
	s.rerun(t)
}

// lagging: one API server learns 3 s later than its twin. No controller starts before it serves what its twin does.
func lagging(t *testing.T, p *plane) {
	s := newScene(t, p, "lagging", obedient)
	p.Server(late).SetLag(3 * time.Second)
	defer p.Server(late).SetLag(0)
	wrong := s.whenResumed(t, func() string { return misserved(t.Context(), p.Server(late), s.after) })
	command := s.start(t, s.args()...)
	// Each look at a server that lags takes seconds. One that the command was not content with is enough; the lag may show at the
	// twin, whose legacy list the lagging server writes to.
	command.awaitLine(t, "differences; the first: server-")
	p.Server(late).SetLag(0)
	command.wait(t).wantExit(t, 0)
	if wrong := <-wrong; wrong != "" {
		t.Errorf("when a controller was started, the lagging API server was not there yet: %s", wrong)
	}
	s.wantDone(t)
}

// whenResumed calls check at the moment at which a Deployment of the scene is brought back, and sends what it says; at the end of the test
// at the latest.
func (s *scene) whenResumed(t testing.TB, check func() string) <-chan string {
	t.Helper()
	list, err := s.kube.AppsV1().Deployments(s.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := s.kube.AppsV1().Deployments(s.name).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	said := make(chan string, 1)
	go func() {
		stopped := map[string]bool{}
		for event := range watcher.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			switch {
			case ok && *d.Spec.Replicas == 0:
				stopped[d.Name] = true
			case ok && stopped[d.Name]:
				said <- check()
				return
			}
		}
		said <- "no Deployment was brought back"
	}()
	return said
}

// serverDown: an API server that does not answer may serve anything when it comes back. Known before, it is a reason not to begin;
// lost on the way, the controllers stay down until it does.
func serverDown(t *testing.T, p *plane) {
	s := newScene(t, p, "down", obedient)
	p.Server(late).Kill()
	before := p.state(t)
	e := s.run(t, s.args("--timeout", "20s")...)
	e.wantExit(t, 3, "api server server-1: ", "connection refused", "nothing was changed")
	e.wantFailedIn(t, "preflight")
	if after := p.state(t); after != before {
		t.Errorf("it changed the cluster, from\n%s\nto\n%s", before, after)
	}
	restart(t, p.Server(late))

	front := p.startProxy(t)
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/*"
	writing := &proxy.Rule{Method: http.MethodPut, Path: path, Hold: proxy.HoldRequest}
	for _, r := range []*proxy.Rule{{Method: http.MethodPut, Path: path, Query: "dryRun", Delay: 1}, writing} {
		if err := front.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	command := p.start(t, s.args("--timeout", "20s", "--kubeconfig", p.kubeconfigThrough(t, front))...)
	held(t, writing)
	p.Server(late).Kill()
	writing.Release()
	e = command.wait(t)
	e.wantExit(t, 4, "server-1", "stay stopped", "stopped: down/one (had 1), down/two (had 2)")
	e.wantFailedIn(t, "converge")
	s.wantHeld(t, s.name, s.replicas)
	restart(t, p.Server(late))
	s.rerun(t)
}

func restart(t *testing.T, s *lab.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
}

// awaitTerminating waits until all Deployments are at zero while their Pods still run.
func (s *scene) awaitTerminating(t testing.TB) {
	t.Helper()
	await(t, "Pods that are asked to end and run on", func(ctx context.Context) (string, bool) {
		list, err := s.kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		terminating := 0
		for _, pod := range list.Items {
			if pod.DeletionTimestamp != nil {
				terminating++
			}
		}
		return fmt.Sprintf("%d of %d Pods terminate", terminating, len(list.Items)), terminating == 3
	})
}

// killPods spares the end of the test the half minute that stubborn Pods take.
func (s *scene) killPods(t testing.TB) {
	for name := range s.replicas {
		if err := s.kube.AppsV1().Deployments(s.name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	await(t, "no Pod", func(ctx context.Context) (string, bool) {
		err := s.kube.CoreV1().Pods(s.name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		list, err := s.kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d Pods", len(list.Items)), len(list.Items) == 0
	})
}
