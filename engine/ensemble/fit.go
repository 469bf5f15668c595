package ensemble

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// tensor describes a tensor of the ensemble, by an input, an output or a step.
type tensor struct {
	model    string // the model whose configuration has it
	dataType configpb.DataType
	dims     []int64
	full     []int64 // with the batch dimension, if the model batches
}

func newTensor(model string, batched bool, t configpb.DataType, dims []int64, reshape *configpb.ModelTensorReshape) tensor {
	if reshape != nil {
		dims = reshape.GetShape()
	}
	full := dims
	if batched {
		full = append([]int64{-1}, dims...)
	}
	return tensor{model, t, dims, full}
}

// Part is a model of an ensemble. ID is the text for it in messages.
type Part struct {
	ID       string
	Config   *modelconfig.Config // complete
	Requests int                 // that a request to it makes in all, itself included; 1 for a model without steps
}

// Check checks that the models of an ensemble fit together, and that a request makes at most MaxRequests.
// e is the ensemble itself. models has those of its steps by name; all of them must be there.
func Check(e Part, models map[string]Part) error {
	c := e.Config
	known := map[string]tensor{}
	batched := c.GetMaxBatchSize() > 0
	requests := 1
	for _, in := range c.GetInput() {
		known[in.GetName()] = newTensor(e.ID, batched, in.GetDataType(), in.GetDims(), in.GetReshape())
	}
	for _, out := range c.GetOutput() {
		known[out.GetName()] = newTensor(e.ID, batched, out.GetDataType(), out.GetDims(), out.GetReshape())
	}
	for _, step := range c.GetEnsembleScheduling().GetStep() {
		part := models[step.GetModelName()]
		m := part.Config
		if m.GetMaxBatchSize() != 0 && m.GetMaxBatchSize() < c.GetMaxBatchSize() {
			return fmt.Errorf("ensemble %s allows maximum batch size %d, but it contains model %s which only allows maximum batch size to be %d",
				e.ID, c.GetMaxBatchSize(), step.GetModelName(), m.GetMaxBatchSize())
		}
		s := fitting{ensemble: e.ID, model: part.ID, batched: m.GetMaxBatchSize() > 0, known: known}
		if err := s.inputs(step, m); err != nil {
			return err
		}
		if err := s.outputs(step, m); err != nil {
			return err
		}
		if requests += part.Requests; requests > MaxRequests {
			return fmt.Errorf("a request to ensemble %s would make more than %d requests to its models and to theirs, which is the most that this engine allows", e.ID, MaxRequests)
		}
	}
	return nil
}

// MaxRequests bounds the requests that one to an ensemble makes in all: to its models, and to theirs if these
// are ensembles. 30 ensembles of which each calls the next one twice would make 2^30 otherwise, all
// at once.
const MaxRequests = 4096

// fitting is the check of one step.
type fitting struct {
	ensemble, model string
	batched         bool
	known           map[string]tensor
}

func (f *fitting) inputs(step *configpb.ModelEnsembling_Step, m *modelconfig.Config) error {
	names := map[string]bool{}
	for _, in := range m.GetInput() {
		names[in.GetName()] = true
	}
	for _, name := range sortedKeys(step.GetInputMap()) {
		if !names[name] {
			return fmt.Errorf("in ensemble %s, ensemble tensor %s is mapping to non-existing input %s in model %s", f.ensemble, step.GetInputMap()[name], name, f.model)
		}
	}
	for _, in := range m.GetInput() {
		to, mapped := step.GetInputMap()[in.GetName()]
		switch {
		case mapped:
			// dims and not reshape, since a step's request has the shapes of requests
			if err := f.agree(to, newTensor(f.model, f.batched, in.GetDataType(), in.GetDims(), nil)); err != nil {
				return err
			}
		case !in.GetOptional():
			return fmt.Errorf("in ensemble %s, input %s in model %s is not mapped to any ensemble tensors", f.ensemble, in.GetName(), f.model)
		}
	}
	return nil
}

func (f *fitting) outputs(step *configpb.ModelEnsembling_Step, m *modelconfig.Config) error {
	for _, name := range sortedKeys(step.GetOutputMap()) {
		to := step.GetOutputMap()[name]
		i := slices.IndexFunc(m.GetOutput(), func(out *configpb.ModelOutput) bool { return out.GetName() == name })
		if i < 0 {
			return fmt.Errorf("in ensemble %s, ensemble tensor %s is mapped from non-existing output %s in model %s", f.ensemble, to, name, step.GetModelName())
		}
		out := m.GetOutput()[i]
		if err := f.agree(to, newTensor(f.model, f.batched, out.GetDataType(), out.GetDims(), nil)); err != nil {
			return err
		}
	}
	return nil
}

// agree compares a tensor in a step's configuration with the one known so far. The first one decides.
func (f *fitting) agree(name string, t tensor) error {
	was, found := f.known[name]
	if !found {
		f.known[name] = t
		return nil
	}
	if was.dataType != t.dataType {
		return fmt.Errorf("in ensemble %s, ensemble tensor %s: inconsistent data type: %s is inferred from model %s while %s is inferred from model %s",
			f.ensemble, name, was.dataType, was.model, t.dataType, t.model)
	}
	if !compatible(was.dims, t.dims) && !compatible(was.full, t.full) {
		return fmt.Errorf("in ensemble %s, ensemble tensor %s: inconsistent shape: %s is inferred from model %s while %s is inferred from model %s",
			f.ensemble, name, shapeText(was.full), was.model, shapeText(t.full), t.model)
	}
	return nil
}

// compatible reports whether two shapes are equal, where -1 is equal to any size.
func compatible(a, b []int64) bool {
	return slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x == -1 || y == -1 })
}

// Reshape returns the shape in which a tensor goes to a model, or out of the ensemble. want is its
// shape there without the batch dimension, batches whether there is one. isBatched says whether the
// tensor comes from a request with a batch dimension. As in Triton, a batch dimension is added or
// dropped only between one that batches and one that does not, and only if it is 1.
func Reshape(want []int64, batches bool, shape []int64, isBatched bool) []int64 {
	switch {
	case batches && !isBatched && compatible(want, shape):
		return append([]int64{1}, shape...)
	case !batches && isBatched && !compatible(want, shape) && len(shape) > 0 && shape[0] == 1:
		return shape[1:]
	}
	return shape
}

// shapeText formats a shape as Triton does: [-1,16].
func shapeText(shape []int64) string {
	var texts []string
	for _, d := range shape {
		texts = append(texts, strconv.FormatInt(d, 10))
	}
	return "[" + strings.Join(texts, ",") + "]"
}
