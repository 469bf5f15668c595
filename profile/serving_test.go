package profile_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx/build"
	"tuner/ort/sessionoption"
	"tuner/profile"
	"tuner/search"
	"tuner/spec/knobs"
)

// For random default configurations and candidates, the written configuration has exactly what the
// space reads from the candidate.
func TestConfigurationIsWhatTheSpaceReads(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	applied := 0
	for range 1500 {
		host := hostinfo.Host{GPUs: make([]hostinfo.GPU, random.IntN(3))}
		subject := profile.Subject{Model: build.MLP(), Config: randomConfig(random)}
		space := search.Space{Facts: profile.FactsOf(subject, host)}
		c := randomCandidate(random, space.Facts.Batching)
		config, err := knobs.Apply(subject.Config, c)
		if err != nil { // preferred sizes that do not fit, or an accelerator without its instances
			continue
		}
		applied++
		checkServing(t, c, space.Serving(c), config, space.Facts.GPUs)
	}
	if applied < 750 {
		t.Errorf("only %d configurations were written", applied)
	}
}

func checkServing(t *testing.T, c search.Candidate, want search.Serving, config *modelconfig.Config, gpus int) {
	t.Helper()
	batcher := config.GetDynamicBatching()
	got := search.Serving{
		MaxBatch: int(config.GetMaxBatchSize()), Dynamic: batcher != nil, Instances: modelconfig.Instances(config, gpus), Devices: want.Devices,
		Delay: time.Duration(batcher.GetMaxQueueDelayMicroseconds()) * time.Microsecond,
	}
	for _, size := range batcher.GetPreferredBatchSize() {
		got.Preferred = append(got.Preferred, int(size))
	}
	options, err := modelconfig.ORTOptions(config)
	if err != nil {
		t.Fatal(err)
	}
	got.Threads = options.Settings.Whole(sessionoption.IntraOpThreads)
	isSame := got.MaxBatch == want.MaxBatch && got.Dynamic == want.Dynamic && slices.Equal(got.Preferred, want.Preferred) &&
		got.Delay == want.Delay && got.Instances == want.Instances && got.Threads == want.Threads
	if !isSame {
		text, _ := modelconfig.Format(config)
		t.Errorf("candidate %q is read as %+v, written is %+v:\n%s", c.Key(), want, got, text)
	}
}

// randomConfig makes a complete configuration, with or without batches and a dynamic batcher.
func randomConfig(random *rand.Rand) *modelconfig.Config {
	group := &configpb.ModelInstanceGroup{Name: "m_0", Kind: configpb.ModelInstanceGroup_KIND_CPU, Count: int32(1 + random.IntN(4))}
	if random.IntN(3) == 0 {
		group.Kind = configpb.ModelInstanceGroup_KIND_GPU
	}
	config := &modelconfig.Config{
		Name: "m", Platform: "onnxruntime_onnx", Backend: "onnxruntime", DefaultModelFilename: "model.onnx",
		VersionPolicy: &configpb.ModelVersionPolicy{PolicyChoice: &configpb.ModelVersionPolicy_Latest_{Latest: &configpb.ModelVersionPolicy_Latest{NumVersions: 1}}},
		Input:         []*configpb.ModelInput{{Name: "x", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{8}}},
		Output:        []*configpb.ModelOutput{{Name: "y", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{2}}},
		MaxBatchSize:  int32([]int{0, 1, 4, 8}[random.IntN(4)]),
		InstanceGroup: []*configpb.ModelInstanceGroup{group},
	}
	if config.MaxBatchSize > 0 && random.IntN(2) == 0 {
		batcher := &configpb.ModelDynamicBatching{MaxQueueDelayMicroseconds: uint64(random.IntN(3) * 100)}
		if random.IntN(2) == 0 {
			batcher.PreferredBatchSize = []int32{config.MaxBatchSize}
		}
		config.SchedulingChoice = &configpb.ModelConfig_DynamicBatching{DynamicBatching: batcher}
	}
	if random.IntN(2) == 0 {
		config.Parameters = map[string]*configpb.ModelParameter{"intra_op_thread_count": {StringValue: "3"}}
	}
	return config
}

// randomCandidate sets some knobs of batcher, instances and threads, and the execution provider.
func randomCandidate(random *rand.Rand, batches bool) search.Candidate {
	var c search.Candidate
	set := func(knob string, values ...search.Value) {
		if random.IntN(2) == 0 {
			c = c.With(knob, values[random.IntN(len(values))])
		}
	}
	set(search.KnobIntraOpThreads, "0", "1", "2")
	set(search.KnobInstanceCount, "1", "2", "5")
	set(search.KnobExecutionProvider, "cpu", "cuda", "openvino")
	if batches {
		set(search.KnobMaxBatchSize, "0", "1", "4", "8", "32")
		set(search.KnobPreferredBatchSize, "[]", "[2,4]", "[8]")
		set(search.KnobMaxQueueDelay, "0us", "50us", "2ms")
	}
	return c
}
