package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// ruleKey is the context key under which a request carries the rule it matched.
type ruleKey struct{}

func ruleOf(ctx context.Context) *Rule {
	rule, _ := ctx.Value(ruleKey{}).(*Rule)
	return rule
}

// handle takes one request through its steps: count, match, hold, delay, fail or forward. Whatever ends early breaks the
// client's request off.
func (p *HTTP) handle(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.leave()
	request := requestOf(r)
	p.requests.add(request)
	rule := p.claim(request)
	if rule == nil {
		p.forward.ServeHTTP(w, r)
		return
	}
	p.log.Printf("%s %s by %q: %s", request.Method, request.Path, request.UserAgent, rule)
	if rule.Hold == HoldRequest || rule.Delay > 0 {
		// net/http notices that an HTTP/1 client has gone only after the body was read.
		if err := bufferBody(r); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if rule.Hold == HoldRequest && rule.wait(r.Context()) != nil {
		panic(http.ErrAbortHandler)
	}
	if rule.Delay > 0 && pause(r.Context(), rule.Delay) != nil {
		panic(http.ErrAbortHandler)
	}
	if rule.Fail != nil {
		rule.Fail.write(w)
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ruleKey{}, rule)))
}

// modifyResponse runs when the API server has answered and before the client sees any of it.
func (p *HTTP) modifyResponse(resp *http.Response) error {
	rule := ruleOf(resp.Request.Context())
	if rule == nil {
		return nil
	}
	if rule.Hold == HoldResponse {
		if err := rule.wait(resp.Request.Context()); err != nil {
			return err
		}
	}
	if rule.Rewrite != nil {
		return rewrite(resp, rule.Rewrite)
	}
	return nil
}

// rewrite reads the whole answer and lets hook change it.
func rewrite(resp *http.Response, hook func(*Response)) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body.Close()
	answer := &Response{Status: resp.StatusCode, Header: resp.Header, Body: body}
	hook(answer)
	resp.StatusCode = answer.Status
	resp.Header = answer.Header
	resp.Body = io.NopCloser(bytes.NewReader(answer.Body))
	resp.ContentLength = int64(len(answer.Body))
	if len(answer.Body) == 0 {
		resp.Header.Del("Content-Length") // a 204 or a 304 must have none
	} else {
		resp.Header.Set("Content-Length", strconv.Itoa(len(answer.Body)))
	}
	return nil
}

// pause waits for d, or returns the cause for which ctx ended before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func bufferBody(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
