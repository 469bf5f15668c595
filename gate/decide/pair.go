package decide

import "tuner/measure/stats"

// WindowsPerPair is the number of windows of each side in a pair. The sides take turns. The number
// is even, so that both come first equally often.
const WindowsPerPair = 12

// Mean combines the pairs. It returns their mean without the lowest and the highest tenth, so that
// single bad launches do not decide. Within a pair, disturbed windows are left out before.
func Mean(values []float64) stats.Trimmed { return stats.TrimmedMean(values, trimmed) }

// Middle combines the windows of a pair. It returns the mean of the logarithms of their ratios,
// without the lowest and the highest sixth. So windows in which a disturbance of the machine begins
// or ends do not count.
func Middle(logs []float64) float64 { return stats.TrimmedMean(logs, 1.0/6).Mean }
