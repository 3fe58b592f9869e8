package node

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes puts a child into a process group of its own and has the kernel kill it when the thread that started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits until the leader has ended, and kills what is left of its group before it reaps the leader: until then the leader's id, which is the
// group's, cannot be given to another process.
func (p *process) reap() {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, p.pid(), &info, unix.WEXITED|unix.WNOWAIT, nil), syscall.EINTR) {
	}
	p.killGroup()
	_ = p.cmd.Wait() // how it ended is in ProcessState
}
