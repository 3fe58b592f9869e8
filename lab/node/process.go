package node

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A spawner starts processes that end, at the latest, with this one. It forks from one operating-system thread, because on Linux the kernel kills a
// child when the thread that forked it ends: that thread must live exactly as long as its children may.
type spawner struct {
	requests chan func()
	closed   chan struct{}
	warden   *warden
}

func newSpawner() (*spawner, error) {
	s := &spawner{requests: make(chan func()), closed: make(chan struct{})}
	var err error
	if s.warden, err = newWarden(); err != nil {
		return nil, err
	}
	go func() {
		// Never unlocked: when this goroutine returns, the runtime ends the thread.
		runtime.LockOSThread()
		for {
			select {
			case f := <-s.requests:
				f()
			case <-s.closed:
				return
			}
		}
	}()
	return s, nil
}

// close ends what is left, and the spawner. It is called once, and no start follows.
func (s *spawner) close() {
	close(s.closed)
	s.warden.close()
}

// start starts cmd in a process group of its own. cmd must write to files only, so that waiting for it depends on nobody who holds a pipe.
func (s *spawner) start(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = childAttributes()
	result := make(chan error, 1)
	select {
	case s.requests <- func() { result <- cmd.Start() }:
	case <-s.closed:
		return nil, errors.New("the agent has ended")
	}
	if err := <-result; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	s.warden.watch(p.pid())
	go func() {
		p.wait()
		s.warden.forget(p.pid())
		close(p.done)
	}()
	return p, nil
}

// A process is the leader of a process group.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the leader and its whole group are gone

	mu     sync.Mutex
	asked  bool // SIGTERM was sent
	reaped bool // the group's id may be somebody else's
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop sends SIGTERM to the group, and SIGKILL when grace is over; at once for 0. It does not wait; a later call can only shorten the time.
func (p *process) stop(grace time.Duration) {
	if grace <= 0 {
		p.signal(syscall.SIGKILL)
		return
	}
	p.mu.Lock()
	first := !p.asked
	p.asked = true
	p.mu.Unlock()
	if first {
		p.signal(syscall.SIGTERM)
	}
	timer := time.AfterFunc(grace, func() { p.signal(syscall.SIGKILL) })
	go func() {
		<-p.done
		timer.Stop()
	}()
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = signalGroup(p.pid(), s) // it may have ended just now
	}
}

// groupTimeout bounds the wait for killed members of a group: one that hangs in the kernel may never go away.
const groupTimeout = 2 * time.Second

// wait waits for the leader's end, kills what is left of its group, and waits until that is gone.
func (p *process) wait() {
	p.reap()
	deadline := time.Now().Add(groupTimeout)
	for groupAlive(p.pid()) && time.Now().Before(deadline) {
		<-time.After(5 * time.Millisecond)
	}
}

// killGroup kills what is left of the group, and is the last to signal it.
func (p *process) killGroup() {
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
}

// exitCode is that of the leader, 128 + n when signal n ended it. Only after done.
func (p *process) exitCode() int32 {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(p.cmd.ProcessState.ExitCode())
}
