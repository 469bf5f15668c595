package profile

import (
	"math"

	"tuner/internal/hostinfo"
	"tuner/model/mix"
	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec/knobs"
)

// FactsOf returns the facts about model and machine for the space's folding rules, without
// execution providers and variants.
func FactsOf(s Subject, host hostinfo.Host) search.Facts {
	gpus := groupGPUs(s.Config, len(host.GPUs))
	var padded map[search.Value][]search.Kind
	for value, m := range s.Padded {
		if padded == nil {
			padded = map[search.Value][]search.Kind{}
		}
		padded[value] = searched(m)
	}
	base := knobs.Base(s.Config)
	if padded != nil {
		base[search.KnobPadding] = search.NoPadding
	}
	return search.Facts{
		Cores:            int(math.Ceil(host.CPU.Usable())),
		Batching:         Signature(s.Model).CanBatch() && s.Config.GetMaxBatchSize() > 0,
		BaseMaxBatchSize: int(s.Config.GetMaxBatchSize()),
		BaseInstances:    max(1, modelconfig.Instances(s.Config, gpus)),
		Base:             base,
		GPUs:             gpus,
		Trace:            sampled(s.Trace),
		IsForeign:        len(s.Files) > 0 && s.Files[0].Source.Path == "",
		Mix:              searched(s.Mix),
		Padded:           padded,
	}
}

// searched returns the kinds of a mix as the search knows them.
func searched(m mix.Mix) []search.Kind {
	var kinds []search.Kind
	for _, k := range m {
		kinds = append(kinds, search.Kind{Share: k.Share, Elements: k.Elements()})
	}
	return kinds
}

// groupGPUs returns the number of GPUs of an instance group on GPUs: those in the configuration, or
// all of the machine.
func groupGPUs(config *modelconfig.Config, machine int) int {
	if groups := config.GetInstanceGroup(); len(groups) == 1 && len(groups[0].GetGpus()) > 0 {
		return len(groups[0].GetGpus())
	}
	return machine
}
