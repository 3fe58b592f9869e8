package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Hold says where a rule stops a request.
type Hold int

const (
	// NoHold stops nothing.
	NoHold Hold = iota
	// HoldRequest stops a request before the API server sees it.
	HoldRequest
	// HoldResponse stops a request after the API server has acted and answered, before the client sees any of the answer.
	HoldResponse
)

// Rule says which requests to disturb, and how. The five fields of [Filter] choose; a request is disturbed by the first
// rule that chooses it, in the order in which rules were added. The steps happen in the order of the fields below them: hold the
// request, delay, fail; or forward, hold the response, rewrite.
//
// The fields must not change after [HTTP.Add]. The methods are safe for concurrent use. A rule is not to be copied.
type Rule struct {
	Method    string // exact; "" any
	Path      string // a pattern, see Filter; "" any
	Query     string // substring of the raw query, such as "watch=true"; "" any
	Accept    string // substring of the client's Accept header; "" any
	UserAgent string // substring; "" any

	// Hold stops matching requests until Release. After Release the rule holds nothing any more; a rule that does nothing but
	// hold is then out of the way, and later rules are asked.
	Hold Hold
	// Delay forwards, or fails, that much later.
	Delay time.Duration
	// Fail answers in place of the API server, which never sees the request.
	Fail *Failure
	// Rewrite changes the API server's answer, which is read whole before: not for watches. It may be called
	// concurrently.
	Rewrite func(*Response)
	// Times is how many requests the rule takes before it is out of the way; 0: all.
	Times int

	mu       sync.Mutex
	taken    int
	held     int
	released chan struct{} // closed by Release; made on first use
	changed  chan struct{} // closed and forgotten whenever held changes; made by who waits
}

// Failure is an answer in the place of the API server's.
type Failure struct {
	Status      int    // 200 to 599
	Body        string // sent as it is
	ContentType string // default "text/plain; charset=utf-8"
}

func (f *Failure) write(w http.ResponseWriter) {
	contentType := f.ContentType
	if contentType == "" {
		contentType = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body)
}

// Response is the API server's answer in the hands of [Rule.Rewrite], never compressed. Content-Length follows Body by
// itself.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Add puts a rule behind those that are there. Requests that are already past their rules are not touched. An error says which
// field of the rule makes no sense.
func (p *HTTP) Add(r *Rule) error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("proxy: rule %s: %w", r, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return nil
}

// Remove takes a rule out and releases what it holds. It does nothing to a rule that was not added.
func (p *HTTP) Remove(r *Rule) {
	p.mu.Lock()
	p.rules = slices.DeleteFunc(p.rules, func(have *Rule) bool { return have == r })
	p.mu.Unlock()
	r.Release()
}

// claim returns the first rule that takes the request, nil when none does.
func (p *HTTP) claim(request Request) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if r.filter().matches(request) && r.take() {
			return r
		}
	}
	return nil
}

func (r *Rule) filter() Filter {
	return Filter{Method: r.Method, Path: r.Path, Query: r.Query, Accept: r.Accept, UserAgent: r.UserAgent}
}

func (r *Rule) validate() error {
	if r.Hold < NoHold || r.Hold > HoldResponse {
		return fmt.Errorf("unknown hold %d", r.Hold)
	}
	if r.Delay < 0 {
		return fmt.Errorf("negative delay %v", r.Delay)
	}
	if r.Times < 0 {
		return fmt.Errorf("negative times %d", r.Times)
	}
	if r.Fail != nil && (r.Fail.Status < 200 || r.Fail.Status > 599) {
		return fmt.Errorf("failure status %d is not a final one", r.Fail.Status)
	}
	if r.Fail != nil && (r.Rewrite != nil || r.Hold == HoldResponse) {
		return errors.New("a failure leaves no answer of the API server to hold or to rewrite")
	}
	if r.Hold == NoHold && !r.disturbs() {
		return errors.New("one of Hold, Delay, Fail and Rewrite must be set")
	}
	return r.filter().validate()
}

// disturbs says whether the rule does anything but hold.
func (r *Rule) disturbs() bool { return r.Delay > 0 || r.Fail != nil || r.Rewrite != nil }

// take counts one request in, unless the rule is out of the way.
func (r *Rule) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Times > 0 && r.taken >= r.Times {
		return false
	}
	if !r.disturbs() && r.isReleased() {
		return false
	}
	r.taken++
	return true
}

// wait holds one request until Release, or until ctx ends.
func (r *Rule) wait(ctx context.Context) error {
	r.mu.Lock()
	released := r.releasedLocked()
	r.addHeldLocked(1)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.addHeldLocked(-1)
		r.mu.Unlock()
	}()
	select {
	case <-released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release lets go whatever the rule holds, and whatever it would hold from now on. Further calls do nothing.
func (r *Rule) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isReleased() {
		close(r.releasedLocked())
	}
}

// Held returns how many requests the rule holds now.
func (r *Rule) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Taken returns how many requests the rule has taken so far, held or not.
func (r *Rule) Taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

// AwaitHeld waits until the rule holds at least n requests at the same time. When ctx ends before, the error says how many
// it held, and wraps the context's cause.
func (r *Rule) AwaitHeld(ctx context.Context, n int) error {
	for {
		r.mu.Lock()
		held, taken := r.held, r.taken
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		if held >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("proxy: rule %s: holds %d of %d requests, took %d: %w", r, held, n, taken, context.Cause(ctx))
		}
	}
}

func (r *Rule) addHeldLocked(n int) {
	r.held += n
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *Rule) releasedLocked() chan struct{} {
	if r.released == nil {
		r.released = make(chan struct{})
	}
	return r.released
}

// isReleased needs r.mu.
func (r *Rule) isReleased() bool {
	select {
	case <-r.releasedLocked():
		return true
	default:
		return false
	}
}

// String names the rule by what it chooses and does, for logs and errors.
func (r *Rule) String() string {
	words := []string{r.filter().String()}
	switch r.Hold {
	case HoldRequest:
		words = append(words, "hold request")
	case HoldResponse:
		words = append(words, "hold response")
	}
	if r.Delay > 0 {
		words = append(words, "delay "+r.Delay.String())
	}
	if r.Fail != nil {
		words = append(words, fmt.Sprintf("fail %d", r.Fail.Status))
	}
	if r.Rewrite != nil {
		words = append(words, "rewrite")
	}
	return strings.Join(words, ", ")
}
