// Package identity is Triton's identity backend: a model without a file that returns its inputs as
// its outputs. INPUT<n> becomes OUTPUT<n>, of any type and shape. Triton's own tests are made of such
// models.
//
// It stands beside engine/onnxruntime, behind engine.Backend. It computes nothing, so it is of no use
// to those who measure models. Of the original's parameters it does not have those for custom trace
// spans, and it counts no metric of its own.
package identity

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Beside returns a backend that serves identity models itself, and all others by other.
func Beside(other engine.Backend) engine.Backend { return &backend{other} }

type backend struct{ other engine.Backend }

// NewSession makes an instance. Without a file the configuration is all that a model has.
func (b *backend) NewSession(ctx context.Context, files engine.ModelFiles, config *modelconfig.Config, in engine.Instance) (engine.Session, error) {
	if config.GetBackend() != modelconfig.IdentityBackend {
		return b.other.NewSession(ctx, files, config, in)
	}
	if err := check(config); err != nil {
		return nil, err
	}
	s := &session{config: config, optional: map[string]*configpb.ModelInput{}}
	for _, in := range config.GetInput() {
		if in.GetOptional() {
			s.optional[in.GetName()] = in
		}
	}
	load, err := parameter(config, "creation_delay_sec")
	if err == nil {
		err = s.setDelay(in.Number)
	}
	if err == nil {
		s.traced, err = newTracing(config)
	}
	if err != nil || in.Number > 0 || load == 0 {
		return s, err
	}
	select {
	case <-time.After(time.Duration(load) * time.Second):
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// setDelay sets the time of each execution, as the original does: execute_delay_ms, times the
// multiplier and the number of the instance if there is a multiplier, but at least once.
func (s *session) setDelay(instance int) error {
	delay, errDelay := parameter(s.config, "execute_delay_ms")
	multiplier, errMultiplier := parameter(s.config, "instance_wise_delay_multiplier")
	s.delay = time.Duration(delay*max(1, multiplier*instance)) * time.Millisecond
	return errors.Join(errDelay, errMultiplier)
}

// maxParameter bounds a number in the parameters, so that no product of two overflows a time.
const maxParameter = 1 << 20

// parameter reads a number in the model's parameters. 0: it is not there.
func parameter(c *modelconfig.Config, key string) (int, error) {
	p := c.GetParameters()[key]
	if p == nil {
		return 0, nil
	}
	n, err := strconv.Atoi(p.GetStringValue())
	if err != nil || n < 0 || n > maxParameter {
		return 0, fault.Errorf(fault.InvalidArgument, "cannot load model '%s': parameters[%q] is %q: give a whole number from 0 to %d", c.GetName(), key, p.GetStringValue(), maxParameter)
	}
	return n, nil
}

const inputPrefix, outputPrefix = "INPUT", "OUTPUT"

// check requires an output for each input, of the same number, type and shape. The texts are the
// original's.
func check(c *modelconfig.Config) error {
	if len(c.GetInput()) != len(c.GetOutput()) {
		return refuse("model configuration must have equal input/output pairs")
	}
	inputs := map[string]*configpb.ModelInput{}
	for i, in := range c.GetInput() {
		index, ok := strings.CutPrefix(in.GetName(), inputPrefix)
		if !ok {
			return refuse("expected input name to follow INPUT<index> pattern, got '%s'", in.GetName())
		}
		if out := c.GetOutput()[i].GetName(); !strings.HasPrefix(out, outputPrefix) {
			return refuse("expected output name to follow OUTPUT<index> pattern, got '%s'", out)
		}
		inputs[index] = in
	}
	outputs := slices.SortedFunc(slices.Values(c.GetOutput()), func(a, b *configpb.ModelOutput) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, out := range outputs {
		in := inputs[strings.TrimPrefix(out.GetName(), outputPrefix)]
		switch {
		case in == nil:
			return refuse("expected input and output indices to match")
		case in.GetDataType() != out.GetDataType():
			return refuse("expected input and output datatype to match, got %s and %s", in.GetDataType(), out.GetDataType())
		case !slices.Equal(modelDims(in), modelDims(out)):
			return refuse("expected input and output shape to match, got %s and %s", modelconfig.Shape(modelDims(in)), modelconfig.Shape(modelDims(out)))
		}
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fault.Errorf(fault.InvalidArgument, format, args...)
}

// modelDims returns the dimensions that the backend sees, without the batch dimension.
func modelDims(t interface {
	GetDims() []int64
	GetReshape() *configpb.ModelTensorReshape
}) []int64 {
	if t.GetReshape() != nil {
		return t.GetReshape().GetShape()
	}
	return t.GetDims()
}

// session is one instance of a model.
type session struct {
	config   *modelconfig.Config
	optional map[string]*configpb.ModelInput // by name
	delay    time.Duration                   // of each execution
	traced   tracing
}

// IO returns nothing: the configuration declares the tensors.
func (s *session) IO() modelconfig.ModelIO { return modelconfig.ModelIO{} }

// Close does nothing.
func (s *session) Close() error { return nil }

// ExecuteApart answers each request with copies of its inputs. As the original, it reports the whole
// time as that of the computation.
func (s *session) ExecuteApart(requests []engine.Apart) engine.Result {
	result := engine.Result{Gathered: time.Now()}
	time.Sleep(s.delay)
	for i := range requests {
		s.traced.note(&requests[i])
		s.answer(&requests[i])
	}
	result.Computed = time.Now()
	return result
}

func (s *session) answer(r *engine.Apart) {
	var rows []int64 // the batch dimension, if the model batches
	if s.config.GetMaxBatchSize() > 0 {
		if len(r.Inputs) == 0 {
			r.Err = refuse("out of bounds index 0: request has 0 inputs")
			return
		}
		rows = r.Inputs[0].Shape[:1]
	}
	for _, name := range r.Names {
		input := inputPrefix + strings.TrimPrefix(name, outputPrefix)
		if i := slices.IndexFunc(r.Inputs, func(t engine.Tensor) bool { return t.Name == input }); i >= 0 {
			in := r.Inputs[i]
			r.Outputs = append(r.Outputs, engine.Tensor{Name: name, DataType: in.DataType, Shape: slices.Clone(in.Shape), Data: slices.Clone(in.Data)})
			continue
		}
		out, err := zero(name, s.optional[input], rows)
		if err != nil {
			r.Err = err
			return
		}
		r.Outputs = append(r.Outputs, out)
	}
}

// maxZero bounds an output that takes the place of a missing input, in bytes: it may be far larger
// than its request.
const maxZero = 1 << 28

// zero returns the output for an optional input that a request lacks. Open dimensions are 1.
func zero(name string, in *configpb.ModelInput, rows []int64) (engine.Tensor, error) {
	t := engine.Tensor{Name: name, DataType: in.GetDataType(), Shape: slices.Clone(rows)}
	for _, d := range modelDims(in) {
		t.Shape = append(t.Shape, max(d, 1))
	}
	width := modelconfig.ByteSize(t.DataType)
	if width == 0 {
		width = 4 // strings, all empty
	}
	elements, ok := request.Product(t.Shape)
	if !ok || elements > maxZero/uint64(width) {
		return t, refuse("output '%s' has no input, and would be more than %d bytes of zeros", name, maxZero)
	}
	t.Data = make([]byte, int(elements)*width)
	return t, nil
}

// Execute answers a warm-up.
func (s *session) Execute(b *engine.Batch) (engine.Result, error) {
	r := engine.Apart{Names: b.Outputs}
	for _, in := range b.Inputs {
		r.Inputs = append(r.Inputs, engine.Tensor{Name: in.Name, DataType: in.DataType, Shape: in.Shape, Data: slices.Concat(in.Parts...)})
	}
	result := s.ExecuteApart([]engine.Apart{r})
	return result, nil
}
