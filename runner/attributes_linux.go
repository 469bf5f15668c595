package runner

import "syscall"

// processAttributes put a child into a process group of its own, so that a terminal's Ctrl-C does not reach it and
// signals reach its children, and have the kernel kill it when the thread that started it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
