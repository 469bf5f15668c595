package measure

import (
	"fmt"
	"math"
)

// Others is the CPU time that others took in windows. Shares are of the CPU time that engine and
// clients could have used.
type Others struct {
	Mean float64 `json:"mean"` // mean over the time of the windows, 0..1
	Most float64 `json:"most"` // largest share in one window
	// share that the hypervisor took in windows that lost something; mean over the time of all windows
	Steal   float64 `json:"steal"`
	Foreign float64 `json:"foreign"` // share that other processes took, in the same way
	Seconds float64 `json:"seconds"` // duration of the windows
}

// OthersIn sums up windows on a machine with the given cores. A window with its own Cores uses
// those.
func OthersIn(windows []Window, cores int) Others {
	var o Others
	for _, w := range windows {
		o = o.With(w, w.Withheld(cores))
	}
	return o
}

// With adds a window from which others withheld the given amount (Withheld).
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

// leastTold is the smallest mean share that Sentence reports. Smaller shares round to 0 %.
const leastTold = 0.005

// Corrected returns Sentence for figures that are corrected to something, such as "the average".
func (o Others) Corrected(to string) string { return o.Sentence("figures are corrected to " + to) }

// Sentence says how much others took, and what it means for the figures. It is "" if others took
// less than half a percent.
func (o Others) Sentence(meaning string) string {
	if o.Mean < leastTold {
		return ""
	}
	const small = 0.1 // share of the other one: a smaller share is not mentioned
	who := "Other processes and the hypervisor"
	switch {
	case o.Steal < small*o.Foreign:
		who = "Other processes"
	case o.Foreign < small*o.Steal:
		who = "The hypervisor"
	}
	return fmt.Sprintf("%s took %.0f %% of the CPU time on average (up to %.0f %%); %s.", who, 100*o.Mean, 100*o.Most, meaning)
}
