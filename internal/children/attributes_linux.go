package children

import "syscall"

// attributes makes a child the head of a process group. The kernel kills it when the thread that
// started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
