package facts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// openWatches pins what becomes of watches that are open when a version stops to be served (design G3, k/k#79610).
func openWatches(t *testing.T, p *plane) {
	const group = "watch.facts.example.com"
	p.widgetsAt(t, group, "v1* v1beta1")
	p.first().must(t, apply("somebody", widgets(group, "v1")+"/w", widget(group, "v1", "w", "")))
	ends := map[string]<-chan error{}
	for _, version := range []string{"v1", "v1beta1"} {
		ends[version] = p.first().watch(t, widgets(group, version))
	}
	p.changeVersions(t, group, "v1* v1beta1-")
	for version, end := range ends {
		t.Run("un-serving v1beta1 ends the open watch of "+version+" without an error event", func(t *testing.T) {
			if err := <-end; err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a new watch of the version that is still served works", func(t *testing.T) { p.first().watch(t, widgets(group, "v1")) })
}

// watch opens a watch and returns when its first event, an object that was there before, has come. The channel gets the reason for which the watch
// did not come to a clean end within a minute, or nil.
func (w wire) watch(t testing.TB, path string) (end <-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the watch did not end within a minute"))
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	events := bufio.NewScanner(resp.Body)
	if !events.Scan() {
		t.Fatalf("%s: %s, no first event: %v", path, resp.Status, events.Err())
	}
	ended := make(chan error, 1)
	go func() {
		var more string
		for events.Scan() {
			more += events.Text()
		}
		if err := events.Err(); err != nil {
			ended <- fmt.Errorf("%w: %w", err, context.Cause(ctx))
			return
		}
		if more != "" {
			ended <- fmt.Errorf("more events: %s", more)
			return
		}
		ended <- nil
	}()
	return ended
}
