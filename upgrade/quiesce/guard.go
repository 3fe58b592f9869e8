package quiesce

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// ScaledUpError says that somebody started a controller while it had to be down. A changeover stops then rather than
// fights: whoever did it would do it again.
type ScaledUpError struct {
	Controller Ref
	Replicas   int32
	Manager    string // who wrote it, as managedFields tell; may be ""
}

func (e *ScaledUpError) Error() string {
	by := "somebody"
	if e.Manager != "" {
		by = fmt.Sprintf("%q", e.Manager)
	}
	return fmt.Sprintf("deployment %s: scaled up to %d by %s while it has to be down", e.Controller, e.Replicas, by)
}

// Hints says what to do about it.
func (e *ScaledUpError) Hints() []string {
	return []string{"pause what keeps the Deployment running (a GitOps controller, an autoscaler, a colleague), then run the same command again"}
}

// StillDown reads the controllers that have to be down once and returns a *ScaledUpError for the first that was scaled up.
// After Stop that is all of them, also those that were at zero before; without it, those that an earlier run left
// stopped.
func (f *Fleet) StillDown(ctx context.Context) error {
	down := f.Held()
	if f.stopped {
		down = f.Controllers
	}
	for _, c := range down {
		if _, err := f.stillDown(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) stillDown(ctx context.Context, c *Controller) (*appsv1.Deployment, error) {
	d, err := f.get(ctx, c)
	if err != nil {
		return nil, err
	}
	if n := replicas(d); n > 0 {
		c.Held = false
		return nil, &ScaledUpError{Controller: c.Ref, Replicas: n, Manager: lastScaler(d)}
	}
	return d, nil
}

// Guard runs work and looks at the controllers meanwhile: when somebody scales one up, work's context ends and the
// *ScaledUpError is returned. It returns after work has.
func (f *Fleet) Guard(ctx context.Context, work func(context.Context) error) error {
	guarded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan error, 1)
	go func() {
		for pause(guarded, f.interval) {
			if err := f.StillDown(guarded); lasting(err) && guarded.Err() == nil {
				cancel(err)
				watched <- err
				return
			}
		}
		watched <- nil
	}()
	err := work(guarded)
	cancel(nil)
	if seen := <-watched; seen != nil {
		return seen
	}
	return err
}
