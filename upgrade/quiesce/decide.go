package quiesce

import (
	"encoding/json"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// write is one merge patch on a Deployment. It carries the resourceVersion that it was decided on, so that a write that
// somebody else makes in between is never run over.
type write struct {
	resourceVersion string
	annotation      *int32 // nil takes the annotation off
	replicas        *int32 // nil leaves the number alone
}

func (w write) patch() []byte {
	var recorded any // null takes it off
	if w.annotation != nil {
		recorded = strconv.Itoa(int(*w.annotation))
	}
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": w.resourceVersion,
		"annotations":     map[string]any{Annotation: recorded},
	}}
	if w.replicas != nil {
		patch["spec"] = map[string]any{"replicas": *w.replicas}
	}
	raw, _ := json.Marshal(patch) // strings, numbers and null only
	return raw
}

// decideStop says how to stop a Deployment as it is now: nil when it already is, by whomever. A Deployment that runs although
// an earlier changeover recorded a number was scaled up by somebody since: what runs now is what is wanted now, so it
// is recorded anew.
func decideStop(d *appsv1.Deployment) *write {
	n := replicas(d)
	if n == 0 {
		return nil
	}
	zero := int32(0)
	return &write{resourceVersion: d.ResourceVersion, annotation: &n, replicas: &zero}
}

// decideResume says how to bring a Deployment back: nil when there is nothing to do. known is the number that this run
// remembers, for the case that somebody took the annotation off. A Deployment that somebody scaled up meanwhile keeps
// its number and only loses the annotation.
func decideResume(d *appsv1.Deployment, known int32) (*write, error) {
	n, found, err := recorded(d)
	if err != nil {
		return nil, err
	}
	running := replicas(d) > 0
	switch {
	case running && !found:
		return nil, nil
	case running:
		return &write{resourceVersion: d.ResourceVersion}, nil
	case !found:
		n = known
	}
	return &write{resourceVersion: d.ResourceVersion, replicas: &n}, nil
}

// lastScaler names the manager that last wrote spec.replicas, as far as managedFields tell; "" otherwise.
func lastScaler(d *appsv1.Deployment) string {
	name := ""
	var newest int64
	for _, entry := range d.ManagedFields {
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, owns := fields.Spec["f:replicas"]; owns && entry.Time != nil && entry.Time.Unix() >= newest {
			name, newest = entry.Manager, entry.Time.Unix()
		}
	}
	return name
}

// ready says whether a Deployment has all the replicas that it asks for, of its newest template, available. A paused one stays
// with the template that it has.
func ready(d *appsv1.Deployment) bool {
	n := replicas(d)
	return d.Status.ObservedGeneration >= d.Generation && (d.Spec.Paused || d.Status.UpdatedReplicas == n) &&
		d.Status.Replicas == n && d.Status.AvailableReplicas == n
}

// ownPods leaves out the Pods that a Deployment's selector matches and that are not its own: those without a controller, or with one
// that is no ReplicaSet, or a ReplicaSet of somebody else. Sets are the ReplicaSets that the selector matches; one that is gone already may
// have been the Deployment's.
func ownPods(pods []corev1.Pod, sets []appsv1.ReplicaSet, d *appsv1.Deployment) []corev1.Pod {
	foreign := map[types.UID]bool{}
	for i := range sets {
		foreign[sets[i].UID] = !metav1.IsControlledBy(&sets[i], d)
	}
	var own []corev1.Pod
	for i := range pods {
		if owner := metav1.GetControllerOf(&pods[i]); owner != nil && owner.Kind == "ReplicaSet" && !foreign[owner.UID] {
			own = append(own, pods[i])
		}
	}
	return own
}
