package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// loopback is the address of the Node and of every Pod.
const loopback = "127.0.0.1"

// podStatus computes what to report of a Pod from its containers; before is what was reported last, nil at first. It changes none of its arguments.
func podStatus(p *corev1.Pod, views []view, before *corev1.PodStatus, now metav1.Time) corev1.PodStatus {
	if before == nil {
		before = &p.Status
	}
	s := corev1.PodStatus{
		ObservedGeneration: p.Generation,
		Phase:              phase(views),
		HostIP:             loopback,
		HostIPs:            []corev1.HostIP{{IP: loopback}},
		PodIP:              loopback,
		PodIPs:             []corev1.PodIP{{IP: loopback}},
		StartTime:          before.StartTime,
	}
	if s.StartTime == nil {
		s.StartTime = &now
	}
	var unready []string
	for i, v := range views {
		s.ContainerStatuses = append(s.ContainerStatuses, v.status(&p.Spec.Containers[i]))
		if !v.ready {
			unready = append(unready, p.Spec.Containers[i].Name)
		}
	}
	set := func(kind corev1.PodConditionType, holds bool, reason, message string) {
		s.Conditions = append(s.Conditions, podCondition(before.Conditions, kind, holds, reason, message, p.Generation, now))
	}
	set(corev1.PodReadyToStartContainers, true, "", "")
	set(corev1.PodInitialized, true, "", "")
	switch {
	case finished(s.Phase):
		set(corev1.ContainersReady, false, "PodCompleted", "")
		set(corev1.PodReady, false, "PodCompleted", "")
	case len(unready) > 0:
		message := fmt.Sprintf("containers with unready status: %v", unready)
		set(corev1.ContainersReady, false, "ContainersNotReady", message)
		set(corev1.PodReady, false, "ContainersNotReady", message)
	default:
		set(corev1.ContainersReady, true, "", "")
		missing := missingGates(p)
		if len(missing) > 0 {
			set(corev1.PodReady, false, "ReadinessGatesNotReady", fmt.Sprintf("readiness gates that do not hold: %v", missing))
		} else {
			set(corev1.PodReady, true, "", "")
		}
	}
	return s
}

// missingGates lists the readiness gates whose condition somebody else has not yet set to true.
func missingGates(p *corev1.Pod) []corev1.PodConditionType {
	var missing []corev1.PodConditionType
	for _, gate := range p.Spec.ReadinessGates {
		holds := false
		for _, c := range p.Status.Conditions {
			holds = holds || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !holds {
			missing = append(missing, gate.ConditionType)
		}
	}
	return missing
}

// podCondition is a condition as it holds now; the time of its last transition stays while its status does.
func podCondition(before []corev1.PodCondition, kind corev1.PodConditionType, holds bool, reason, message string, generation int64, now metav1.Time) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: now, ObservedGeneration: generation,
	}
	if holds {
		c.Status = corev1.ConditionTrue
	}
	for _, b := range before {
		if b.Type == kind && b.Status == c.Status {
			c.LastTransitionTime = b.LastTransitionTime
		}
	}
	return c
}

func isReady(s corev1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// phase sums the containers up: Pending until each has been started once, then Running until all have ended for good.
func phase(views []view) corev1.PodPhase {
	ended, failed, unstarted := 0, false, false
	for _, v := range views {
		switch {
		case v.ended && v.last != nil:
			ended++
			failed = failed || v.last.ExitCode != 0
		case !v.running && v.last == nil:
			unstarted = true
		}
	}
	switch {
	case unstarted:
		return corev1.PodPending
	case ended < len(views):
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}
