package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
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

// groupAlive says whether a process group has a member that runs. A dead one counts for nothing, though it stays in the group until its new parent
// reaps it, which the first process of a container or a small machine may never do.
func groupAlive(pgid int) bool {
	if !groupListed(pgid) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // without /proc the dead cannot be told apart
	}
	group := strconv.Itoa(pgid)
	for _, stat := range stats {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state parent group …; the name may hold anything, also parentheses.
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == group && !bytes.ContainsAny(fields[0], "ZX") {
			return true
		}
	}
	return false
}
