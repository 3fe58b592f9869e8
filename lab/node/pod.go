package node

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// retryDelay is the time before a refused or lost write to the API server is tried again.
const retryDelay = 500 * time.Millisecond

// writeTimeout bounds one write, so that a hung API server does not keep a Pod from being stopped.
const writeTimeout = 5 * time.Second

// A pod runs one Pod: a worker that observes, decides (step) and acts, and one loop per container.
type pod struct {
	node       *Node
	id         podID
	containers []*container
	account    account
	wake       chan struct{} // capacity 1: something changed

	mu     sync.Mutex
	latest *corev1.Pod // as last seen; read-only
	gone   bool

	// Only the worker uses what follows.
	reported  *corev1.PodStatus // as last written
	finalised bool
}

func newPod(n *Node, p *corev1.Pod) *pod {
	w := &pod{node: n, id: idOf(p), wake: make(chan struct{}, 1), latest: p}
	w.account = account{node: n, pod: w, dir: n.podDir(w.id), ready: make(chan struct{})}
	for i := range p.Spec.Containers {
		w.containers = append(w.containers, newContainer(w, p, &p.Spec.Containers[i]))
	}
	return w
}

func (w *pod) container(name string) *container {
	for _, c := range w.containers {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

func (w *pod) update(p *corev1.Pod) {
	w.mu.Lock()
	w.latest = p
	w.mu.Unlock()
	w.changed()
}

func (w *pod) lose() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.changed()
}

// changed wakes the worker; a wake that is already pending covers this change too.
func (w *pod) changed() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run runs the Pod until it is gone, or until ctx ends, and returns when no process of it is left.
func (w *pod) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer func() {
		for _, c := range w.containers {
			c.stop(0)
		}
		loops.Wait()
		w.account.remove()
	}()
	renewing, stopRenewing := context.WithCancel(ctx)
	defer stopRenewing()
	w.mu.Lock()
	first := w.latest
	w.mu.Unlock()
	loops.Go(func() { w.account.renew(renewing, first) })

	if first.DeletionTimestamp != nil || finished(first.Status.Phase) {
		for _, c := range w.containers {
			c.end()
		}
	} else {
		for _, c := range w.containers {
			loops.Go(func() { c.run(ctx) })
		}
	}
	for w.act(ctx) {
	}
}

// act observes, decides, acts and waits for the next change; false when the worker is to end.
func (w *pod) act(ctx context.Context) bool {
	w.mu.Lock()
	p, gone := w.latest, w.gone
	w.mu.Unlock()
	views, running := w.look()
	status := podStatus(p, views, w.reported, metav1.Now())
	n := step(observed{
		deleting: p.DeletionTimestamp != nil, grace: deletionGrace(p), gone: gone, running: running,
		reported: w.stands(p, status), finalised: w.finalised,
	})
	if n.stop {
		for _, c := range w.containers {
			c.stop(n.grace)
		}
	}
	ok := true
	if n.report {
		ok = w.report(ctx, p, status)
	}
	if n.finalise && ok {
		ok = w.finalise(ctx, p)
	}
	if n.forget {
		return false
	}
	var retry <-chan time.Time
	if !ok {
		retry = time.After(retryDelay)
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.wake:
	case <-retry:
	}
	return true
}

// stands says whether the API server has the status. The controller manager may have overruled it, when it held the node for dead.
func (w *pod) stands(p *corev1.Pod, status corev1.PodStatus) bool {
	if finished(p.Status.Phase) {
		return true // an end is final
	}
	return w.reported != nil && equality.Semantic.DeepEqual(*w.reported, status) && isReady(p.Status) == isReady(status)
}

// look returns each container's view, and whether a container's loop still runs.
func (w *pod) look() (views []view, running bool) {
	for _, c := range w.containers {
		v := c.look()
		views = append(views, v)
		running = running || !v.ended
	}
	return views, running
}

// confirm asks the API server whether a Pod is still to be run, before its first process. A deletion that began before the Pod was bound removes it
// without waiting for a node, even when the binding came first after all; the watch says so too late.
func (w *pod) confirm(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	p, err := w.node.client.CoreV1().Pods(w.id.namespace).Get(ctx, w.id.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && p.UID == w.id.uid && p.DeletionTimestamp == nil, err
}

// report writes the status; false: to be tried again.
func (w *pod) report(ctx context.Context, p *corev1.Pod, status corev1.PodStatus) bool {
	// The UID makes the API server refuse the write for a later Pod of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		w.node.logf("pod %s: encoding its status: %v", w.id, err)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = w.node.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		if ctx.Err() == nil {
			w.node.logf("pod %s: reporting its status: %v", w.id, err)
		}
		return false
	}
	w.reported = &status
	return true
}

// finalise removes the Pod from the API server, which has waited for this; false: to be tried again.
func (w *pod) finalise(ctx context.Context, p *corev1.Pod) bool {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(p.UID))
	err := w.node.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, *options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		if ctx.Err() == nil {
			w.node.logf("pod %s: removing it: %v", w.id, err)
		}
		return false
	}
	w.finalised = true
	return true
}

func finished(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// deletionGrace is the time that the API server grants the Pod's processes.
func deletionGrace(p *corev1.Pod) time.Duration {
	if p.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
}
