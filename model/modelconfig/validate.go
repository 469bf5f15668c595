package modelconfig

import (
	"errors"
	"fmt"

	"tuner/model/modelconfig/configpb"
)

// Validate checks a complete configuration without its model, by Triton's rules and in its words.
// It returns all errors, joined.
func Validate(c *Config) error {
	errs := []error{checkServerSide(c), checkIO(c)}
	return errors.Join(append(errs, checkInstanceGroups(c)...)...)
}

// checkServerSide checks everything except tensors and instance groups.
func checkServerSide(c *Config) error {
	var errs []error
	if c.GetName() == "" {
		errs = append(errs, refuse("model configuration must specify 'name'"))
	}
	if err := checkBackend(c); err != nil {
		errs = append(errs, err)
	}
	if c.GetMaxBatchSize() < 0 {
		errs = append(errs, refuse("'max_batch_size' must be non-negative value for %s", c.GetName()))
	}
	if c.GetVersionPolicy() == nil {
		errs = append(errs, refuse("must specify 'version policy' for %s", c.GetName()))
	}
	errs = append(errs, checkDynamicBatching(c)...)
	errs = append(errs, checkSequenceBatching(c)...)
	if c.GetModelTransactionPolicy().GetDecoupled() && c.GetResponseCache().GetEnable() {
		errs = append(errs, refuse("Response Cache does not currently support model %s with 'decoupled' transaction policy. Please disable the response cache.", c.GetName()))
	}
	return errors.Join(errs...)
}

// ensemblePlatform is the platform of a model that consists of other models.
const ensemblePlatform = "ensemble"

func checkBackend(c *Config) error {
	ensemble := c.GetPlatform() == ensemblePlatform
	switch {
	case c.GetBackend() == "" && !ensemble:
		return refuse("unexpected platform type '%s' for %s", c.GetPlatform(), c.GetName())
	case c.GetBackend() != "" && ensemble:
		return refuse("Ensemble model '%s' must have platform type '%s' and empty backend type", c.GetName(), ensemblePlatform)
	case c.GetBackend() == Backend && c.GetPlatform() != Platform:
		return refuse("unexpected 'platform' and 'backend' pair, got:%s, %s", c.GetPlatform(), c.GetBackend())
	case ensemble && c.GetEnsembleScheduling() == nil:
		return refuse("ensemble scheduling must be set for ensemble %s whose platform is %s", c.GetName(), ensemblePlatform)
	case ensemble && len(c.GetInstanceGroup()) > 0:
		return refuse("instance group should not be specified for ensemble '%s'", c.GetName())
	case ensemble && c.GetOptimization() != nil:
		return refuse("optimization should not be specified for ensemble '%s'", c.GetName())
	case ensemble && len(c.GetModelWarmup()) > 0:
		return refuse("model_warmup can not be specified for ensemble '%s'", c.GetName())
	case !ensemble && c.GetEnsembleScheduling() != nil:
		return refuse("ensemble scheduling cannot be set for model '%s' whose platform is not %s", c.GetName(), ensemblePlatform)
	}
	return nil
}

// maxPriorityLevels limits the queues of a model: each level has its own.
const maxPriorityLevels = 1 << 16

func checkDynamicBatching(c *Config) []error {
	b := c.GetDynamicBatching()
	if b == nil {
		return nil
	}
	errs := checkPreferred("dynamic batching preferred size", c, b.GetPreferredBatchSize())
	levels := b.GetPriorityLevels()
	if levels > maxPriorityLevels {
		errs = append(errs, refuse("dynamic batching has %d priority levels for %s; this engine has %d at most", levels, c.GetName(), maxPriorityLevels))
	}
	if levels != 0 {
		if d := b.GetDefaultPriorityLevel(); d == 0 || d > levels {
			errs = append(errs, refuse("default priority level must be in range [1, %d] for %s", levels, c.GetName()))
		}
		for level := range b.GetPriorityQueuePolicy() {
			if level == 0 || level > levels {
				errs = append(errs, refuse("priority queue policy must have priority level in range [1, %d] for %s", levels, c.GetName()))
				break
			}
		}
	}
	if b.GetPreserveOrdering() {
		errs = append(errs, checkOrdering(c.GetName(), b)...)
	}
	return errs
}

func checkPreferred(what string, c *Config, sizes []int32) []error {
	for _, size := range sizes {
		if size <= 0 {
			return []error{refuse("%s must be positive for %s", what, c.GetName())}
		}
		if size > c.GetMaxBatchSize() {
			return []error{refuse("%s must be <= max batch size for %s", what, c.GetName())}
		}
	}
	return nil
}

// checkOrdering refuses settings with which one request could overtake another.
func checkOrdering(model string, b *configpb.ModelDynamicBatching) []error {
	var errs []error
	if b.GetPriorityLevels() > 1 {
		errs = append(errs, refuse("Only one priority level is allowed when 'preserve_ordering' is true for %s", model))
	}
	delays := func(p *configpb.ModelQueuePolicy) bool {
		return p.GetDefaultTimeoutMicroseconds() != 0 && p.GetTimeoutAction() == configpb.ModelQueuePolicy_DELAY
	}
	delayed := delays(b.GetDefaultQueuePolicy())
	for _, p := range b.GetPriorityQueuePolicy() {
		delayed = delayed || delays(p)
	}
	if delayed {
		errs = append(errs, refuse("Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for %s", model))
	}
	return errs
}

// refuse makes an error in Triton's own words. Clients and tests compare it exactly, including
// capitals and full stops.
func refuse(format string, args ...any) error {
	return fmt.Errorf(format, args...)
}
