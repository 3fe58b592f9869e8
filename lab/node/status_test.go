package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ended(code int32) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code}
}

func TestPhase(t *testing.T) {
	for name, c := range map[string]struct {
		views []view
		want  corev1.PodPhase
	}{
		"creating":                     {[]view{{}}, corev1.PodPending},
		"one of two creating":          {[]view{{running: true}, {}}, corev1.PodPending},
		"running":                      {[]view{{running: true}}, corev1.PodRunning},
		"waiting to restart":           {[]view{{last: ended(1)}}, corev1.PodRunning},
		"one ended for good":           {[]view{{running: true}, {last: ended(1), ended: true}}, corev1.PodRunning},
		"all ended well":               {[]view{{last: ended(0), ended: true}, {last: ended(0), ended: true}}, corev1.PodSucceeded},
		"one of two ended badly":       {[]view{{last: ended(0), ended: true}, {last: ended(3), ended: true}}, corev1.PodFailed},
		"stopped before anything ran":  {[]view{{ended: true}}, corev1.PodPending},
		"restarted, and running again": {[]view{{running: true, last: ended(1), restarts: 1}}, corev1.PodRunning},
	} {
		if got := phase(c.views); got != c.want {
			t.Errorf("%s: phase %s, want %s", name, got, c.want)
		}
	}
}

func TestReadyCondition(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	first, later := metav1.Unix(100, 0), metav1.Unix(200, 0)
	ready := view{running: true, started: true, ready: true}

	half := podStatus(p, []view{ready, {running: true}}, nil, first)
	if isReady(half) {
		t.Error("a Pod with one ready container of two is ready")
	}
	same := podStatus(p, []view{ready, {running: true}}, &half, later)
	if at := conditionOf(t, same, corev1.PodReady).LastTransitionTime; !at.Equal(&first) {
		t.Errorf("nothing changed, and the transition moved to %s", at)
	}
	full := podStatus(p, []view{ready, ready}, &same, later)
	if c := conditionOf(t, full, corev1.PodReady); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Equal(&later) {
		t.Errorf("with both containers ready the condition is %+v", c)
	}
	if !full.StartTime.Equal(&first) {
		t.Errorf("the start time moved to %s", full.StartTime)
	}

	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	if isReady(podStatus(p, []view{ready, ready}, &full, later)) {
		t.Error("a Pod is ready although its readiness gate does not hold")
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	if !isReady(podStatus(p, []view{ready, ready}, &full, later)) {
		t.Error("a Pod is not ready although its readiness gate holds")
	}
}

func conditionOf(t *testing.T, s corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	t.Helper()
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("no condition %s in %+v", kind, s.Conditions)
	return corev1.PodCondition{}
}

// TestTakeOver: an agent that starts anew finds what its predecessor reported, whose processes are dead.
func TestTakeOver(t *testing.T) {
	p := &corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "a", RestartCount: 2, ContainerID: "process://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(5, 0)}},
		}}},
	}
	v := newContainer(&pod{}, p, &p.Spec.Containers[0]).look()
	if v.running || v.restarts != 2 || v.last == nil || v.last.ExitCode != 137 || time.Since(v.last.FinishedAt.Time) > time.Minute {
		t.Errorf("a container that ran under an earlier agent is taken over as %+v, last %+v", v, v.last)
	}
}

func TestThreshold(t *testing.T) {
	probe := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	var th threshold
	for i, step := range []struct{ ok, reached bool }{
		{true, false}, {false, false}, {true, false}, {true, true}, {true, true},
		{false, false}, {false, false}, {true, false}, {false, false}, {false, false}, {false, true},
	} {
		if got := th.reached(probe, step.ok); got != step.reached {
			t.Errorf("result %d (%t): threshold reached is %t, want %t", i, step.ok, got, step.reached)
		}
	}
}
