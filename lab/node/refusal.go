package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Reasons for which a container waits without a process.
const (
	reasonCommand     = "CommandNotFound"            // in the place of a kubelet's ErrImagePull
	reasonUnconfirmed = "PodNotConfirmed"            // the API server could not be asked
	reasonConfig      = "CreateContainerConfigError" // a kubelet's own word
)

// refusal is an error that a container's status shows by its reason.
type refusal struct{ reason, message string }

func (r *refusal) Error() string { return r.reason + ": " + r.message }

func refuse(reason, format string, args ...any) error {
	return &refusal{reason: reason, message: fmt.Sprintf(format, args...)}
}

// unsupported refuses what a Pod asks for and a process cannot have, because leaving it out in silence would let the Pod appear to work.
func unsupported(p *corev1.Pod, c *corev1.Container) error {
	switch {
	case len(p.Spec.InitContainers) > 0:
		return refuse(reasonConfig, "the lab's node runs no init containers")
	case p.Spec.ActiveDeadlineSeconds != nil:
		return refuse(reasonConfig, "the lab's node has no activeDeadlineSeconds")
	case c.Lifecycle != nil && (c.Lifecycle.PostStart != nil || c.Lifecycle.PreStop != nil):
		return refuse(reasonConfig, "the lab's node runs no lifecycle hooks")
	case len(c.EnvFrom) > 0:
		return refuse(reasonConfig, "the lab's node has no envFrom")
	}
	for name, probe := range map[string]*corev1.Probe{"readiness": c.ReadinessProbe, "liveness": c.LivenessProbe, "startup": c.StartupProbe} {
		if probe != nil && probe.HTTPGet == nil && probe.TCPSocket == nil && probe.Exec == nil {
			return refuse(reasonConfig, "%s probe: the lab's node has httpGet, tcpSocket and exec only", name)
		}
	}
	return nil
}
