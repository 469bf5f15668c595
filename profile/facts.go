package profile

import (
	"math"

	"tuner/hostinfo"
	"tuner/search"
	"tuner/spec"
)

// FactsOf collects what the folding rules of the space need to know of model and machine, but for the execution providers and
// the variants.
func FactsOf(s Subject, cpu hostinfo.CPU) search.Facts {
	return search.Facts{
		Cores:            int(math.Ceil(cpu.Usable())),
		Batching:         Signature(s.Model).CanBatch() && s.Config.GetMaxBatchSize() > 0,
		BaseMaxBatchSize: int(s.Config.GetMaxBatchSize()),
		BaseInstances:    instances(s.Config),
		Base:             spec.Base(s.Config),
	}
}
