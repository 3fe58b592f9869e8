// Package quiesce stops controllers and brings them back to exactly what they were. How many replicas a Deployment had is
// written on the Deployment itself, in the same write that scales it to zero, so that no death of this program can lose
// the number.
package quiesce

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Annotation holds, on a Deployment that a changeover has scaled to zero, how many replicas it had.
const Annotation = "changeover.dev/replicas"

// Ref names a Deployment.
type Ref struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// ParseRef reads NAMESPACE/NAME.
func ParseRef(s string) (Ref, error) {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("controller %q: not of the form NAMESPACE/NAME", s)
	}
	return Ref{Namespace: namespace, Name: name}, nil
}

// Controller is one Deployment of a changeover.
type Controller struct {
	Ref
	// Replicas is what resume brings back.
	Replicas int32 `json:"replicas"`
	// Held: a changeover has scaled it to zero, and nobody scaled it up since.
	Held bool `json:"held"`
	// Earlier: it was an earlier run that scaled it to zero, which may have changed CRDs since.
	Earlier bool `json:"heldByEarlierRun,omitempty"`

	// recorded: the annotation stands on the Deployment, whether it is scaled to zero or not.
	recorded bool
	selector *metav1.LabelSelector
	uid      types.UID
}

// UnknownError names controllers that the operator asked for and that do not exist.
type UnknownError struct {
	Refs     []Ref
	Selector string // a selector that matches no Deployment
}

func (e *UnknownError) Error() string {
	if e.Selector != "" {
		return fmt.Sprintf("selector %s: matches no Deployment in any namespace", e.Selector)
	}
	names := make([]string, len(e.Refs))
	for i, r := range e.Refs {
		names[i] = r.String()
	}
	return fmt.Sprintf("deployment %s: does not exist", strings.Join(names, ", "))
}

// Hints says what to do about it.
func (e *UnknownError) Hints() []string {
	return []string{"a controller that is not stopped keeps running through the changeover; correct --controllers or --controller-selector (nothing was changed)"}
}

// Fleet is all controllers of one changeover. Its methods are for one goroutine at a time, but for Guard.
type Fleet struct {
	Controllers []*Controller

	apps     appsclient.AppsV1Interface
	core     coreclient.CoreV1Interface
	stopped  bool // Stop was called
	manager  string
	interval time.Duration
	progress func(string)
}

// Options of Find.
type Options struct {
	Named    []Ref  // must exist
	Shipped  []Ref  // named by a manifest; those that are not on the cluster yet need no stopping
	Selector string // of Deployments in all namespaces; must match one at least; "" for none
	// FieldManager names the writer in managedFields.
	FieldManager string
	Interval     time.Duration // between two looks while waiting
	Progress     func(string)  // one line for the operator
}

// Find reads the Deployments that are to be stopped and changes nothing. It returns an *UnknownError where a named one does
// not exist.
func Find(ctx context.Context, apps appsclient.AppsV1Interface, core coreclient.CoreV1Interface, o Options) (*Fleet, error) {
	f := &Fleet{apps: apps, core: core, manager: o.FieldManager, interval: o.Interval, progress: o.Progress}
	unknown := &UnknownError{}
	for i, ref := range slices.Concat(o.Named, o.Shipped) {
		d, err := apps.Deployments(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && i < len(o.Named):
			unknown.Refs = append(unknown.Refs, ref)
			continue
		case apierrors.IsNotFound(err):
			o.Progress(fmt.Sprintf("deployment %s is not on the cluster yet: nothing to stop", ref))
			continue
		case err != nil:
			return nil, fmt.Errorf("deployment %s: %w", ref, err)
		}
		if err := f.add(d); err != nil {
			return nil, err
		}
	}
	if len(unknown.Refs) > 0 {
		return nil, unknown
	}
	if o.Selector == "" {
		return f, nil
	}
	matches, err := apps.Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: o.Selector})
	if err != nil {
		return nil, fmt.Errorf("deployments with %s: %w", o.Selector, err)
	}
	if len(matches.Items) == 0 {
		return nil, &UnknownError{Selector: o.Selector}
	}
	for i := range matches.Items {
		if err := f.add(&matches.Items[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Fleet) add(d *appsv1.Deployment) error {
	if slices.ContainsFunc(f.Controllers, func(c *Controller) bool { return c.uid == d.UID }) {
		return nil
	}
	c := &Controller{Ref: Ref{d.Namespace, d.Name}, Replicas: replicas(d), selector: d.Spec.Selector, uid: d.UID}
	n, found, err := recorded(d)
	if err != nil {
		return err
	}
	c.recorded = found
	if found && c.Replicas == 0 {
		c.Replicas, c.Held, c.Earlier = n, true, true
	}
	f.Controllers = append(f.Controllers, c)
	return nil
}

// Held lists the controllers that are scaled to zero by a changeover at this moment.
func (f *Fleet) Held() []*Controller {
	var held []*Controller
	for _, c := range f.Controllers {
		if c.Held {
			held = append(held, c)
		}
	}
	return held
}

// replicas is what a Deployment asks for; Kubernetes takes a missing number for one.
func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// recorded reads the annotation.
func recorded(d *appsv1.Deployment) (n int32, found bool, err error) {
	text, found := d.Annotations[Annotation]
	if !found {
		return 0, false, nil
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil || number < 0 {
		return 0, false, fmt.Errorf("deployment %s/%s: annotation %s is %q, not a number of replicas", d.Namespace, d.Name, Annotation, text)
	}
	return int32(number), true, nil
}
