package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// judgeTimeout bounds the last lookups of a mapper. A RESTMapper takes no context, so a lookup that hangs cannot be ended,
// only given up. It is long, because a slow API server must not make a mapper look stuck.
const judgeTimeout = 30 * time.Second

// subject is one mapper and the client that lists through what it answers.
type subject struct {
	mapper meta.RESTMapper
	lister metadata.Interface
	kinds  []schema.GroupKind
	// answered turns true when every kind has been mapped and listed through.
	answered atomic.Bool
}

func newSubject(cfg *rest.Config, hc *http.Client, kinds []schema.GroupKind, newMapper NewMapper) (*subject, error) {
	mapper, listClient, err := newMapper(cfg, hc)
	if err != nil {
		return nil, err
	}
	listConfig := rest.CopyConfig(cfg)
	listConfig.QPS = -1 // the pace is set by --interval, alike for all peers
	lister, err := metadata.NewForConfigAndClient(listConfig, listClient)
	if err != nil {
		return nil, err
	}
	return &subject{mapper: mapper, lister: lister, kinds: kinds}, nil
}

// work looks up and lists until ctx ends, as a controller would: an error is no reason to stop, the next try may succeed.
func (s *subject) work(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		answered := true
		for _, gk := range s.kinds {
			_, err := s.visit(ctx, gk)
			answered = answered && err == nil
		}
		if answered {
			s.answered.Store(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// visit maps gk and lists through every mapping that the mapper answered with. The error is the mapper's; how each list ended is
// for the caller to judge, since the list of a version that is gone must fail.
func (s *subject) visit(ctx context.Context, gk schema.GroupKind) ([]listed, error) {
	one, err := s.mapper.RESTMapping(gk)
	if err != nil {
		return nil, err
	}
	// A controller that follows references meets every version that the mapper vouches for, not only the preferred one.
	all, err := s.mapper.RESTMappings(gk)
	if err != nil {
		return nil, err
	}
	var lists []listed
	seen := map[schema.GroupVersionResource]bool{}
	for _, mapping := range append([]*meta.RESTMapping{one}, all...) {
		if seen[mapping.Resource] {
			continue
		}
		seen[mapping.Resource] = true
		_, err := s.lister.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1})
		lists = append(lists, listed{mapping.Resource, err})
	}
	return lists, nil
}

// listed is a list request through a mapping, and how it ended.
type listed struct {
	resource schema.GroupVersionResource
	err      error
}

// judge does one last lookup and list of every kind and says what they came to.
func (s *subject) judge(ctx context.Context, served served) finding {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	done := make(chan finding, 1)
	go func() { done <- s.lookAgain(ctx, served) }()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
		return finding{err: errors.New("lookup: no answer within " + judgeTimeout.String())}
	}
}

func (s *subject) lookAgain(ctx context.Context, served served) (f finding) {
	for _, gk := range s.kinds {
		lists, err := s.visit(ctx, gk)
		if err != nil {
			return finding{err: err}
		}
		for _, l := range lists {
			gv := l.resource.GroupVersion()
			switch {
			case !served.has(gv.Group, gv.Version):
				f.stale = gv.String()
			case l.err != nil:
				return finding{err: fmt.Errorf("listing %s in %s: %w", l.resource.Resource, gv, l.err)}
			}
		}
	}
	return f
}
