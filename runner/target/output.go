package target

import "os"

// output takes what a server writes: its last lines are kept, and all of it is appended to a file.
// It is for one goroutine.
type output struct {
	tail   *tail
	log    *os.File    // nil for none
	warn   func(error) // nil: nobody is told
	warned bool
}

// Write never fails. Otherwise the pipe to the server would be closed, and the server killed for
// writing to it. The file lacks what could not be written to it, as on a full disk.
func (o *output) Write(p []byte) (int, error) {
	if o.log != nil {
		if _, err := o.log.Write(p); err != nil && !o.warned && o.warn != nil {
			o.warn(err)
			o.warned = true
		}
	}
	return o.tail.Write(p)
}
