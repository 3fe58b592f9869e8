package facts

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// laggingServer pins what a client sees of two API servers of which one hears late from etcd (design §10, M10, D6).
func laggingServer(t *testing.T, p *plane) {
	const group = "lag.facts.example.com"
	// As long as the lag lasts its server learns nothing; etcd's clients give a connection up after 10 s of silence.
	const lag = 8 * time.Second
	p.widgetsAt(t, group, "v1beta1* v1")
	healthy, late := p.wires[0], p.wires[lagging]
	lagServer := p.Server(lagging)
	t.Cleanup(func() { lagServer.SetLag(0) })

	begin := time.Now()
	lagServer.SetLag(lag)
	crd := p.change(t, group, setVersions("v1beta1- v1*"))
	written := make(chan string, 1)
	go func() {
		a, err := late.try(t.Context(), post(widgets(group, "v1beta1"), widget(group, "v1beta1", "late", ""))) // unlike an apply, it reads nothing from etcd first
		written <- fmt.Sprint(a.Status, err)
	}()
	p.await(t, "the healthy server's handler and aggregated document without v1beta1", func(ctx context.Context) (string, bool) {
		list, err := healthy.try(ctx, request{Path: widgets(group, "v1beta1")})
		if err != nil {
			return err.Error(), false
		}
		doc, err := healthy.document(ctx)
		shown := doc.version(group, "v1beta1").serves(plural)
		return fmt.Sprintf("list %d, shown %t, %v", list.Status, shown, err), list.Body == plain404 && err == nil && !shown
	})
	t.Logf("the healthy server has un-served the version %s after the change", time.Since(begin).Round(time.Millisecond))

	t.Run("the lagging server still serves and shows the version that its twin has un-served", func(t *testing.T) {
		list := late.get(t, widgets(group, "v1beta1")+"?resourceVersion=0")
		doc, err := late.document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		own := late.get(t, "/apis/"+group+"/v1beta1")
		if took := time.Since(begin); took > lag {
			t.Fatalf("the lag of %s has passed: %s; this machine is too slow to see it", lag, took)
		}
		if list.Status != http.StatusOK || !doc.version(group, "v1beta1").serves(plural) || own.Status != http.StatusOK {
			t.Errorf("list %v; aggregated %+v; legacy %v", list, doc.versionsOf(group), own)
		}
	})
	t.Run("a write through the lagging server lands in the version that was the storage version", func(t *testing.T) {
		p.await(t, "the write in etcd", func(ctx context.Context) (string, bool) {
			at, err := p.storedAt(ctx, group, "late")
			return fmt.Sprint(at, err), err == nil && at != ""
		})
		p.wantStored(t, group, "late", "v1beta1")
	})
	lagServer.SetLag(0)
	t.Run("after the lag both agree, in both forms, and in the storage version", func(t *testing.T) {
		if result := <-written; result != "201 <nil>" {
			t.Errorf("the late write: %s; want 201", result)
		}
		p.awaitServed(t, crd)
		p.flip(t, group, "v1beta1- v1*", "v1")
	})
}
