package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// lagging copies from a pipe to a pipe under a delay, as a Lag does between two connections.
type lagging struct {
	from, to net.Conn // the outer ends: write into from, read from to
	delay    delay
	ended    chan error
}

func newLagging(ctx context.Context) *lagging {
	src, from := net.Pipe()
	to, dst := net.Pipe()
	l := &lagging{from: from, to: to, ended: make(chan error, 1)}
	var q queue
	go q.fill(src)
	go func() {
		err := q.drain(ctx, dst, &l.delay)
		dst.Close()
		src.Close()
		l.ended <- err
	}()
	return l
}

func (l *lagging) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(l.from, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads text, which must come after exactly that long.
func (l *lagging) expect(t *testing.T, text string, after time.Duration) {
	t.Helper()
	began := time.Now()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(l.to, got); err != nil || string(got) != text {
		t.Fatalf("read %q (%v), want %q", got, err, text)
	}
	if took := time.Since(began); took != after {
		t.Fatalf("%q came after %v, want %v", text, took, after)
	}
}

func TestDelayToTheNanosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLagging(t.Context())
		l.send(t, "now")
		l.expect(t, "now", 0)

		l.delay.set(3 * time.Second)
		l.send(t, "a")
		pauseFor(t, time.Second)
		l.send(t, "b")
		l.expect(t, "a", 2*time.Second)
		l.expect(t, "b", time.Second) // its own age counts, not the time since a

		// The delay shrinks under bytes that are on their way: those that are old enough go at once.
		l.send(t, "c")
		pauseFor(t, time.Second)
		l.send(t, "d")
		l.delay.set(time.Second)
		l.expect(t, "c", 0)
		l.expect(t, "d", time.Second)

		// It grows: they wait longer.
		l.send(t, "e")
		l.delay.set(5 * time.Second)
		l.expect(t, "e", 5*time.Second)

		// The end comes behind what was sent before it.
		l.send(t, "f")
		l.from.Close()
		l.expect(t, "f", 5*time.Second)
		if _, err := l.to.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v, want EOF", err)
		}
		if err := <-l.ended; err != nil {
			t.Errorf("ended with %v, want nil", err)
		}
	})
}

func TestDelayEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := newLagging(ctx)
		l.delay.set(time.Hour)
		l.send(t, "never")
		cancel()
		if err := <-l.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want the context's end", err)
		}
		if n, err := l.to.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("read %d bytes (%v), want none", n, err)
		}
		l.from.Close()
	})
}

// pauseFor lets the bubble's clock go on.
func pauseFor(t *testing.T, d time.Duration) {
	t.Helper()
	if err := pause(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}
