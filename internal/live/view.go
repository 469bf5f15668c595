package live

import (
	"fmt"
	"io"
)

// Display shows frames: a Screen on the terminal, or a page in browsers. Its methods do not block, and
// may be called from any goroutine. Text that is written to it are messages for people.
type Display interface {
	io.Writer
	Show(first Frame) error
	Update(change func(*Frame))
	Close() // the run has ended
}

// View shows a run on a display, from the run's events. One goroutine at a time uses it.
type View struct {
	Frame Frame // what the display has, without the effects of keys
	shown Display
}

// NewView shows the first frame. It returns nil, and prints why, if the display cannot show it: lines
// take its place then.
func NewView(shown Display, first Frame) *View {
	if err := shown.Show(first); err != nil {
		fmt.Fprintf(shown, "plain lines: %v\n", err)
		return nil
	}
	return &View{first, shown}
}

// Update changes the frame in the given parts, and leaves the others to the keys.
func (v *View) Update(change func(*Frame)) {
	change(&v.Frame)
	v.shown.Update(change)
}

// Close says that the run has ended. It does nothing on nil.
func (v *View) Close() {
	if v != nil {
		v.shown.Close()
	}
}
