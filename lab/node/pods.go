package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// podID names one Pod for ever: a later Pod of the same name has another UID.
type podID struct {
	namespace, name string
	uid             types.UID
}

func (id podID) String() string { return id.namespace + "/" + id.name }

func idOf(p *corev1.Pod) podID { return podID{p.Namespace, p.Name, p.UID} }

// podEvents turns what the informer sees into Pods to bind and Pods to run.
func (n *Node) podEvents(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { n.see(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(before, now any) {
			old, p := before.(*corev1.Pod), now.(*corev1.Pod)
			if old.UID != p.UID { // deleted and created anew while the watch was down
				n.lose(idOf(old))
			}
			n.see(ctx, p)
		},
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				n.lose(idOf(p))
			}
		},
	}
}

func (n *Node) see(ctx context.Context, p *corev1.Pod) {
	if wantsNode(p) {
		n.binds.Add(idOf(p))
	}
	if p.Spec.NodeName != n.options.Name {
		return
	}
	id := idOf(p)
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.pods[id]; known != nil {
		known.update(p)
		return
	}
	if n.stopped {
		return
	}
	started := newPod(n, p)
	n.pods[id] = started
	n.work.Go(func() {
		started.run(ctx)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.pods, id)
	})
}

func (n *Node) lose(id podID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[id]; p != nil {
		p.lose()
	}
}
