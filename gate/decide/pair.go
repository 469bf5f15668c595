package decide

import "tuner/measure/stats"

// WindowsPerPair is how many windows of each side a pair has, in turn with the other side's: an even number, so that both come first equally often.
const WindowsPerPair = 12

// Mean joins the pairs: their mean without the lowest and the highest tenth, since a launch that went astray must not decide. Within a pair, windows
// that were disturbed have been left out already.
func Mean(values []float64) stats.Trimmed { return stats.TrimmedMean(values, trimmed) }

// Middle joins the windows of a pair: the mean of the logarithms of their ratios without the lowest and the highest sixth, so that windows
// in which the machine did something else, or in which it stopped doing so, do not count.
func Middle(logs []float64) float64 { return stats.TrimmedMean(logs, 1.0/6).Mean }
