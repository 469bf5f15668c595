package frontends

import "time"

// SetPause replaces what waits for Options.DrainDelay, before Serve.
func (f *Frontends) SetPause(pause func(time.Duration)) { f.pause = pause }
