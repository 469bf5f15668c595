package children

import "syscall"

// attributes make a child the head of a process group, and have the kernel kill it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
