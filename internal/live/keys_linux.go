package live

import "golang.org/x/sys/unix"

// The requests for the terminal's mode, and the value of a key that is switched off.
const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
	noKey   = 0
)
