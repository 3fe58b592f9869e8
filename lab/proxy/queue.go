package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// delay is a duration that changes under those who wait for it. The zero value is no delay.
type delay struct {
	mu      sync.Mutex
	d       time.Duration
	changed chan struct{} // closed and forgotten by set; made by who waits
}

func (d *delay) set(to time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.d = to
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// get returns the delay, and a channel that is closed when it changes.
func (d *delay) get() (time.Duration, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.d, d.changed
}

// await waits until what arrived at that time is as old as the delay, whatever that becomes meanwhile.
func (d *delay) await(ctx context.Context, arrived time.Time) error {
	for {
		now, changed := d.get()
		left := now - time.Since(arrived)
		if left <= 0 {
			return context.Cause(ctx)
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// chunk is a run of bytes that arrived together.
type chunk struct {
	at    time.Time
	bytes []byte
}

// queue keeps what has arrived and is not due. It has no bound: it holds what a peer sends within the delay, which TCP's and
// gRPC's own windows bound. The zero value is empty. One goroutine fills it, one empties it.
type queue struct {
	mu     sync.Mutex
	chunks []chunk
	err    error         // why nothing more comes: io.EOF or worse
	more   chan struct{} // closed and forgotten when either changes; made by who waits
}

// fill reads src to its end, and keeps the reading going however long the bytes have to wait: a delay that slowed the
// sender down would be one of bandwidth.
func (q *queue) fill(src io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		q.mu.Lock()
		if n > 0 {
			q.chunks = append(q.chunks, chunk{at: time.Now(), bytes: append([]byte(nil), buf[:n]...)})
		}
		q.err = err
		if q.more != nil {
			close(q.more)
			q.more = nil
		}
		q.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// drain writes each chunk to dst when it is as old as delay says at that time. It returns nil when src had ended and all is
// written, else why it stopped.
func (q *queue) drain(ctx context.Context, dst io.Writer, delay *delay) error {
	for {
		next, err := q.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := delay.await(ctx, next.at); err != nil {
			return err
		}
		if _, err := dst.Write(next.bytes); err != nil {
			return err
		}
	}
}

// next returns the oldest chunk, waiting for one. After the last it returns why there are no more.
func (q *queue) next(ctx context.Context) (chunk, error) {
	for {
		q.mu.Lock()
		if len(q.chunks) > 0 {
			first := q.chunks[0]
			q.chunks[0] = chunk{}
			q.chunks = q.chunks[1:]
			q.mu.Unlock()
			return first, nil
		}
		if q.err != nil {
			defer q.mu.Unlock()
			return chunk{}, q.err
		}
		if q.more == nil {
			q.more = make(chan struct{})
		}
		more := q.more
		q.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return chunk{}, context.Cause(ctx)
		}
	}
}
