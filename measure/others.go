package measure

import (
	"fmt"
	"math"
)

// Others is what others took of the CPU time in windows, as shares of what engine and clients could have used (Withheld).
type Others struct {
	Mean    float64 `json:"mean"`    // over the windows' time, 0..1
	Most    float64 `json:"most"`    // of one window
	Steal   float64 `json:"steal"`   // what the hypervisor took where something was withheld, mean over all the time
	Foreign float64 `json:"foreign"` // the same of other processes
	Seconds float64 `json:"seconds"` // of the windows
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
	mean := func(before, now float64) float64 {
		if taken == 0 {
			now = 0
		}
		return (before*o.Seconds + now*seconds) / (o.Seconds + seconds)
	}
	return Others{mean(o.Mean, taken), max(o.Most, taken), mean(o.Steal, w.Steal), mean(o.Foreign, w.Foreign), o.Seconds + seconds}
}

// leastTold is the mean share from which on people are told of others: less rounds to 0 %.
const leastTold = 0.005

// Corrected is Sentence where figures are corrected to something: "the average".
func (o Others) Corrected(to string) string { return o.Sentence("figures are corrected to " + to) }

// Sentence tells people of it, and what that means for the figures. It is "" where others took less than half a percent.
func (o Others) Sentence(meaning string) string {
	if o.Mean < leastTold {
		return ""
	}
	const small = 0.1 // of what was taken: not worth a word
	who := "Other processes and the hypervisor"
	switch {
	case o.Steal < small*o.Foreign:
		who = "Other processes"
	case o.Foreign < small*o.Steal:
		who = "The hypervisor"
	}
	return fmt.Sprintf("%s took %.0f %% of the CPU time on average (up to %.0f %%); %s.", who, 100*o.Mean, 100*o.Most, meaning)
}
