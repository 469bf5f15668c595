//go:build !linux

package runner

import "syscall"

// processAttributes put a child into a process group of its own, so that a terminal's Ctrl-C does not reach it and
// signals reach its children. Without Linux's death signal the end of file on parentFD is what ends an orphan.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
