package measure

// Text returns the meaning of a flag for people. For an unknown flag it returns the name.
func (f Flag) Text() string {
	switch f {
	case FlagLittle:
		return "throughput × latency differs from the concurrency by more than 3 %"
	case FlagErrors:
		return "requests failed"
	case FlagClientCPU:
		return "the load generator was short of CPU"
	case FlagSteal:
		return "the hypervisor took more than 1 % of the CPU time"
	case FlagForeign:
		return "other processes used more than 10 % of the CPU time"
	case FlagForeignGPU:
		return "other programs computed on the engine's GPU for more than 10 % of the time"
	case FlagThrottled:
		return "the CPU quota stopped engine or clients for more than 1 % of the CPU time"
	case FlagUnsteady:
		return "throughput still had a trend after warm-up"
	case FlagFew:
		return "too few requests for the constrained percentile"
	case FlagLate:
		return "the load generator sent requests late: 1 % by a millisecond, or half of them by 1 % of the median latency"
	case FlagDropped:
		return "requests were not sent, since too many were in flight"
	case FlagBacklog:
		return "requests come faster than they are answered: those in flight grew by more than 10 % of those scheduled"
	case FlagSendDelay:
		return "the load generator took more than 5 % of the time from one sending to the next"
	case FlagTimeout:
		return "requests were not answered in time"
	case FlagFrequency:
		return "the cores' clock differs from the first window's by more than 3 %"
	case FlagCorrelated:
		return "throughput wanders: the interval may be too narrow"
	}
	return string(f)
}

// IsOfMachine reports whether a flag concerns the machine, and not load or server.
func (f Flag) IsOfMachine() bool {
	switch f {
	case FlagSteal, FlagForeign, FlagForeignGPU, FlagThrottled, FlagFrequency:
		return true
	}
	return false
}
