//go:build unix && !linux

package node

import "syscall"

// childAttributes puts a child into a process group of its own, which the warden kills when this process ends.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func groupAlive(pgid int) bool { return groupListed(pgid) }

// reap waits for the leader's end, and kills what is left of its group.
func (p *process) reap() {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	p.killGroup()
}
