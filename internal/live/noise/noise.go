// Package noise fills the noise meter of package live from measured windows. It measures nothing.
package noise

import (
	"fmt"
	"slices"

	"tuner/internal/live"
	"tuner/measure"
)

// mostHistory is the number of measurements of which the meter has a bar.
const mostHistory = 16

func newest(history []float64) []float64 { return history[max(0, len(history)-mostHistory):] }

// With returns a noise meter after the windows of one more measurement. The flags decide whether
// figures are spoilt, as they do in reports. A flag of some windows has their number, since the mean over
// all may be below its threshold.
func With(n live.Noise, windows []measure.Window) live.Noise {
	total := 0.0
	next := live.Noise{History: n.History}
	var texts []string
	spoilt := map[string]int{} // number of windows, by text
	for _, w := range windows {
		seconds := w.Duration.Seconds()
		total += seconds
		next.Steal += w.Steal * seconds
		next.Others += w.Foreign * seconds
		if w.Frequency > 0 {
			next.Drift = w.Frequency - 1
		}
		for _, f := range w.Flags {
			if text := f.Text(); f.IsOfMachine() {
				if spoilt[text]++; spoilt[text] == 1 {
					texts = append(texts, text)
				}
			}
		}
	}
	for _, text := range texts {
		if some := spoilt[text]; some < len(windows) {
			text = fmt.Sprintf("%d of %d windows: %s", some, len(windows), text)
		}
		next.Spoilt = append(next.Spoilt, text)
	}
	if total <= 0 {
		return n
	}
	next.IsKnown, next.Steal, next.Others = true, next.Steal/total, next.Others/total
	next.History = newest(append(slices.Clone(n.History), next.Steal+next.Others))
	return next
}
