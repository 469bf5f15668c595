//go:build !linux

package children

import "syscall"

// attributes makes a child the head of a process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
