package e2e

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// scene is a small provider of its own on a plane that many share: three CRDs with an object each, made at the version that goes, and
// two controllers, "one" and "two", with as many replicas.
type scene struct {
	*plane
	name          string // names the namespace, and the group
	before, after []*definition
	uids          []string // of the objects, by CRD
	replicas      map[string]int32
	file          string // with the CRDs after
}

// obedient ends as soon as it is asked to; stubborn has to be killed, after half a minute.
var (
	obedient = []string{"sleep", "infinity"}
	stubborn = []string{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}
)

func newScene(t testing.TB, p *plane, name string, command []string) *scene {
	t.Helper()
	s := &scene{plane: p, name: name, replicas: map[string]int32{"one": 1, "two": 2}}
	for _, plural := range []string{"bolts", "nuts", "screws"} {
		s.before = append(s.before, newCRD(name+".example.com", plural, "v1alpha1 v1*"))
		s.after = append(s.after, newCRD(name+".example.com", plural, "v1alpha1- v1*"))
	}
	p.install(t, s.before...)
	for _, c := range s.before {
		s.uids = append(s.uids, p.create(t, c, "v1alpha1", "a"))
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deployment, n := range s.replicas {
		if _, err := p.kube.AppsV1().Deployments(name).Create(t.Context(), controller(deployment, n, command), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.awaitReady(t, name, "", s.replicas)
	s.file = write(t, s.after...)
	return s
}

// controller is a Deployment whose Pods run a command of this machine.
func controller(name string, replicas int32, command []string) *appsv1.Deployment {
	labels := map[string]string{"controller": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "controller", Image: "none", Command: command}},
					TerminationGracePeriodSeconds: ptr.To(int64(30)),
				},
			},
		},
	}
}

// args are the command's, at API server 0, or at another address when more say so: the last flag wins.
func (s *scene) args(more ...string) []string {
	return slices.Concat([]string{"--kubeconfig", s.Kubeconfig(), "-f", s.file, "--controllers", s.name + "/one", "--controllers", s.name + "/two"},
		s.apiServers(), more)
}

// scaleUp is what a colleague does who does not know.
func (s *scene) scaleUp(t testing.TB, deployment string, n int32) {
	t.Helper()
	patch := []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
	_, err := s.kube.AppsV1().Deployments(s.name).Patch(t.Context(), deployment, "application/merge-patch+json", patch, metav1.PatchOptions{FieldManager: "colleague"})
	if err != nil {
		t.Fatal(err)
	}
}

// wantDone demands the end of a changeover.
func (s *scene) wantDone(t testing.TB) {
	t.Helper()
	s.wantServed(t, s.after)
	for i, c := range s.after {
		s.wantObject(t, c, "v1", "a", s.uids[i])
	}
	s.wantReplicas(t, s.name, "", s.replicas)
	s.awaitReady(t, s.name, "", s.replicas)
}

// rerun runs the same command, without what was in its way, to the end.
func (s *scene) rerun(t testing.TB) {
	t.Helper()
	e := s.run(t, s.args()...)
	e.wantExit(t, 0)
	if e.report.Outcome != "done" {
		t.Errorf("the second run's outcome is %q; want done", e.report.Outcome)
	}
	s.wantDone(t)
}

// crdStates gives the resourceVersion of each CRD of the scene.
func (s *scene) crdStates(t testing.TB) []string {
	t.Helper()
	var states []string
	for _, c := range s.before {
		states = append(states, c.Name+" at "+s.live(t, c.Name).ResourceVersion)
	}
	return states
}

// wantNothingApplied demands that no CRD was written since.
func (s *scene) wantNothingApplied(t testing.TB, since []string) {
	t.Helper()
	if now := s.crdStates(t); !slices.Equal(now, since) {
		t.Errorf("CRDs are %v; were %v", now, since)
	}
}
