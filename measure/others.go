package measure

import (
	"fmt"
	"math"
)

// Others is what others took of the CPU time in windows, as shares of what engine and clients could have used (Withheld).
type Others struct {
	Mean    float64 `json:"mean"`    // over the windows' time, 0..1
	Most    float64 `json:"most"`    // of one window
	Steal   float64 `json:"steal"`   // the hypervisor's part of what was taken, 0..1
	Seconds float64 `json:"seconds"` // of the windows

	steal, foreign float64 // seconds' worth of all cores that each took in windows where something was withheld
}

// OthersIn sums up windows on a machine of so many cores, which count where a window does not tell its own.
func OthersIn(windows []Window, cores int) Others {
	var o Others
	for _, w := range windows {
		o = o.With(w, w.Withheld(cores))
	}
	return o
}

// With adds a window from which others withheld so much.
func (o Others) With(w Window, withheld float64) Others {
	taken, seconds := -math.Expm1(-withheld), w.Duration.Seconds()
	if seconds <= 0 {
		return o
	}
	o.Mean = (o.Mean*o.Seconds + taken*seconds) / (o.Seconds + seconds)
	o.Most, o.Seconds = max(o.Most, taken), o.Seconds+seconds
	if taken > 0 {
		o.steal, o.foreign = o.steal+w.Steal*seconds, o.foreign+w.Foreign*seconds
	}
	if o.steal+o.foreign > 0 {
		o.Steal = o.steal / (o.steal + o.foreign)
	}
	return o
}

// leastTold is the mean share from which on people are told of others: less rounds to 0 %.
const leastTold = 0.005

// Sentence tells people of it, and what figures are corrected to: "the average". It is "" where others took less than half a
// percent.
func (o Others) Sentence(to string) string {
	if o.Mean < leastTold {
		return ""
	}
	const small = 0.1 // of what was taken: not worth a word
	who := "Other processes and the hypervisor"
	switch {
	case o.Steal < small:
		who = "Other processes"
	case o.Steal > 1-small:
		who = "The hypervisor"
	}
	return fmt.Sprintf("%s took %.0f %% of the CPU time on average (up to %.0f %%); figures are corrected to %s.", who, 100*o.Mean, 100*o.Most, to)
}
