package lab

import (
	"context"
	"fmt"
	"sync"
)

// part is one process of the control plane that can be stopped and started again with the same flags, ports and data. Its methods are
// safe for concurrent use.
type part struct {
	cluster *Cluster
	command Command
	ready   func(context.Context) (seen string, ok bool)

	mu      sync.Mutex
	process *Process
}

func (p *part) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	process, err := p.cluster.nursery.startProcess(p.cluster.Dir(), p.command)
	if err == nil {
		p.process = process
	}
	return err
}

// Process is the running or last process of this part.
func (p *part) Process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *part) Kill() { p.Process().Kill() }

// Stop ends the process with SIGTERM and waits; when ctx ends first it is killed, and the error says so.
func (p *part) Stop(ctx context.Context) error { return p.Process().Stop(ctx) }

// Restart kills the process if it still runs, starts it again, and waits until it is ready.
func (p *part) Restart(ctx context.Context) error {
	p.Kill()
	if err := p.start(); err != nil {
		return err
	}
	return p.AwaitReady(ctx)
}

// AwaitReady waits until the part is ready. A process that ends instead is an error at once, with the end of its log.
func (p *part) AwaitReady(ctx context.Context) error {
	process := p.Process()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-process.Done():
			cancel(fmt.Errorf("it ended: %v; the end of %s:\n%s", process.Wait(), process.Log(), process.Tail(8)))
		case <-ctx.Done():
		}
	}()
	return Await(ctx, p.command.Name+" ready", p.ready)
}
