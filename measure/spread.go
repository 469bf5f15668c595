package measure

// AssumedSpread is the standard deviation by which a metric's logarithm differs between runs of one
// server on one machine, where nothing has measured it: 2 %. A run's own windows do not show it,
// since they share the machine's speed on that day and the memory layout of few launches.
const AssumedSpread = 0.02
