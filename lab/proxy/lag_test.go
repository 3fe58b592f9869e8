package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab/proxy"
)

// echo is a TCP server that sends back what it gets, and counts it.
type echo struct {
	net.Listener
	mu    sync.Mutex
	bytes int
	conns sync.WaitGroup
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: listener}
	e.conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.conns.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() { listener.Close() })
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			conn.Write(buf[:n])
			e.mu.Lock()
			e.bytes += n
			e.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (e *echo) got() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}

func startLag(t *testing.T, target string) *proxy.Lag {
	t.Helper()
	l, err := proxy.StartLag(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return l
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	deadline, _ := soon(t).Deadline()
	conn.SetDeadline(deadline)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q (%v), want %q", got[:n], err, text)
	}
}

func TestLagHoldsAndFlushes(t *testing.T) {
	e := newEcho(t)
	l := startLag(t, e.Addr().String())
	conn := dial(t, l.Addr())
	send(t, conn, "at once")
	expect(t, conn, "at once")

	l.SetDelay(time.Hour)
	var sent strings.Builder
	for i := range 50 {
		line := fmt.Sprintf("line %d\n", i)
		sent.WriteString(line)
		send(t, conn, line)
	}
	await(t, "the server to have answered it all", func() (string, bool) {
		return fmt.Sprint(e.got()), e.got() == len("at once")+sent.Len()
	})
	conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatalf("%d bytes came through a delay of an hour", n)
	}
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	l.SetDelay(-time.Second)
	if l.Delay() != 0 {
		t.Errorf("delay %v, want none", l.Delay())
	}
	expect(t, conn, sent.String())
	send(t, conn, "at once again")
	expect(t, conn, "at once again")
}

func TestLagDelays(t *testing.T) {
	e := newEcho(t)
	l := startLag(t, e.Addr().String())
	l.SetDelay(50 * time.Millisecond)
	conn := dial(t, l.Addr())
	began := time.Now()
	send(t, conn, "x")
	expect(t, conn, "x")
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("echo after %v, want at least 50ms", took)
	}
}

// TestLagHalfClose: what one side has sent before it closed arrives, and so does the answer.
func TestLagHalfClose(t *testing.T) {
	e := newEcho(t)
	l := startLag(t, e.Addr().String())
	l.SetDelay(20 * time.Millisecond)
	conn := dial(t, l.Addr())
	data := bytes.Repeat([]byte("0123456789"), 200_000)
	go func() {
		conn.Write(data)
		conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes (%v), want the %d that were sent", len(got), err, len(data))
	}
}

func TestLagTargetDown(t *testing.T) {
	e := newEcho(t)
	e.Close()
	l := startLag(t, e.Addr().String())
	conn := dial(t, l.Addr())
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from a target that is down", n)
	}
}

func TestLagCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	e := newEcho(t)
	l := startLag(t, e.Addr().String())
	l.SetDelay(time.Hour)
	for range 5 {
		send(t, dial(t, l.Addr()), "never seen again")
	}
	await(t, "the server's answers", func() (string, bool) { return fmt.Sprint(e.got()), e.got() == 5*16 })
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if conn, err := net.Dial("tcp", l.Addr()); err == nil {
		conn.Close()
		t.Error("still listening")
	}
	e.Close()
	e.conns.Wait() // its connections are closed, too
	await(t, "goroutines gone", func() (string, bool) {
		buf := make([]byte, 1<<20)
		return string(buf[:runtime.Stack(buf, true)]), runtime.NumGoroutine() <= before
	})
}

func TestStartLagRefuses(t *testing.T) {
	if l, err := proxy.StartLag("no port"); err == nil {
		l.Close()
		t.Error("no error for an address without a port")
	}
}
