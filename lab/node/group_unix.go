//go:build unix

package node

import (
	"errors"
	"syscall"
)

// wardenAttributes keeps a terminal's signals, and those to the agent's group, from the warden.
func wardenAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(pgid int, s syscall.Signal) error { return syscall.Kill(-pgid, s) }

// groupListed says whether a process group has a member, if only one that nobody has reaped yet.
func groupListed(pgid int) bool { return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) }
