package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// view is a container's state at one moment. It shares nothing that changes.
type view struct {
	running bool
	ended   bool // for good: there is no process, and none will be started
	started bool // its startup probe has succeeded; true from the start without one
	ready   bool // implies running

	pid, port int
	since     metav1.Time                      // of the running process
	reason    string                           // why it waits
	message   string                           // to the reason
	last      *corev1.ContainerStateTerminated // the end of the latest process that ended
	restarts  int32
}

// status renders the view as Kubernetes does.
func (v view) status(spec *corev1.Container) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Ready: v.ready, Started: ptr.To(v.started), RestartCount: v.restarts}
	switch {
	case v.running:
		s.ContainerID = containerID(v.pid)
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: v.since}
		if v.last != nil {
			s.LastTerminationState.Terminated = v.last
		}
	case v.ended && v.last != nil:
		s.ContainerID = v.last.ContainerID
		s.State.Terminated = v.last
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: v.reason, Message: v.message}
		if v.last != nil {
			s.ContainerID = v.last.ContainerID
			s.LastTerminationState.Terminated = v.last
		}
	}
	return s
}

func containerID(pid int) string { return fmt.Sprintf("process://%d", pid) }

// A container runs one container of a Pod, again and again as the restart policy says.
type container struct {
	pod    *pod
	source *corev1.Pod // as first seen: all that it takes from there is immutable
	spec   *corev1.Container
	policy corev1.RestartPolicy

	stopping  chan struct{} // closed by the first stop
	confirmed bool          // the API server has said that the Pod is wanted; only run uses it

	mu      sync.Mutex
	stopped bool
	process *process // while one runs
	now     view
}

// newContainer prepares a container, taking over what an earlier agent of this node reported of it.
func newContainer(w *pod, p *corev1.Pod, spec *corev1.Container) *container {
	c := &container{pod: w, source: p, spec: spec, policy: p.Spec.RestartPolicy, stopping: make(chan struct{})}
	c.now = view{reason: "ContainerCreating"}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name != spec.Name {
			continue
		}
		c.now.restarts = s.RestartCount
		switch {
		case s.State.Terminated != nil:
			c.now.last = s.State.Terminated
		case s.State.Running != nil:
			c.now.last = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "NodeStopped", Message: "the node's agent ended, and the process with it",
				StartedAt: s.State.Running.StartedAt, FinishedAt: metav1.Now(), ContainerID: s.ContainerID,
			}
		default:
			c.now.last = s.LastTerminationState.Terminated
		}
	}
	return c
}

func (c *container) look() view {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// set changes the view and tells the Pod's worker.
func (c *container) set(change func(v *view)) {
	c.mu.Lock()
	change(&c.now)
	c.mu.Unlock()
	c.pod.changed()
}

// end says that nothing runs and nothing will.
func (c *container) end() { c.set(func(v *view) { v.running, v.ready, v.ended = false, false, true }) }

// stop asks the process to end, kills it when grace is over, and has none started any more. It does not wait. A later call with less grace
// shortens the time.
func (c *container) stop(grace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.stopped = true
		close(c.stopping)
	}
	if c.process != nil {
		c.process.stop(grace)
	}
}

// run starts the container's process, and again after its end while the restart policy wants it, until stop is called. It returns when there is no process.
func (c *container) run(ctx context.Context) {
	defer c.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := c.look()
	if v.last != nil && !restarts(c.policy, v.last.ExitCode) {
		return
	}
	again := v.last != nil // a start that is a restart
	var delays backoff
	delays.base = c.pod.node.options.Backoff
	for {
		if again {
			c.set(func(v *view) { v.restarts++ })
		}
		begun := time.Now()
		p, err := c.start(ctx)
		switch {
		case err != nil:
			again = false // nothing ran
			c.refuse(err)
		case p == nil:
			return // no longer wanted
		default:
			end := c.watch(ctx, p)
			if !restarts(c.policy, end.ExitCode) {
				return
			}
			again = true
		}
		if !c.pause(delays.next(time.Since(begun)), again) {
			return
		}
	}
}

// watch probes the process until it ends, reports that, and returns how it ended.
func (c *container) watch(ctx context.Context, p *process) *corev1.ContainerStateTerminated {
	v := c.look()
	c.pod.node.logf("pod %s: container %s: started as process %d", c.pod.id, c.spec.Name, p.pid())
	ctx, cancel := context.WithCancel(ctx)
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		c.probe(ctx, p, v.port)
	}()
	<-p.done
	cancel()
	<-probing
	end := terminated(p, v.since)
	c.pod.node.ports.release(v.port)
	c.mu.Lock()
	c.process = nil
	c.mu.Unlock()
	c.set(func(v *view) {
		v.running, v.ready, v.started, v.last, v.reason = false, false, false, end, "ContainerRestarting"
	})
	c.pod.node.logf("pod %s: container %s: process %d ended with code %d", c.pod.id, c.spec.Name, p.pid(), end.ExitCode)
	return end
}

// refuse reports why no process could be started.
func (c *container) refuse(err error) {
	reason, message := "StartError", err.Error()
	if r, ok := err.(*refusal); ok {
		reason, message = r.reason, r.message
	}
	if v := c.look(); v.reason == reason && v.message == message {
		return // said before
	}
	c.set(func(v *view) { v.reason, v.message = reason, message })
	c.pod.node.events.Event(c.source, corev1.EventTypeWarning, reason, message)
	c.pod.node.logf("pod %s: container %s: %s: %s", c.pod.id, c.spec.Name, reason, message)
}

// pause waits before the next start; false when the container was stopped meanwhile.
func (c *container) pause(d time.Duration, crashed bool) bool {
	if crashed && d > 0 {
		c.set(func(v *view) {
			v.reason, v.message = "CrashLoopBackOff", fmt.Sprintf("waiting %s before the next start", d)
		})
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.stopping:
		return false
	case <-timer.C:
		return true
	}
}

// terminated describes the end of a process, as Kubernetes does. Only after its done.
func terminated(p *process, since metav1.Time) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode: p.exitCode(), Reason: "Error", StartedAt: since, FinishedAt: metav1.Now(), ContainerID: containerID(p.pid()),
	}
	if t.ExitCode == 0 {
		t.Reason = "Completed"
	}
	return t
}

// restarts says whether the policy wants a new process after one that ended with code.
func restarts(policy corev1.RestartPolicy, code int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// backoff yields the delays before a container's restarts.
type backoff struct {
	base  time.Duration
	count int // of starts since the last long run
}

// next is the delay after a process that ran for d: 0, base, 2 base, 4 base, … up to 30 base.
func (b *backoff) next(d time.Duration) time.Duration {
	limit := 30 * b.base
	if d >= 2*limit {
		b.count = 0
	}
	b.count++
	if b.count == 1 {
		return 0
	}
	return min(limit, b.base<<min(b.count-2, 5))
}
