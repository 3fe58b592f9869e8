//go:build !linux

package lab

import "syscall"

// childAttributes puts a child into a process group of its own. Without the kernel's help a child ends with its parent by the
// lifeline alone (LAB_LIFELINE), which the lab's own programs honour.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
