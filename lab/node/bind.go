package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

// bindWorkers is how many Pods are bound at a time.
const bindWorkers = 4

type bindQueue = workqueue.TypedRateLimitingInterface[podID]

func newBindQueue() bindQueue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[podID]())
}

// startBinding binds the queued Pods to this node until ctx ends.
func (n *Node) startBinding(ctx context.Context) {
	for range bindWorkers {
		n.work.Go(func() {
			for n.bindNext(ctx) {
			}
		})
	}
	n.work.Go(func() {
		<-ctx.Done()
		n.binds.ShutDown()
	})
}

func (n *Node) bindNext(ctx context.Context) bool {
	id, shutdown := n.binds.Get()
	if shutdown {
		return false
	}
	defer n.binds.Done(id)
	err := n.client.CoreV1().Pods(id.namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.namespace, Name: id.name, UID: id.uid},
		Target:     corev1.ObjectReference{Kind: "Node", Name: n.options.Name},
	}, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// Gone, or bound by somebody else: either way no longer ours to bind.
		n.binds.Forget(id)
	case ctx.Err() == nil:
		n.logf("pod %s: binding: %v", id, err)
		n.binds.AddRateLimited(id)
	}
	return true
}

// wantsNode says whether a Pod waits for the default scheduler, whose place the agent takes.
func wantsNode(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		(p.Spec.SchedulerName == "" || p.Spec.SchedulerName == corev1.DefaultSchedulerName)
}
