package hostinfo

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// BindsMemory returns the reason why processes may not bind their memory to a NUMA node; nil if they
// may. Container runtimes forbid it without the capability SYS_NICE. It tries it on a thread of its
// own, and changes nothing.
func BindsMemory() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()                               // never unlocked: the thread ends with the goroutine
		const byDefault = 0                                  // MPOL_DEFAULT of set_mempolicy(2)
		done <- unix.SetMemPolicy(byDefault, &unix.CPUSet{}) // without nodes, as that policy requires
	}()
	return MemoryPolicyError(<-done)
}

// MemoryPolicyError returns the error of set_mempolicy(2) with its remedy. Containers may not set a
// memory policy by default: the seccomp profiles of Docker and containerd allow it only with the
// capability SYS_NICE. Cores they may choose.
func MemoryPolicyError(err error) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	return fmt.Errorf("%w; the container needs the capability SYS_NICE for numa-node (docker run --cap-add=SYS_NICE, or "+
		"securityContext.capabilities.add: [SYS_NICE]). Without it, give the node's cores as cpu-cores: threads then stay near "+
		"memory that they touch first", err)
}
