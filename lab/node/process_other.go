//go:build !unix

package node

import (
	"errors"
	"os"
	"syscall"
)

// Without process groups and /bin/sh there is no warden, so that Start fails. These only let the package compile.

func childAttributes() *syscall.SysProcAttr  { return nil }
func wardenAttributes() *syscall.SysProcAttr { return nil }

func (p *process) reap() {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	p.killGroup()
}

func signalGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	return errors.Join(err, p.Kill())
}

func groupAlive(int) bool { return false }
