package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// Command says what a child process runs.
type Command struct {
	Name string   // names the log file; unique within a lab
	Path string   // the program
	Args []string // without the program's name
	Env  []string // added to this process's environment
	Dir  string   // working folder; default: this process's

	// Stdout and Stderr get what the program prints; what has no writer goes to the log file.
	Stdout, Stderr io.Writer
}

// Process is a child process. It never outlives the process that started it. Its methods are safe for concurrent use.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; read after done is closed
}

// A nursery starts child processes from one operating-system thread. On Linux the kernel kills a child when the thread that
// forked it ends, so the thread must live exactly as long as its children may.
type nursery struct {
	requests chan func()
	closed   chan struct{}
	once     sync.Once
}

func newNursery() *nursery {
	n := &nursery{requests: make(chan func()), closed: make(chan struct{})}
	go func() {
		// Never unlocked: when this goroutine returns, the runtime ends the thread, and the kernel ends its children.
		runtime.LockOSThread()
		for {
			select {
			case f := <-n.requests:
				f()
			case <-n.closed:
				return
			}
		}
	}()
	return n
}

var errStopped = errors.New("the lab is stopped")

func (n *nursery) close() { n.once.Do(func() { close(n.closed) }) }

// start runs cmd.Start on the nursery's thread, in a process group of its own.
func (n *nursery) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	result := make(chan error, 1)
	select {
	case n.requests <- func() { result <- cmd.Start() }:
		return <-result
	case <-n.closed:
		return errStopped
	}
}

// startProcess starts c with its output in logs/NAME.log below dir. A second start under one name appends.
func (n *nursery) startProcess(dir string, c Command) (*Process, error) {
	select {
	case <-n.closed: // a folder made from here on would stay behind
		return nil, errStopped
	default:
	}
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	p := &Process{name: c.Name, log: filepath.Join(logs, c.Name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(append(os.Environ(), "LAB_DIR="+dir, "LAB_LIFELINE=stdin"), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if c.Stdout != nil {
		p.cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		p.cmd.Stderr = c.Stderr
	}
	// The lifeline: nobody writes to it; it closes when this process ends, in whatever way.
	lifeline, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := n.start(p.cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	recordPID(dir, p.cmd.Process.Pid)
	go func() {
		p.err = p.cmd.Wait()
		lifeline.Close()
		close(p.done)
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the path of the file with everything that the process printed.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process has ended and says how: nil for exit code 0, else an *exec.ExitError.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Kill ends the process and its process group with SIGKILL, and waits until it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Signal sends s to the process and its process group.
func (p *Process) Signal(s syscall.Signal) { p.signal(s) }

func (p *Process) signal(s syscall.Signal) {
	select {
	case <-p.done: // the id may be somebody else's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// Stop asks the process to end with SIGTERM and waits; when ctx ends first, it is killed, and the error says so.
func (p *Process) Stop(ctx context.Context) error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s: did not end by SIGTERM: %w", p.name, context.Cause(ctx))
	}
}

// Tail returns the last n lines of the log.
func (p *Process) Tail(n int) string {
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const enough = 64 << 10
	if fi, err := f.Stat(); err == nil && fi.Size() > enough {
		_, _ = f.Seek(-enough, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// crash matches what a Go program prints when it goes down or races. An aborted handler is how net/http
// itself ends a response whose client is gone; it is no crash.
var crash = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE)|Observed a panic`)

// crashes returns the lines of the log that tell of a panic or a data race.
func crashes(log string) ([]string, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if crash.MatchString(line) && !strings.Contains(line, "net/http: abort Handler") {
			found = append(found, strings.TrimSpace(line))
		}
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
	}
}
