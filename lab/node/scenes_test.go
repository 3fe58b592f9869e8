package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// deploymentLivesAndEnds: ready only by its probe, and when its Pods are gone, so are their processes.
func deploymentLivesAndEnds(t *testing.T, s *scene) {
	spec := s.spec(t)
	spec.Containers[0].ReadinessProbe = httpProbe("/readyz")
	spec.Containers[0].ReadinessProbe.FailureThreshold = 2 // a first failure must not hide that a Pod was ready before it
	pods, err := s.client.CoreV1().Pods(s.namespace).Watch(within(t, patience), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	labels := map[string]string{"app": "x"}
	deployments := s.client.AppsV1().Deployments(s.namespace)
	_, err = deployments.Create(within(t, patience), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	programs := []*call{s.await(), s.await()}
	ready := func(want int32) {
		t.Helper()
		s.wait(t, fmt.Sprintf("%d ready replicas", want), func(ctx context.Context) (string, bool) {
			d, err := deployments.Get(ctx, "d", metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			if d.Status.ReadyReplicas > want {
				t.Fatalf("%d replicas are ready, and only %d programs said so", d.Status.ReadyReplicas, want)
			}
			return fmt.Sprintf("%+v", d.Status), d.Status.ReadyReplicas == want && d.Status.Replicas == 2
		})
	}
	awaitRunningNotReady(t, pods, 2)
	programs[0].order(t, "ready true")
	ready(1)
	programs[1].order(t, "ready true")
	ready(2)
	programs[0].order(t, "ready false")
	s.wait(t, "1 ready replica after a probe fails", func(ctx context.Context) (string, bool) {
		d, err := deployments.Get(ctx, "d", metav1.GetOptions{})
		return fmt.Sprint(d, err), err == nil && d.Status.ReadyReplicas == 1
	})

	programs[1].order(t, "child")
	programs = append(programs, s.await())
	scale := []byte(`{"spec":{"replicas":0}}`)
	if _, err := deployments.Patch(within(t, patience), "d", types.MergePatchType, scale, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait(t, "no Pods", func(ctx context.Context) (string, bool) {
		pods, err := s.client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d Pods", len(pods.Items)), len(pods.Items) == 0
	})
	for _, p := range programs {
		p.mustBeDead(t)
		p.awaitEnd(t)
	}
}

// awaitRunningNotReady reads a watch until count Pods run, and fails the test when one of them is ready.
func awaitRunningNotReady(t *testing.T, pods watch.Interface, count int) {
	t.Helper()
	seen := map[types.UID]bool{}
	for event := range pods.ResultChan() {
		p, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("watching Pods: %v", event.Object)
		}
		if isReady(p.Status) {
			t.Errorf("Pod %s is ready before its program says so: %+v", p.Name, p.Status)
		}
		if running(p) {
			seen[p.UID] = true
		}
		if len(seen) == count {
			return
		}
	}
	t.Fatal("the watch ended before all Pods ran")
}

func crashIsRestarted(t *testing.T, s *scene) {
	p := s.createPod(t, s.spec(t))
	seen := map[string]bool{}
	for n := range int32(4) {
		program := s.await()
		if program.uid != string(p.UID) || seen[program.pid] {
			t.Errorf("start %d: process %s for Pod %s, want a new one for %s", n, program.pid, program.uid, p.UID)
		}
		seen[program.pid] = true
		now := s.awaitPod(t, "running again", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == n })
		if last := now.Status.ContainerStatuses[0].LastTerminationState.Terminated; n > 0 && (last == nil || last.ExitCode != 3) {
			t.Errorf("restart %d: the last end is %+v, want exit code 3", n, last)
		}
		if port, ok := s.node.Port(s.namespace, "p", "main"); !ok || fmt.Sprint(port) != program.port {
			t.Errorf("Port says %d, %t; the program has %s", port, ok, program.port)
		}
		program.exit(3)
	}
}

func livenessRestarts(t *testing.T, s *scene) {
	spec := s.spec(t)
	spec.Containers[0].LivenessProbe = httpProbe("/livez")
	spec.Containers[0].StartupProbe = httpProbe("/livez")
	spec.Containers[0].StartupProbe.FailureThreshold = 10
	s.createPod(t, spec)
	program := s.await()
	s.awaitPod(t, "started", func(p *corev1.Pod) bool { return running(p) && *p.Status.ContainerStatuses[0].Started })
	program.order(t, "live false")
	program.awaitEnd(t)
	s.await()
	s.awaitPod(t, "restarted once", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
}

// deletionWaitsForTheProcess: the Pod of a process that ignores SIGTERM stays until the grace is over, and the process goes before the Pod.
func deletionWaitsForTheProcess(t *testing.T, s *scene) {
	s.createPod(t, s.spec(t))
	program := s.await()
	program.order(t, "stubborn")
	s.awaitPod(t, "running", running)
	begin := time.Now()
	s.deletePod(t, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](2)})
	s.awaitGone(t)
	if d := time.Since(begin); d < 2*time.Second {
		t.Errorf("the Pod was gone after %s, while its process had 2 s to end and did not", d)
	}
	program.mustBeDead(t)
	program.awaitEnd(t)

	// The program's own end, before the grace is over, ends the Pod too.
	s.createPod(t, s.spec(t))
	program = s.await()
	s.awaitPod(t, "running", running)
	s.deletePod(t, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](3600)})
	s.awaitGone(t)
	program.mustBeDead(t)
}

// deletionBeforeTheFirstStart: a Pod that is deleted right after its creation, before it has a status, leaves no process behind.
func deletionBeforeTheFirstStart(t *testing.T, s *scene) {
	for range 10 {
		s.createPod(t, s.spec(t))
		s.deletePod(t, metav1.DeleteOptions{})
		s.awaitGone(t)
		for more := true; more; {
			select {
			case program := <-s.calls: // it was started, so it must have ended before the Pod
				program.awaitEnd(t)
			default:
				more = false
			}
		}
	}
}

func forceEndsTheProcessToo(t *testing.T, s *scene) {
	s.createPod(t, s.spec(t))
	program := s.await()
	program.order(t, "stubborn")
	s.deletePod(t, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	program.awaitEnd(t)
}

func podCompletes(t *testing.T, s *scene) {
	spec := s.spec(t)
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	s.createPod(t, spec)
	s.await().exit(1)
	s.await().exit(0)
	p := s.awaitPod(t, "succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	if got := p.Status.ContainerStatuses[0]; got.RestartCount != 1 || got.State.Terminated == nil || got.State.Terminated.ExitCode != 0 {
		t.Errorf("the container ended as %+v", got)
	}
	s.deletePod(t, metav1.DeleteOptions{})
	s.awaitGone(t)
}

func waitsFor(reason string) func(p *corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == reason {
				return p.Status.Phase == corev1.PodPending
			}
		}
		return false
	}
}

func noSuchCommand(t *testing.T, s *scene) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command []string
		says    string
	}{
		{[]string{"/no/such/program"}, `"/no/such/program": not there`},
		{[]string{plain}, "not executable"},
		{nil, "container main names no command"},
	} {
		spec := s.spec(t)
		spec.Containers[0].Command = c.command
		s.createPod(t, spec)
		p := s.awaitPod(t, "waiting for a command", waitsFor(reasonCommand))
		if message := p.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, c.says) {
			t.Errorf("command %q: message %q, want one that says %q", c.command, message, c.says)
		}
		s.deletePod(t, metav1.DeleteOptions{})
		s.awaitGone(t)
	}
}

func refusedRatherThanIgnored(t *testing.T, s *scene) {
	spec := s.spec(t)
	spec.InitContainers = []corev1.Container{{Name: "init", Image: "none", Command: []string{"/bin/true"}}}
	s.createPod(t, spec)
	p := s.awaitPod(t, "refused", waitsFor(reasonConfig))
	if message := p.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, "init containers") {
		t.Errorf("message %q, want one that says what is not supported", message)
	}
}

func execAndTCPProbes(t *testing.T, s *scene) {
	flag := filepath.Join(t.TempDir(), "flag")
	spec := s.spec(t)
	spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", `test -e "$0" && test -n "$LAB_PORT"`, flag}}},
	}
	spec.Containers[0].StartupProbe = &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(PortName)}},
	}
	s.createPod(t, spec)
	s.await()
	p := s.awaitPod(t, "started by its tcpSocket probe", func(p *corev1.Pod) bool { return running(p) && *p.Status.ContainerStatuses[0].Started })
	if p.Status.ContainerStatuses[0].Ready {
		t.Error("ready before its exec probe could succeed")
	}
	if err := os.WriteFile(flag, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, "ready by its exec probe", func(p *corev1.Pod) bool { return isReady(p.Status) })
}

func serviceAccountToken(t *testing.T, s *scene) {
	spec := s.spec(t)
	spec.AutomountServiceAccountToken = nil // the default: mounted
	p := s.createPod(t, spec)
	program := s.await()
	cfg, err := clientcmd.BuildConfigFromFlags("", program.kubeconfig)
	if err != nil {
		t.Fatalf("KUBECONFIG is %q: %v", program.kubeconfig, err)
	}
	client := kubernetes.NewForConfigOrDie(cfg)
	_, err = client.CoreV1().Pods(s.namespace).List(within(t, patience), metav1.ListOptions{})
	if user := "system:serviceaccount:" + s.namespace + ":default"; !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), user) {
		t.Errorf("listing Pods with the Pod's credentials: %v, want forbidden for %s", err, user)
	}
	s.deletePod(t, metav1.DeleteOptions{})
	s.awaitGone(t)
	s.wait(t, "the end of the Pod's credentials", func(context.Context) (string, bool) {
		_, err := os.Stat(program.kubeconfig)
		return fmt.Sprint(err), os.IsNotExist(err)
	})
	if _, err := os.Stat(s.node.LogPath(p, "main")); err != nil {
		t.Errorf("the log is gone with the Pod: %v", err)
	}
}

// hostIsKilled: SIGKILL for the process that hosts an agent ends its Pods' processes; an agent that comes after it restarts them.
func hostIsKilled(t *testing.T, s *scene) {
	startHost := func() *exec.Cmd {
		host := exec.Command(self(t))
		host.Env = append(os.Environ(), "NODE_TEST_PART=host", "NODE_TEST_NAME=other", "NODE_TEST_KUBECONFIG="+s.cluster.Kubeconfig(),
			"NODE_TEST_DIR="+filepath.Join(s.cluster.Dir(), "pods-of-another"))
		host.Stderr = t.Output()
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			host.Process.Kill()
			host.Wait()
		})
		return host
	}
	host := startHost()
	spec := s.spec(t)
	spec.NodeName = "other"
	p := s.createPod(t, spec)
	program := s.await()
	program.order(t, "stubborn")
	program.order(t, "child")
	child := s.await()
	s.awaitPod(t, "running", running)
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	program.awaitEnd(t)
	child.awaitEnd(t)

	startHost()
	if again := s.await(); again.uid != string(p.UID) {
		t.Errorf("the next agent runs Pod %s, want %s", again.uid, p.UID)
	}
	s.awaitPod(t, "restarted once", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
}

// restartsWithoutAnAPIServer: a controller that ends because its API server is away comes back whether or not that is back, and is reported once it is.
func restartsWithoutAnAPIServer(t *testing.T, s *scene) {
	s.createPod(t, s.spec(t))
	program := s.await()
	s.awaitPod(t, "running", running)
	server := s.cluster.Server(0)
	server.Kill()
	program.exit(3)
	program = s.await()
	if err := server.Restart(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitReady(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, "restarted once", func(p *corev1.Pod) bool { return running(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	s.deletePod(t, metav1.DeleteOptions{})
	s.awaitGone(t)
	program.awaitEnd(t)
}
