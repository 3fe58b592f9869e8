// Package apply writes CRDs: first all of them as a dry run, so that the API server's refusal of one comes before
// anything changes, then for real. A CRD is never deleted and created anew.
package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/changeover-dev/changeover/upgrade/crd"
	"github.com/changeover-dev/changeover/upgrade/plan"
)

// attempts bounds how often one CRD is read, decided and written anew because somebody else wrote it in between, such as
// the injector of a caBundle.
const attempts = 5

// Options of DryRun and All.
type Options struct {
	// FieldManager names the writer in managedFields.
	FieldManager string
	// ForceConflicts writes fields that another manager keeps by server-side apply.
	ForceConflicts bool
}

// Refusal holds what speaks against the writes; nothing was written when DryRun returns it.
type Refusal struct {
	Rejected  map[string]error // by CRD: the API server's own words
	Conflicts []Conflict
}

func (r *Refusal) Error() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.Rejected)) {
		lines = append(lines, fmt.Sprintf("crd %s: the API server refuses it: %v", name, r.Rejected[name]))
	}
	for _, c := range r.Conflicts {
		lines = append(lines, fmt.Sprintf("crd %s: %s is kept by %q through server-side apply", c.CRD, strings.Join(c.Fields, ", "), c.Manager))
	}
	return strings.Join(lines, "\n")
}

// Hints says what to do about it.
func (r *Refusal) Hints() []string {
	var hints []string
	if len(r.Rejected) > 0 {
		hints = append(hints, "correct the manifest: the dry run asked the API server itself; no CRD was changed")
	}
	if len(r.Conflicts) > 0 {
		hints = append(hints, "let that manager bring the new CRDs itself, or pause it and give --force-conflicts to take the fields over")
	}
	return hints
}

// DryRun sends every write as a dry run and returns, by CRD, whether it is a create, an update, or changes nothing. The
// error is a *Refusal when the API server rejects one or fields are kept by others, holding all of them.
func DryRun(ctx context.Context, crds dynamic.ResourceInterface, wanted []*crd.Definition, o Options) (map[string]plan.Action, error) {
	actions := map[string]plan.Action{}
	refusal := &Refusal{Rejected: map[string]error{}}
	for _, w := range wanted {
		live, err := get(ctx, crds, w.Name())
		if err != nil {
			return nil, err
		}
		after, err := write(ctx, crds, live, w, o, []string{metav1.DryRunAll})
		switch {
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
			refusal.Rejected[w.Name()] = err
			continue
		case err != nil:
			return nil, fmt.Errorf("crd %s: dry run: %w", w.Name(), err)
		case live == nil:
			actions[w.Name()] = plan.Create
			continue
		case same(live, after):
			actions[w.Name()] = plan.Unchanged
			continue
		}
		actions[w.Name()] = plan.Update
		if !o.ForceConflicts {
			refusal.Conflicts = append(refusal.Conflicts, Conflicts(live, after, o.FieldManager)...)
		}
	}
	if len(refusal.Rejected)+len(refusal.Conflicts) > 0 {
		return nil, refusal
	}
	return actions, nil
}

// All writes every CRD for real. It reads each one anew, because planning and quiescing took time, and plans it anew
// when it did change: a write that lost against somebody else's is decided again, never forced. It stops at the first error;
// calling it again continues, as CRDs that are already as wanted are left alone by the API server.
func All(ctx context.Context, crds dynamic.ResourceInterface, wanted []*crd.Definition, o Options, progress func(string)) error {
	for _, w := range wanted {
		if err := one(ctx, crds, w, o); err != nil {
			return fmt.Errorf("crd %s: %w", w.Name(), err)
		}
		progress("crd " + w.Name() + " written")
	}
	return nil
}

func one(ctx context.Context, crds dynamic.ResourceInterface, w *crd.Definition, o Options) error {
	var err error
	for range attempts {
		var live *unstructured.Unstructured
		if live, err = get(ctx, crds, w.Name()); err != nil {
			return err
		}
		if err = stillLegal(live, w); err != nil {
			return err
		}
		if _, err = write(ctx, crds, live, w, o, nil); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("written by somebody else at the same time, %d times in a row: %w", attempts, err)
}

func stillLegal(live *unstructured.Unstructured, w *crd.Definition) error {
	if live == nil {
		return nil
	}
	l, err := crd.Parse(live, "the cluster")
	if err != nil {
		return err
	}
	_, err = plan.Make([]*crd.Definition{w}, map[string]*crd.Definition{w.Name(): l})
	return err
}

// get returns nil without an error where the CRD does not exist.
func get(ctx context.Context, crds dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	live, err := crds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

func write(ctx context.Context, crds dynamic.ResourceInterface, live *unstructured.Unstructured, w *crd.Definition, o Options, dryRun []string) (*unstructured.Unstructured, error) {
	merged := Merge(live, w.Object)
	if live == nil {
		return crds.Create(ctx, merged, metav1.CreateOptions{FieldManager: o.FieldManager, DryRun: dryRun})
	}
	return crds.Update(ctx, merged, metav1.UpdateOptions{FieldManager: o.FieldManager, DryRun: dryRun})
}

// same says whether a write would change anything that matters, as the API server sees it after its defaulting.
func same(live, after *unstructured.Unstructured) bool {
	return reflect.DeepEqual(live.Object["spec"], after.Object["spec"]) &&
		reflect.DeepEqual(live.GetLabels(), after.GetLabels()) &&
		reflect.DeepEqual(live.GetAnnotations(), after.GetAnnotations())
}
