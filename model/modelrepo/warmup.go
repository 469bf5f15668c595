package modelrepo

import (
	"fmt"
	"slices"
	"strconv"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Sample is an input of a warm-up request.
type Sample struct {
	modelconfig.Tensor      // with concrete sizes: the whole shape
	Zeros              bool // zeros for floating-point numbers too: random ones are invalid indices
}

// AddWarmup returns c with a warm-up request for each batch size, so that every instance is fast
// from its first real request on. The first dimension of an input is ignored if c batches. Sizes
// above max_batch_size are skipped. Without batching there is one request. The user's own warm-ups
// stay.
func AddWarmup(c *modelconfig.Config, inputs []Sample, batches ...int) (*modelconfig.Config, error) {
	out := modelconfig.Clone(c)
	largest := max(1, int(c.GetMaxBatchSize()))
	for _, batch := range batches {
		name := warmupName(batch)
		exists := slices.ContainsFunc(out.ModelWarmup, func(w *configpb.ModelWarmup) bool { return w.GetName() == name })
		if batch < 1 || batch > largest || exists {
			continue
		}
		w := &configpb.ModelWarmup{
			Name:      name,
			BatchSize: uint32(batch),
			Inputs:    make(map[string]*configpb.ModelWarmup_Input),
		}
		for _, in := range inputs {
			sample, err := warmupInput(c, in)
			if err != nil {
				return nil, err
			}
			w.Inputs[in.Name] = sample
		}
		out.ModelWarmup = append(out.ModelWarmup, w)
	}
	return out, nil
}

// warmupName returns AddWarmup's name of the request for a batch size.
func warmupName(batch int) string { return "batch_" + strconv.Itoa(batch) }

// AddedWarmup returns the last warm-up request that AddWarmup added to c, and nil without one. The
// user's come first.
func AddedWarmup(c *modelconfig.Config) *configpb.ModelWarmup {
	list := c.GetModelWarmup()
	if len(list) == 0 {
		return nil
	}
	if last := list[len(list)-1]; last.GetName() == warmupName(int(last.GetBatchSize())) {
		return last
	}
	return nil
}

// warmupInput uses random floating-point inputs and zeros for all others. Random integers would be
// invalid indices, and random bytes invalid booleans.
func warmupInput(c *modelconfig.Config, in Sample) (*configpb.ModelWarmup_Input, error) {
	dims := in.Dims
	if c.GetMaxBatchSize() > 0 && len(dims) > 0 {
		dims = dims[1:]
	}
	if len(dims) == 0 {
		dims = []int64{1} // a configuration writes a scalar this way
	}
	for _, d := range dims {
		if d < 1 {
			return nil, fmt.Errorf("cannot make a warm-up request for model %q: input %q has shape %s; give it a size for every dimension",
				c.GetName(), in.Name, modelconfig.Shape(in.Dims))
		}
	}
	sample := &configpb.ModelWarmup_Input{DataType: in.DataType, Dims: slices.Clone(dims)}
	sample.InputDataType = &configpb.ModelWarmup_Input_ZeroData{ZeroData: true}
	switch in.DataType {
	case configpb.DataType_TYPE_FP16, configpb.DataType_TYPE_BF16, configpb.DataType_TYPE_FP32, configpb.DataType_TYPE_FP64:
		if in.Zeros {
			break
		}
		sample.InputDataType = &configpb.ModelWarmup_Input_RandomData{RandomData: true}
	}
	return sample, nil
}
