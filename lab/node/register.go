package node

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

// A kubelet's periods: the controller manager takes a node for dead when its lease is 40 s old.
const (
	leaseDuration = 40 * time.Second
	heartbeat     = 10 * time.Second
)

// register creates the Node, or says of an existing one that it is ready.
func (n *Node) register(ctx context.Context) error {
	status := nodeStatus(n.options.Name, metav1.Now())
	_, err := n.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name, Labels: map[string]string{
			corev1.LabelHostname:   n.options.Name,
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		}},
		Status: status,
	}, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	if _, err := n.client.CoreV1().Nodes().Patch(ctx, n.options.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("reporting ready: %w", err)
	}
	return nil
}

// keepAlive renews the node's lease until ctx ends, and reports the node ready again when somebody holds it for dead or has deleted
// it, as happens when the API server was away for longer than the lease lasts.
func (n *Node) keepAlive(ctx context.Context) {
	leases := lease.NewController(clock.RealClock{}, n.client, n.options.Name, int32(leaseDuration.Seconds()), nil, heartbeat,
		n.options.Name, corev1.NamespaceNodeLease, func(*coordinationv1.Lease) error { return nil })
	n.work.Go(func() { leases.Run(ctx) })
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			// Not leases.Stop, which deletes the lease, and takes 10 s when the API server is gone: a machine without power does not do that either.
			return
		case <-tick.C:
		}
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.options.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && !nodeReady(node) {
			err = n.register(ctx)
		}
		if err != nil && ctx.Err() == nil {
			n.logf("heartbeat: %v", err)
		}
	}
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// nodeStatus is a node with room for everything: the lab does not ration.
func nodeStatus(name string, now metav1.Time) corev1.NodeStatus {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return corev1.NodeStatus{
		Capacity:    room,
		Allocatable: room,
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, "AgentReady", "the lab's node agent is running"),
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "NotMeasured", "the lab does not measure memory"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "NotMeasured", "the lab does not measure disks"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "NotMeasured", "the lab does not measure processes"),
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: loopback},
			{Type: corev1.NodeHostName, Address: name},
		},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem:         runtime.GOOS,
			Architecture:            runtime.GOARCH,
			OSImage:                 "none: containers are processes of the machine that runs the lab",
			ContainerRuntimeVersion: "process://1",
		},
	}
}
