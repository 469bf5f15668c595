package modelconfig

// SameButBatching reports whether two complete configurations differ at most in batching.
func SameButBatching(a, b *Config) bool {
	if (a.GetMaxBatchSize() > 0) != (b.GetMaxBatchSize() > 0) {
		return false // shapes have another meaning then
	}
	if a.GetMaxBatchSize() != b.GetMaxBatchSize() && (len(b.GetModelWarmup()) > 0 || b.GetSequenceBatching() != nil) {
		return false // a sample may be too large now, and it is the number of slots for sequences
	}
	return Equal(withoutBatching(a), withoutBatching(b))
}

func withoutBatching(c *Config) *Config {
	out := Clone(c)
	out.MaxBatchSize = 0
	if out.GetDynamicBatching() != nil {
		out.SchedulingChoice = nil
	}
	return out
}

// SameButInstances reports whether two complete configurations differ at most in instances and version
// policy.
func SameButInstances(a, b *Config) bool { return Equal(withoutInstances(a), withoutInstances(b)) }

func withoutInstances(c *Config) *Config {
	out := Clone(c)
	out.InstanceGroup, out.VersionPolicy = nil, nil
	return out
}
