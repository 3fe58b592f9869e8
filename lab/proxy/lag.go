package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Lag is a TCP proxy that delays every byte its target sends, and nothing that is sent to the target. Order is kept, and no
// byte is lost. Between an API server and etcd it makes that server see the world as it was a while ago. It is safe for
// concurrent use.
//
// The delay is latency, not bandwidth: gRPC and TLS pass. etcd's clients drop a connection whose keep-alive stays
// unanswered for 10 s, so keep the delay below that.
type Lag struct {
	target   string
	listener net.Listener
	delay    delay

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// StartLag starts a lag proxy in front of target ("host:port") on a free port of the loopback interface, with no delay. The
// caller closes it with [Lag.Close]. The target need not be up yet: it is dialled for each connection.
func StartLag(target string) (*Lag, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("lag proxy: target %q: %w", target, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lag proxy: %w", err)
	}
	l := &Lag{target: target, listener: listener}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.done.Add(1)
	go l.accept()
	return l, nil
}

// Addr returns the proxy's address, "127.0.0.1:" and the port.
func (l *Lag) Addr() string { return l.listener.Addr().String() }

// SetDelay changes how old a byte must be before it is passed on, at once and for every connection. It counts for the bytes
// that are on their way, too: a shorter delay lets them go earlier, none at all lets them go now, in order. Negative means none.
func (l *Lag) SetDelay(d time.Duration) { l.delay.set(max(d, 0)) }

// Delay returns the delay.
func (l *Lag) Delay() time.Duration {
	d, _ := l.delay.get()
	return d
}

// Close ends the proxy and every connection through it; bytes on their way are dropped. It returns when no goroutine of the
// proxy is left. Further calls do nothing.
func (l *Lag) Close() error {
	l.cancel()
	err := l.listener.Close()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Lag) accept() {
	defer l.done.Done()
	for {
		conn, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, say: a lab under that much stress may as well wait for the next client.
			if pause(l.ctx, 10*time.Millisecond) != nil {
				return
			}
			continue
		}
		l.done.Add(1)
		go func() {
			defer l.done.Done()
			l.carry(conn)
		}()
	}
}

// carry serves one connection until both directions have ended, one has broken, or the proxy is closed.
func (l *Lag) carry(client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(l.ctx, "tcp", l.target)
	if err != nil {
		return // the client sees its connection closed, as if the target had refused
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()

	var parts sync.WaitGroup
	var sent queue
	parts.Go(func() {
		if _, err := io.Copy(server, client); err != nil || closeWrite(server) != nil {
			cancel()
		}
	})
	parts.Go(func() { sent.fill(server) })
	parts.Go(func() {
		if err := sent.drain(ctx, client, &l.delay); err != nil || closeWrite(client) != nil {
			cancel()
		}
	})
	parts.Wait()
}

// closeWrite passes on that one side has sent all it had; the other direction stays open.
func closeWrite(conn net.Conn) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return errors.New("connection cannot be closed halfway")
	}
	return tcp.CloseWrite()
}
