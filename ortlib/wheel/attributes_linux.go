package wheel

import "syscall"

// childAttributes puts a child into a process group of its own, and lets it end with this process, however that ends. The
// thread that starts it must live as long as it does.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
