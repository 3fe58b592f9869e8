package facts

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHandlerBeforeDiscovery pins the order in which an API server forgets a version that is no longer served: first the handler answers the
// plain 404, then, as late as its controllers get to it, discovery stops to show the version. This is why a suspicion stays open until discovery
// changes (design M8). The aggregated document follows within milliseconds; the legacy list of groups has to wait for writes, 50 per second, and for their
// echo from etcd. How long the windows are depends on the machine and on what else there is to do; the test logs them.
func TestHandlerBeforeDiscovery(t *testing.T) {
	const group, crowd, lag = "window.facts.example.com", 300, 3 * time.Second
	p := newPlane(t, lab.Options{APIServers: 1, Lag: []int{0}})
	p.widgetsAt(t, group, "v1* v1beta1")

	t.Run("the handler is never later than discovery, hundreds of new CRDs or not", func(t *testing.T) {
		t.Log(p.unserve(t, group))
		p.changeVersions(t, group, "v1* v1beta1")
		begin := time.Now()
		p.createCrowd(t, crowd)
		t.Logf("created %d CRDs in %s", crowd, time.Since(begin).Round(time.Millisecond))
		t.Log(p.unserve(t, group))
		p.changeVersions(t, group, "v1* v1beta1")
	})
	t.Run("on a server that lags, the list of groups is late by one more lag", func(t *testing.T) {
		p.Server(0).SetLag(lag)
		s := p.unserve(t, group)
		p.Server(0).SetLag(0)
		t.Log(s)
		if !s.window {
			t.Error("the list of groups did not show the version any more when the handler answered the plain 404")
		}
	})
}

// sighting says when the parts of an API server were first seen without a version: time since the change was written, as far as polling shows it.
type sighting struct {
	handler, document, legacy time.Duration
	window                    bool // asked after the handler's 404, the legacy list of groups still showed the version
}

func (s sighting) String() string {
	return fmt.Sprintf("after the change: the handler's 404 at %s, the aggregated document at %s, the legacy list of groups at %s",
		s.handler.Round(time.Millisecond), s.document.Round(time.Millisecond), s.legacy.Round(time.Millisecond))
}

// unserve stops to serve the group's v1beta1 and asks all three in turn, without a pause, until none of them shows it. It reports an error when one of the forms of
// discovery was without the version and the handler, asked after that, had not noticed.
func (p *plane) unserve(t testing.TB, group string) (s sighting) {
	t.Helper()
	p.change(t, group, setVersions("v1* v1beta1-"))
	begin := time.Now()
	for s.handler == 0 || s.document == 0 || s.legacy == 0 {
		// From the cache, or not at all: no trip to etcd, which may lag.
		list := p.first().get(t, widgets(group, "v1beta1")+"?resourceVersion=0")
		gone := list.Body == plain404
		note(&s.handler, begin, gone)
		if !gone && (s.document != 0 || s.legacy != 0) {
			t.Fatalf("%v; the handler, asked after discovery was without the version: %v", s, list)
		}
		doc, err := p.first().document(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shown := doc.version(group, "v1beta1").serves(plural)
		note(&s.document, begin, !shown)
		shown = strings.Contains(p.first().send(t, request{Path: "/apis", Accept: legacyForm}).Body, `"groupVersion":"`+group+`/v1beta1"`)
		note(&s.legacy, begin, !shown)
		s.window = s.window || gone && shown
		if time.Since(begin) > time.Minute {
			t.Fatalf("not so after a minute; last seen: %v", s)
		}
	}
	return s
}

// note sets *at to the time since begin when something is first so.
func note(at *time.Duration, begin time.Time, so bool) {
	if so && *at == 0 {
		*at = time.Since(begin)
	}
}

// createCrowd creates CRDs, each in a group of its own, as fast as the API server takes them.
func (p *plane) createCrowd(t testing.TB, n int) {
	t.Helper()
	crds := make(chan *apiextensionsv1.CustomResourceDefinition)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for c := range crds {
				if _, err := p.crds.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		crds <- newCRD(fmt.Sprintf("crowd%d.facts.example.com", i), "v1*")
	}
	close(crds)
	wg.Wait()
}
