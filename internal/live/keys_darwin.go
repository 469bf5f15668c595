package live

import "golang.org/x/sys/unix"

// The requests for the terminal's mode, and the value of a key that is switched off.
const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
	noKey   = 0xff
)
