package profile

import (
	"math"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec"
)

// FactsOf collects what the folding rules of the space need to know of model and machine, but for the execution providers and
// the variants.
func FactsOf(s Subject, host hostinfo.Host) search.Facts {
	gpus := groupGPUs(s.Config, len(host.GPUs))
	return search.Facts{
		Cores:            int(math.Ceil(host.CPU.Usable())),
		Batching:         Signature(s.Model).CanBatch() && s.Config.GetMaxBatchSize() > 0,
		BaseMaxBatchSize: int(s.Config.GetMaxBatchSize()),
		BaseInstances:    max(1, modelconfig.Instances(s.Config, gpus)),
		Base:             spec.Base(s.Config),
		GPUs:             gpus,
	}
}

// groupGPUs is how many GPUs an instance group on GPUs is on: those that the configuration lists, else all of the machine's.
func groupGPUs(config *modelconfig.Config, machine int) int {
	if groups := config.GetInstanceGroup(); len(groups) == 1 && len(groups[0].GetGpus()) > 0 {
		return len(groups[0].GetGpus())
	}
	return machine
}
