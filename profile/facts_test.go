package profile_test

import (
	"testing"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/search"
)

// A configuration with max_batch_size 0 has the batch dimension in its dims. Searching batch sizes
// would give only configurations that do not load.
func TestConfigurationDecidesOnBatching(t *testing.T) {
	t.Parallel()
	for size, want := range map[int32]bool{0: false, 4: true} {
		s := profile.Subject{Model: build.MLP(), Config: &modelconfig.Config{MaxBatchSize: size}}
		if got := profile.FactsOf(s, hostinfo.Host{}).Batching; got != want {
			t.Errorf("max_batch_size %d: batching is %t, want %t", size, got, want)
		}
	}
}

// An instance group on GPUs has its count on each listed GPU, or on all of the machine.
func TestInstancesOfGPUs(t *testing.T) {
	t.Parallel()
	host := hostinfo.Host{GPUs: make([]hostinfo.GPU, 4)}
	for name, c := range map[string]struct {
		kind  configpb.ModelInstanceGroup_Kind
		gpus  []int32
		knobs map[string]search.Value
		want  int
	}{
		"on the CPU":        {configpb.ModelInstanceGroup_KIND_CPU, nil, nil, 3},
		"moved to the GPUs": {configpb.ModelInstanceGroup_KIND_CPU, nil, map[string]search.Value{search.KnobExecutionProvider: "tensorrt"}, 12},
		"on all of them":    {configpb.ModelInstanceGroup_KIND_GPU, nil, nil, 12},
		"on two of them":    {configpb.ModelInstanceGroup_KIND_GPU, []int32{0, 1}, nil, 6},
		"one each":          {configpb.ModelInstanceGroup_KIND_GPU, []int32{0, 1}, map[string]search.Value{search.KnobInstanceCount: "1"}, 2},
		"moved to the CPU":  {configpb.ModelInstanceGroup_KIND_GPU, []int32{0, 1}, map[string]search.Value{search.KnobExecutionProvider: "cpu"}, 3},
	} {
		group := &configpb.ModelInstanceGroup{Kind: c.kind, Count: 3, Gpus: c.gpus}
		s := profile.Subject{Model: build.MLP(), Config: &modelconfig.Config{InstanceGroup: []*configpb.ModelInstanceGroup{group}}}
		candidate := search.Candidate{}
		for knob, v := range c.knobs {
			candidate = candidate.With(knob, v)
		}
		facts := profile.FactsOf(s, host)
		if got := facts.Instances(candidate); got != c.want {
			t.Errorf("%s: %d instances, want %d", name, got, c.want)
		}
		facts.Base = nil
		if got := facts.Instances(search.Candidate{}); candidate.IsDefault() && got != c.want {
			t.Errorf("%s: the default has %d instances, want %d", name, got, c.want)
		}
	}
}
