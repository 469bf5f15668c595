// Package batching turns the dynamic batcher of a configuration into settings of the scheduler.
package batching

import (
	"tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Settings converts the batching part of a configuration. As in Triton
// (TritonModel::SetConfiguredScheduler) a model that does not batch may have a dynamic batcher too.
// It joins no requests, but its queue has limits, timeouts and priorities.
func Settings(c *modelconfig.Config) scheduler.Settings {
	d := c.GetDynamicBatching()
	if d == nil {
		return scheduler.Settings{}
	}
	set := scheduler.Settings{
		Dynamic:          true,
		MaxBatch:         max(1, int(c.GetMaxBatchSize())),
		Delay:            request.Microseconds(d.GetMaxQueueDelayMicroseconds()),
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

// policy converts a queue policy. nil means no bounds.
func policy(p *configpb.ModelQueuePolicy) scheduler.Policy {
	return scheduler.Policy{
		Timeout:       request.Microseconds(p.GetDefaultTimeoutMicroseconds()),
		Postpone:      p.GetTimeoutAction() == configpb.ModelQueuePolicy_DELAY,
		AllowOverride: p.GetAllowTimeoutOverride(),
		MaxQueue:      int(p.GetMaxQueueSize()),
	}
}
