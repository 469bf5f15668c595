package target

import (
	"os"

	"tuner/internal/children"
)

// output takes the output of a server. It keeps the last lines and appends all of it to a file. It
// is for one goroutine.
type output struct {
	tail   *children.Tail
	log    *os.File    // nil: no file
	warn   func(error) // nil: no warnings
	warned bool
}

// Write never fails. Otherwise the pipe to the server would be closed, and writing to it would kill
// the server. Output that cannot be written, as on a full disk, is missing in the file.
func (o *output) Write(p []byte) (int, error) {
	if o.log != nil {
		if _, err := o.log.Write(p); err != nil && !o.warned && o.warn != nil {
			o.warn(err)
			o.warned = true
		}
	}
	return o.tail.Write(p)
}
