package quiesce

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Start brings every held controller back to its recorded replicas and takes the annotation off, in one write each. The annotation
// also goes from controllers that somebody scaled up meanwhile, since the next run would believe it. Start tries all of them,
// whatever becomes of one, and is safe to call again.
func (f *Fleet) Start(ctx context.Context) error {
	return f.start(ctx, func(*Controller) bool { return true })
}

// Undo is Start for the controllers that this run stopped. It leaves those alone that an earlier run did: what that run changed
// since is not known here.
func (f *Fleet) Undo(ctx context.Context) error {
	return f.start(ctx, func(c *Controller) bool { return !c.Earlier })
}

func (f *Fleet) start(ctx context.Context, which func(*Controller) bool) error {
	var all []error
	for _, c := range f.Controllers {
		if !c.recorded || !which(c) {
			continue
		}
		n := c.Replicas
		err := f.rewrite(ctx, c, func(d *appsv1.Deployment) (*write, error) {
			w, err := decideResume(d, c.Replicas)
			if w == nil || w.replicas == nil {
				n = replicas(d)
			} else {
				n = *w.replicas
			}
			return w, err
		}, func() {})
		if err != nil {
			all = append(all, err)
			continue
		}
		c.recorded, c.Held, c.Earlier, c.Replicas = false, false, false, n
		f.progress(fmt.Sprintf("deployment %s is at %d replicas again", c.Ref, n))
	}
	return errors.Join(all...)
}

// NotReadyError names the controllers that did not get ready in time.
type NotReadyError struct {
	Controllers []string
	Err         error
}

func (e *NotReadyError) Error() string {
	return "controllers not ready: " + strings.Join(e.Controllers, "; ")
}

func (e *NotReadyError) Unwrap() error { return e.Err }

// Hints says what to do about it.
func (e *NotReadyError) Hints() []string {
	return []string{"see the logs of their Pods"}
}

// AwaitReady waits until every controller has all its replicas available. A *NotReadyError when ctx ends first.
func (f *Fleet) AwaitReady(ctx context.Context) error {
	var waiting []string
	for {
		var seen []string
		for _, c := range f.Controllers {
			d, err := f.get(ctx, c)
			if ctx.Err() != nil {
				return &NotReadyError{Controllers: waiting, Err: context.Cause(ctx)}
			}
			if lasting(err) {
				return err
			}
			if err != nil {
				seen = append(seen, err.Error())
				continue
			}
			if !ready(d) {
				seen = append(seen, fmt.Sprintf("deployment %s: %d of %d available%s", c.Ref, d.Status.AvailableReplicas, replicas(d), f.trouble(ctx, c)))
			}
		}
		if len(seen) == 0 {
			return nil
		}
		waiting = seen
		if !pause(ctx, f.interval) {
			return &NotReadyError{Controllers: waiting, Err: context.Cause(ctx)}
		}
	}
}

// trouble says why containers of a controller wait, as far as its Pods tell; best effort, for messages only.
func (f *Fleet) trouble(ctx context.Context, c *Controller) string {
	pods, err := f.pods(ctx, c)
	if err != nil {
		return ""
	}
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "ContainerCreating" {
				return fmt.Sprintf(" (pod %s, container %s: %s)", pod.Name, s.Name, s.State.Waiting.Reason)
			}
		}
	}
	return ""
}

// Restarts counts the restarts of each container of each Pod that runs now, by "namespace/pod/container".
func (f *Fleet) Restarts(ctx context.Context) (map[string]int32, error) {
	counts := map[string]int32{}
	for _, c := range f.Controllers {
		pods, err := f.pods(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			for _, s := range pod.Status.ContainerStatuses {
				counts[pod.Namespace+"/"+pod.Name+"/"+s.Name] = s.RestartCount
			}
		}
	}
	return counts, nil
}

func (f *Fleet) pods(ctx context.Context, c *Controller) ([]corev1.Pod, error) {
	list, err := f.core.Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(c.selector)})
	if err != nil {
		return nil, fmt.Errorf("deployment %s: its pods: %w", c.Ref, err)
	}
	// A ReplicaSet of somebody else with the same labels is not told apart here: nothing waits for these.
	return ownPods(list.Items, nil, nil), nil
}
