package frontends

import "time"

// SetPause replaces the wait for Options.DrainDelay. It must come before Serve.
func (f *Frontends) SetPause(pause func(time.Duration)) { f.pause = pause }
