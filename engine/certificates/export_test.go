package certificates

import "time"

// SetNow sets the clock.
func (c *Certificates) SetNow(now func() time.Time) { c.now = now }
