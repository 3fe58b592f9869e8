package node

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// A scene is one namespace on the real control plane.
type scene struct {
	*switchboard
	cluster   *lab.Cluster
	client    kubernetes.Interface
	node      *Node
	namespace string
}

// TestNode runs its scenes on one control plane with one agent, each in a namespace of its own.
func TestNode(t *testing.T) {
	cluster := lab.ForTest(t, lab.Options{APIServers: 1})
	client := kubernetes.NewForConfigOrDie(cluster.Config())
	n, err := Start(t.Context(), cluster.Config(), Options{Dir: filepath.Join(cluster.Dir(), "pods"), Backoff: 100 * time.Millisecond, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, play := range map[string]func(*testing.T, *scene){
		"a-deployment-lives-and-ends":     deploymentLivesAndEnds,
		"a-crash-is-restarted":            crashIsRestarted,
		"liveness-restarts":               livenessRestarts,
		"deletion-waits-for-the-process":  deletionWaitsForTheProcess,
		"deletion-before-the-first-start": deletionBeforeTheFirstStart,
		"force-ends-the-process-too":      forceEndsTheProcessToo,
		"a-job-s-pod-completes":           podCompletes,
		"no-such-command":                 noSuchCommand,
		"refused-rather-than-ignored":     refusedRatherThanIgnored,
		"exec-and-tcp-probes":             execAndTCPProbes,
		"a-service-account-s-token":       serviceAccountToken,
		"the-host-is-killed":              hostIsKilled,
		"restarts-without-an-api-server":  restartsWithoutAnAPIServer,
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{switchboard: newSwitchboard(t), cluster: cluster, client: client, node: n, namespace: name}
			s.createNamespace(t)
			play(t, s)
		})
	}
}

func (s *scene) createNamespace(t *testing.T) {
	t.Helper()
	ctx := within(t, patience)
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait(t, "the namespace's default service account", func(ctx context.Context) (string, bool) {
		_, err := s.client.CoreV1().ServiceAccounts(s.namespace).Get(ctx, "default", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
}

func (s *scene) wait(t *testing.T, what string, check func(ctx context.Context) (string, bool)) {
	t.Helper()
	if err := lab.Await(within(t, patience), what, check); err != nil {
		t.Fatal(err)
	}
}

// spec is a Pod that runs this test binary as the program that the switchboard commands.
func (s *scene) spec(t *testing.T) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "main", Image: "none", Command: []string{self(t)},
			Env: []corev1.EnvVar{
				{Name: "NODE_TEST_PART", Value: "pod"},
				{Name: "NODE_TEST_SWITCHBOARD", Value: s.addr()},
				{Name: "NODE_TEST_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
			},
		}},
	}
}

func httpProbe(path string) *corev1.Probe {
	return &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(PortName)}},
	}
}

func (s *scene) createPod(t *testing.T, spec corev1.PodSpec) *corev1.Pod {
	t.Helper()
	p, err := s.client.CoreV1().Pods(s.namespace).Create(within(t, patience), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// deletePod allows for a Pod that the agent finalises while the API server still answers the deletion: that answer is 404.
func (s *scene) deletePod(t *testing.T, o metav1.DeleteOptions) {
	t.Helper()
	if err := s.client.CoreV1().Pods(s.namespace).Delete(within(t, patience), "p", o); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// awaitPod waits until the Pod is as check wants it, and returns it.
func (s *scene) awaitPod(t *testing.T, what string, check func(p *corev1.Pod) bool) (found *corev1.Pod) {
	t.Helper()
	s.wait(t, what, func(ctx context.Context) (string, bool) {
		p, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		found = p
		return fmt.Sprintf("%+v", p.Status), check(p)
	})
	return found
}

func (s *scene) awaitGone(t *testing.T) {
	t.Helper()
	s.wait(t, "the Pod's end", func(ctx context.Context) (string, bool) {
		_, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, "p", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

func running(p *corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Running != nil
}
