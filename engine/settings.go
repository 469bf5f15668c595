package engine

import (
	"time"

	"tuner/engine/scheduler"
	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// settings translates the batching part of a configuration.
func settings(c *modelconfig.Config) scheduler.Settings {
	d := c.GetDynamicBatching()
	if d == nil || c.GetMaxBatchSize() < 1 {
		return scheduler.Settings{}
	}
	set := scheduler.Settings{
		Dynamic:          true,
		MaxBatch:         int(c.GetMaxBatchSize()),
		Delay:            microseconds(d.GetMaxQueueDelayMicroseconds()),
		PreserveOrdering: d.GetPreserveOrdering(),
		Levels:           d.GetPriorityLevels(),
		DefaultLevel:     d.GetDefaultPriorityLevel(),
		DefaultPolicy:    policy(d.GetDefaultQueuePolicy()),
		PolicyOfLevel:    map[uint64]scheduler.Policy{},
	}
	for _, n := range d.GetPreferredBatchSize() {
		set.Preferred = append(set.Preferred, int(n))
	}
	for level, p := range d.GetPriorityQueuePolicy() {
		set.PolicyOfLevel[level] = policy(p)
	}
	return set
}

// policy translates a queue policy; nil means no bounds.
func policy(p *configpb.ModelQueuePolicy) scheduler.Policy {
	return scheduler.Policy{
		Timeout:       microseconds(p.GetDefaultTimeoutMicroseconds()),
		Postpone:      p.GetTimeoutAction() == configpb.ModelQueuePolicy_DELAY,
		AllowOverride: p.GetAllowTimeoutOverride(),
		MaxQueue:      int(p.GetMaxQueueSize()),
	}
}

func microseconds(n uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(n, most)) * time.Microsecond
}
