package quiesce

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attempts bounds how often one Deployment is read, decided and written anew; its status alone changes several times
// during a roll-out.
const attempts = 20

// Stop scales every controller to zero and returns when all are written; AwaitGone waits for the Pods.
func (f *Fleet) Stop(ctx context.Context) error {
	f.stopped = true
	for _, c := range f.Controllers {
		err := f.rewrite(ctx, c, func(d *appsv1.Deployment) (*write, error) {
			w := decideStop(d)
			if w != nil {
				c.Replicas = *w.annotation
			}
			return w, nil
		}, func() { c.recorded, c.Held, c.Earlier = true, true, false })
		if err != nil {
			return err
		}
		switch {
		case c.Earlier:
			f.progress(fmt.Sprintf("deployment %s is at zero since an earlier run; it had %d replicas", c.Ref, c.Replicas))
		case c.Held:
			f.progress(fmt.Sprintf("deployment %s scaled from %d to zero", c.Ref, c.Replicas))
		default:
			f.progress(fmt.Sprintf("deployment %s was at zero before; it stays there", c.Ref))
		}
	}
	return nil
}

// rewrite reads, decides and writes until the write meets the object that it was decided on.
func (f *Fleet) rewrite(ctx context.Context, c *Controller, decide func(*appsv1.Deployment) (*write, error), written func()) error {
	var err error
	for range attempts {
		var d *appsv1.Deployment
		if d, err = f.get(ctx, c); err != nil {
			return err
		}
		w, decideErr := decide(d)
		if decideErr != nil || w == nil {
			return decideErr
		}
		_, err = f.apps.Deployments(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, w.patch(),
			metav1.PatchOptions{FieldManager: f.manager})
		if err == nil {
			written()
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return fmt.Errorf("deployment %s: scaling: %w", c.Ref, err)
}

func (f *Fleet) get(ctx context.Context, c *Controller) (*appsv1.Deployment, error) {
	d, err := f.apps.Deployments(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("deployment %s: %w", c.Ref, err)
	}
	return d, nil
}

// RemainError names what of the controllers is still there when the time is over.
type RemainError struct {
	Remains []string
	Err     error
}

func (e *RemainError) Error() string {
	return "controllers are not gone: " + strings.Join(e.Remains, "; ")
}

func (e *RemainError) Unwrap() error { return e.Err }

// Hints says what to do about it.
func (e *RemainError) Hints() []string {
	return []string{"see why the Pod does not end (its node may be down, a finalizer may hold it), or give a longer --timeout"}
}

// AwaitGone waits until no Pod of any controller is left, not even one that is terminating, because a process that is
// about to end still talks to the API server. A *ScaledUpError ends the wait, and a *RemainError when ctx does.
func (f *Fleet) AwaitGone(ctx context.Context) error {
	var remains []string
	for {
		seen, err := f.remains(ctx)
		switch {
		case ctx.Err() != nil:
			return &RemainError{Remains: remains, Err: context.Cause(ctx)}
		case lasting(err):
			return err
		case err != nil:
			seen = []string{err.Error()}
		case len(seen) == 0:
			return nil
		}
		remains = seen
		if !pause(ctx, f.interval) {
			return &RemainError{Remains: remains, Err: context.Cause(ctx)}
		}
	}
}

func (f *Fleet) remains(ctx context.Context) ([]string, error) {
	var all []string
	for _, c := range f.Controllers {
		d, err := f.stillDown(ctx, c)
		if err != nil {
			return nil, err
		}
		some, err := f.remainsOf(ctx, c, d)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// remainsOf looks top down: only when the Deployment's and each ReplicaSet's controller has acted on the zero can no further
// Pod come, and only then does an empty list of Pods mean that none is left.
func (f *Fleet) remainsOf(ctx context.Context, c *Controller, d *appsv1.Deployment) ([]string, error) {
	if d.Status.ObservedGeneration < d.Generation {
		return []string{fmt.Sprintf("deployment %s: its scale-down was not noticed yet by the kube-controller-manager", c.Ref)}, nil
	}
	options := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(c.selector)}
	sets, err := f.apps.ReplicaSets(c.Namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("deployment %s: its replica sets: %w", c.Ref, err)
	}
	for _, rs := range sets.Items {
		if !metav1.IsControlledBy(&rs, d) {
			continue
		}
		if rs.Status.ObservedGeneration < rs.Generation || (rs.Spec.Replicas != nil && *rs.Spec.Replicas > 0) {
			return []string{fmt.Sprintf("replica set %s/%s: not scaled down yet", rs.Namespace, rs.Name)}, nil
		}
	}
	pods, err := f.core.Pods(c.Namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("deployment %s: its pods: %w", c.Ref, err)
	}
	var remains []string
	for _, pod := range ownPods(pods.Items, sets.Items, d) {
		// A finished Pod, such as an evicted one, stays until it is collected, but nothing runs in it.
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		state := "still " + strings.ToLower(string(pod.Status.Phase))
		if pod.DeletionTimestamp != nil {
			state = "terminating since " + pod.DeletionTimestamp.UTC().Format(time.TimeOnly)
		}
		remains = append(remains, fmt.Sprintf("pod %s/%s on node %s: %s", pod.Namespace, pod.Name, pod.Spec.NodeName, state))
	}
	return remains, nil
}

// lasting tells an error that waiting does not mend from one such as an API server that restarts.
func lasting(err error) bool {
	var scaled *ScaledUpError
	return errors.As(err, &scaled) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// pause waits for d and says whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
