package live

import (
	"os"

	"golang.org/x/sys/unix"
)

// The requests for the terminal's mode, and the value of a key that is switched off.
const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
	noKey   = 0
)

// shrink makes a pipe as small as the system allows: one page.
func shrink(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1) // rounded up; a larger pipe only makes the guard slower than some crashes
	})
}
