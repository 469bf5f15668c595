package modelconfig

import (
	"errors"
	"path/filepath"
	"strings"

	"tuner/model/modelconfig/configpb"
)

// DefaultMaxBatchSize is the batch size that auto-completion gives a model that can batch, unless
// the server has another default.
const DefaultMaxBatchSize = 4

// sequenceIdleDefault is the default time in microseconds that a sequence may be idle.
const sequenceIdleDefault = 1_000_000

// CompleteOptions has the facts that auto-completion needs besides the configuration.
type CompleteOptions struct {
	// DirName is the name of the model's folder.
	DirName string
	// HasModelFile means that the first version folder has a file or folder named model.onnx. It
	// selects the backend if the configuration does not.
	HasModelFile bool
	// IO is the model's signature. nil leaves inputs, outputs, batch size and scheduler unchanged.
	IO *ModelIO
	// DefaultMaxBatchSize replaces the constant of that name. 0 keeps it, and negative values mean
	// no batching.
	DefaultMaxBatchSize int
	// GPUs is the number of the server's GPUs. Their ids begin at 0.
	GPUs int
	// DisableAutoComplete skips what needs the model, like Triton's flag of that name.
	DisableAutoComplete bool
}

// PollError has the reason why a model is refused before it is loaded. Triton only answers that it
// could not poll the repository, and logs the reason.
type PollError struct{ Reason error }

func (e *PollError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *PollError) Unwrap() error { return e.Reason }

// Complete returns the configuration with which a Triton server would run c. It follows Triton's
// two steps. First the server fills in name, backend and defaults and checks them; failures are a
// *PollError. Then the backend fills in what it learns from the model. All error texts are
// Triton's, and all are invalid arguments in its terms. Complete is idempotent.
func Complete(c *Config, o CompleteOptions) (*Config, error) {
	out := Clone(c)
	if err := fillServerSide(out, o); err != nil {
		return nil, &PollError{err}
	}
	normalize(out)
	if err := checkPolled(out, o); err != nil {
		return nil, &PollError{err}
	}
	if out.GetEnsembleScheduling() != nil {
		// as Triton, which finds out whether its models are decoupled: none is, here
		out.ModelTransactionPolicy = &configpb.ModelTransactionPolicy{}
	}
	if out.GetBackend() != Backend && out.GetBackend() != IdentityBackend && out.GetEnsembleScheduling() == nil {
		return nil, refuse("unable to find backend library for backend '%s', try specifying runtime on the model configuration.", out.GetBackend())
	}
	if err := checkRuntime(out); err != nil {
		return nil, err
	}
	if err := completeInstanceGroups(out, o.GPUs); err != nil {
		return nil, err
	}
	if o.IO != nil && !o.DisableAutoComplete && HasFile(out) {
		if err := fillFromModel(out, *o.IO, o.DefaultMaxBatchSize); err != nil {
			return nil, err
		}
		normalize(out)
	}
	if err := Validate(out); err != nil {
		return nil, err
	}
	return out, nil
}

// checkRuntime refuses a model that names another library than its backend's, which could be any code. Here
// backends are part of the program, so that there is no other one.
func checkRuntime(c *Config) error {
	library := c.GetRuntime()
	switch {
	case library == "" || library == "libtriton_"+c.GetBackend()+".so":
		return nil
	case !filepath.IsLocal(library):
		return refuse("backend library name '%s' escapes backend directory '%s', for model '%s', check model config runtime field", library, c.GetBackend(), c.GetName())
	default:
		return refuse("unable to find backend library '%s' for model '%s', searched: the backends of this program", library, c.GetName())
	}
}

// otherBackends has the backends of platforms that are older than the backend field, without ONNX
// Runtime's.
var otherBackends = map[string]string{
	"tensorflow_graphdef":   "tensorflow",
	"tensorflow_savedmodel": "tensorflow",
	"tensorrt_plan":         "tensorrt",
	"pytorch_libtorch":      "pytorch",
}

// fillServerSide fills in name, backend, platform and file name.
func fillServerSide(c *Config, o CompleteOptions) error {
	if c.GetName() == "" {
		c.Name = o.DirName
	}
	unspecified := c.GetBackend() == "" && c.GetPlatform() == "" && c.GetDefaultModelFilename() == ""
	switch {
	case c.GetBackend() != "":
	case otherBackends[c.GetPlatform()] != "":
		c.Backend = otherBackends[c.GetPlatform()]
	case c.GetPlatform() == Platform, c.GetDefaultModelFilename() == DefaultModelFilename,
		unspecified && o.HasModelFile:
		c.Backend = Backend
	case unspecified:
		return fillFromName(c, o.DirName)
	}
	if c.GetBackend() == Backend {
		c.Platform = orDefault(c.GetPlatform(), Platform)
		c.DefaultModelFilename = orDefault(c.GetDefaultModelFilename(), DefaultModelFilename)
	}
	return nil
}

// fillFromName takes the backend from a model name of the form model.backend, as Triton does if
// nothing else names it.
func fillFromName(c *Config, name string) error {
	_, backend, found := strings.Cut(name, ".")
	if !found {
		return refuse("Invalid model name: Could not determine backend for model '%s' with no backend in model configuration. "+
			"Expected model name of the form 'model.<backend_name>'.", name)
	}
	c.Backend = backend
	c.DefaultModelFilename = "model." + backend
	return nil
}

func orDefault(value, byDefault string) string {
	if value == "" {
		return byDefault
	}
	return value
}

// normalize sets the defaults that the server applies to every model. It runs again after the
// backend's step, which may have added a batcher.
func normalize(c *Config) {
	if c.GetVersionPolicy() == nil {
		latest := &configpb.ModelVersionPolicy_Latest{NumVersions: 1}
		c.VersionPolicy = &configpb.ModelVersionPolicy{
			PolicyChoice: &configpb.ModelVersionPolicy_Latest_{Latest: latest},
		}
	}
	if b := c.GetDynamicBatching(); b != nil && len(b.GetPreferredBatchSize()) == 0 && c.GetMaxBatchSize() > 0 {
		b.PreferredBatchSize = []int32{c.GetMaxBatchSize()}
	}
	if s := c.GetSequenceBatching(); s != nil {
		normalizeSequence(s, c.GetMaxBatchSize())
	}
	if c.GetEnsembleScheduling() != nil {
		return
	}
	if c.GetOptimization() == nil {
		c.Optimization = &configpb.ModelOptimizationPolicy{}
	}
	if c.Optimization.GetInputPinnedMemory() == nil {
		c.Optimization.InputPinnedMemory = &configpb.ModelOptimizationPolicy_PinnedMemoryBuffer{Enable: true}
	}
	if c.Optimization.GetOutputPinnedMemory() == nil {
		c.Optimization.OutputPinnedMemory = &configpb.ModelOptimizationPolicy_PinnedMemoryBuffer{Enable: true}
	}
}

func normalizeSequence(s *configpb.ModelSequenceBatching, maxBatchSize int32) {
	if s.GetMaxSequenceIdleMicroseconds() == 0 {
		s.MaxSequenceIdleMicroseconds = sequenceIdleDefault
	}
	if o := s.GetOldest(); o != nil && len(o.GetPreferredBatchSize()) == 0 && maxBatchSize > 0 {
		o.PreferredBatchSize = []int32{maxBatchSize}
	}
}

// checkPolled makes the checks of the server before it reads the model.
func checkPolled(c *Config, o CompleteOptions) error {
	err := checkServerSide(c)
	if o.DisableAutoComplete {
		err = errors.Join(err, checkIO(c))
	}
	if err == nil && o.DirName != "" && c.GetName() != o.DirName {
		err = refuse("unexpected directory name '%s' for model '%s', directory name must equal model name",
			o.DirName, c.GetName())
	}
	return err
}

// fillFromModel is the backend's step. It sets batch size, batcher and the missing side of the
// signature. A configuration with both sides does not change, so it stays without batching unless
// it requests it.
func fillFromModel(c *Config, io ModelIO, defaultMaxBatchSize int) error {
	hasInputs := len(c.GetInput())+len(c.GetBatchInput()) > 0
	hasOutputs := len(c.GetOutput()) > 0
	if hasInputs && hasOutputs {
		return nil
	}
	if err := fillBatching(c, io, defaultMaxBatchSize); err != nil {
		return err
	}
	if !hasInputs {
		for _, t := range io.Inputs {
			dims, reshape := configDims(t, c.GetMaxBatchSize())
			c.Input = append(c.Input, &configpb.ModelInput{
				Name: t.Name, DataType: t.DataType, Dims: dims, Reshape: reshape,
			})
		}
	}
	if !hasOutputs {
		for _, t := range io.Outputs {
			dims, reshape := configDims(t, c.GetMaxBatchSize())
			c.Output = append(c.Output, &configpb.ModelOutput{
				Name: t.Name, DataType: t.DataType, Dims: dims, Reshape: reshape,
			})
		}
	}
	return nil
}

func fillBatching(c *Config, io ModelIO, defaultMaxBatchSize int) error {
	if !io.CanBatch() {
		if c.GetMaxBatchSize() != 0 {
			return refuse("autofill failed for model '%s': model does not support batching while non-zero max_batch_size is specified", c.GetName())
		}
		return nil
	}
	if defaultMaxBatchSize == 0 {
		defaultMaxBatchSize = DefaultMaxBatchSize
	}
	if c.GetMaxBatchSize() == 0 {
		c.MaxBatchSize = int32(max(defaultMaxBatchSize, 0))
	}
	if c.GetMaxBatchSize() > 1 && c.GetSchedulingChoice() == nil {
		c.SchedulingChoice = &configpb.ModelConfig_DynamicBatching{
			DynamicBatching: &configpb.ModelDynamicBatching{},
		}
	}
	return nil
}

// configDims returns a model's shape in the form of a configuration: without the batch dimension if
// it batches. An empty shape becomes one element. If the batch dimension remains, a reshape to an
// empty shape is added.
func configDims(t Tensor, maxBatchSize int32) ([]int64, *configpb.ModelTensorReshape) {
	dims := t.Dims
	if maxBatchSize > 0 {
		dims = dims[1:]
	}
	switch {
	case len(dims) > 0:
		return append([]int64(nil), dims...), nil
	case maxBatchSize > 0:
		return []int64{1}, &configpb.ModelTensorReshape{}
	default:
		return []int64{1}, nil
	}
}
