package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// history records when Pods came and went and when the specs of CRDs were written. When is etcd's own count of writes, so that the order is a
// fact and not a matter of who was told first.
type history struct {
	came, went, written map[string]uint64 // by name

	mu      sync.Mutex
	seen    map[string]int64 // generation, by CRD
	watches sync.WaitGroup
	stop    func()
}

// record watches the Pods that a selector chooses, and all CRDs, from now on.
func (p *plane) record(t *testing.T, selector string) *history {
	t.Helper()
	h := &history{came: map[string]uint64{}, went: map[string]uint64{}, written: map[string]uint64{}, seen: map[string]int64{}}
	options := metav1.ListOptions{LabelSelector: selector}
	podList, err := p.kube.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	options.ResourceVersion = podList.ResourceVersion
	pods, err := p.kube.CoreV1().Pods(metav1.NamespaceAll).Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	crdList, err := p.crds.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range crdList.Items {
		h.seen[c.Name] = c.Generation
	}
	crds, err := p.crds.Watch(t.Context(), metav1.ListOptions{ResourceVersion: crdList.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	h.stop = func() { pods.Stop(); crds.Stop(); h.watches.Wait() }
	t.Cleanup(h.stop)
	h.watches.Go(func() { h.follow(pods) })
	h.watches.Go(func() { h.follow(crds) })
	return h
}

func (h *history) follow(w watch.Interface) {
	for event := range w.ResultChan() {
		h.note(event)
	}
}

func (h *history) note(event watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := event.Object.(type) {
	case *corev1.Pod:
		switch event.Type {
		case watch.Added:
			h.came[o.Name] = revision(o.ResourceVersion)
		case watch.Deleted:
			h.went[o.Name] = revision(o.ResourceVersion)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if o.Generation != h.seen[o.Name] {
			h.seen[o.Name], h.written[o.Name] = o.Generation, revision(o.ResourceVersion)
		}
	}
}

func revision(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// wantDownWhileWritten demands that before Pods went before the first CRD was written, and that after Pods, all there are since, came
// only when the last one was.
func (h *history) wantDownWhileWritten(t testing.TB, before, after, crds int) {
	t.Helper()
	await(t, "the watches tell of all", func(context.Context) (string, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return fmt.Sprintf("%d Pods came, %d went, %d CRDs were written", len(h.came), len(h.went), len(h.written)),
			len(h.came) >= after && len(h.went) >= before && len(h.written) >= crds
	})
	h.stop()
	if len(h.came) != after || len(h.went) != before || len(h.written) != crds {
		t.Errorf("Pods that came: %v, that went: %v, CRDs that were written: %v; want %d, %d and %d", h.came, h.went, h.written, after, before, crds)
	}
	for crd, written := range h.written {
		for pod, at := range h.went {
			if at > written {
				t.Errorf("pod %s was there when crd %s was written: it went at %d, the CRD was written at %d", pod, crd, at, written)
			}
		}
		for pod, at := range h.came {
			if at < written {
				t.Errorf("pod %s came before crd %s was written: it came at %d, the CRD was written at %d", pod, crd, at, written)
			}
		}
	}
}
