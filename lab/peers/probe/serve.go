package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

func (p *program) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", p.serveReadyz)
	mux.HandleFunc("GET /mappers", p.serveMappers)
	mux.HandleFunc("POST /start", p.serveStart)
	mux.HandleFunc("POST /freeze", p.serveFreeze)
	mux.HandleFunc("GET /verdict", p.serveVerdict)
	return mux
}

func (p *program) serveReadyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := p.askServer(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok: the API server answers; the mappers were not asked")
}

// askServer asks for the API server's version, which every authenticated user may read.
func (p *program) askServer(ctx context.Context) error {
	url := strings.TrimSuffix(p.cfg.Host, "/") + "/version"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := p.plain.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("api server: /version: %s", resp.Status)
	}
	return nil
}

func (p *program) serveMappers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.count())
}

func (p *program) count() (c Count) {
	for _, s := range p.all() {
		c.Mappers++
		if s.answered.Load() {
			c.Answered++
		}
	}
	return c
}

func (p *program) serveStart(w http.ResponseWriter, r *http.Request) {
	p.start.Do(func() { close(p.started) })
	p.serveMappers(w, r)
}

func (p *program) serveFreeze(w http.ResponseWriter, r *http.Request) {
	p.freeze.Do(func() { close(p.frozen) })
	p.serveMappers(w, r)
}

func (p *program) serveVerdict(w http.ResponseWriter, r *http.Request) {
	served := parseServed(r.URL.Query())
	if len(served) == 0 {
		http.Error(w, "served: missing: name the versions that are served, such as ?served=v1beta1", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.verdict(r.Context(), served))
}

func (p *program) verdict(ctx context.Context, served served) Verdict {
	subjects := p.all()
	findings := make([]finding, len(subjects))
	// A few at a time: they must not be slow because they are many.
	turn := make(chan struct{}, 10)
	var wg sync.WaitGroup
	for i, s := range subjects {
		wg.Add(1)
		turn <- struct{}{}
		go func() {
			defer func() { <-turn; wg.Done() }()
			findings[i] = s.judge(ctx, served)
		}()
	}
	wg.Wait()
	v := Verdict{Name: p.name}
	for _, f := range findings {
		v.add(f)
	}
	v.Requests = p.counter.requests()
	return v
}
