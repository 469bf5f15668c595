package modelconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// RefuseUnsupported reports all features of a configuration that the bundled engine does not have.
// A real Triton may serve it.
func RefuseUnsupported(c *Config) error {
	var errs []error
	add := func(field, instead string) {
		errs = append(errs, fmt.Errorf("model %q uses %s, which this engine does not support; %s", c.GetName(), field, instead))
	}
	refuseSequences(c, add)
	if c.GetModelTransactionPolicy().GetDecoupled() {
		add("model_transaction_policy.decoupled", "an ONNX model gives one response for each request")
	}
	refuseRagged(c, add)
	refuseTensors(c, add)
	for i, g := range c.GetInstanceGroup() {
		if len(g.GetSecondaryDevices()) > 0 {
			add(fmt.Sprintf("instance_group[%d].secondary_devices", i), "an instance has one device")
		}
		if g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU && len(c.GetCcModelFilenames()) > 0 {
			add(fmt.Sprintf("cc_model_filenames for instance_group[%d]", i), "name the file for its GPUs in default_model_filename")
		}
	}
	refuseSharing(c, add)
	if len(c.GetModelRepositoryAgents().GetAgents()) > 0 {
		add("model_repository_agents", "no agent is loaded")
	}
	refuseEntries(c, add)
	refuseOptions(c, add)
	return errors.Join(errs...)
}

// refuseSharing adds the groups on GPUs of a model whose instances share a session.
func refuseSharing(c *Config, add func(field, instead string)) {
	o, err := ORTOptions(c)
	if err != nil || o.Settings.Value(sessionoption.ShareSession) != sessionoption.On {
		return // an error is reported when the session is made
	}
	for i, g := range c.GetInstanceGroup() {
		if g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU {
			add(fmt.Sprintf("parameters[%q] with instance_group[%d] on a GPU", sessionoption.Of(sessionoption.ShareSession).Parameter, i),
				"leave the parameter out: instances on a GPU have a session each")
		}
	}
}

// refuseSequences adds unsupported features of sequences.
func refuseSequences(c *Config, add func(field, instead string)) {
	for i, state := range c.GetSequenceBatching().GetState() {
		if state.GetUseGrowableMemory() {
			add(fmt.Sprintf("sequence_batching.state[%d].use_growable_memory", i), "leave it out: states may grow in memory that is allocated for each step")
		}
	}
}

// refuseRagged adds the cases in which requests of different shapes share no batch.
func refuseRagged(c *Config, add func(field, instead string)) {
	if len(c.GetBatchInput())+len(c.GetBatchOutput()) > 0 && c.GetSequenceBatching() != nil {
		add("batch_input or batch_output with sequence_batching", "give the model these tensors as inputs")
	}
	sources := func(field string, names []string) {
		for _, in := range c.GetInput() {
			if in.GetOptional() && HasFile(c) && slices.Contains(names, in.GetName()) {
				add(fmt.Sprintf("%s of the optional input %q", field, in.GetName()), "a request may lack the shape that it is made of")
			}
		}
	}
	for i, b := range c.GetBatchInput() {
		sources(fmt.Sprintf("batch_input[%d]", i), b.GetSourceInput())
	}
	for i, in := range c.GetInput() {
		if in.GetAllowRaggedBatch() && HasFile(c) && c.GetSequenceBatching() != nil {
			add(fmt.Sprintf("input[%d].allow_ragged_batch (%q) with sequence_batching", i, in.GetName()), "pad the requests to one shape")
		}
	}
	for i, b := range c.GetBatchOutput() {
		sources(fmt.Sprintf("batch_output[%d]", i), b.GetSourceInput())
		for _, out := range c.GetOutput() {
			if slices.Contains(b.GetTargetName(), out.GetName()) && out.GetDataType() == configpb.DataType_TYPE_STRING {
				add(fmt.Sprintf("batch_output[%d] of strings (%q)", i, out.GetName()), "have the model answer with numbers")
			}
		}
	}
}

// refuseEntries adds the session entries of ONNX Runtime that may not be set.
func refuseEntries(c *Config, add func(field, instead string)) {
	for _, key := range slices.Sorted(maps.Keys(c.GetParameters())) {
		field := fmt.Sprintf("parameters[%q]", key)
		if sessionoption.NamesFile(key) {
			add(field, "no file outside of the model's folder is read or written")
		}
		if option, overrides := sessionoption.OfEntry(key); overrides {
			add(field, fmt.Sprintf("set %s, which it would override", option.Field()))
		}
	}
}

// refuseOptions adds the options of execution providers that may not be set.
func refuseOptions(c *Config, add func(field, instead string)) {
	accelerators := c.GetOptimization().GetExecutionAccelerators()
	for _, a := range slices.Concat(accelerators.GetGpuExecutionAccelerator(), accelerators.GetCpuExecutionAccelerator()) {
		for _, key := range slices.Sorted(maps.Keys(a.GetParameters())) {
			field := fmt.Sprintf("execution accelerator %q, parameter %q", a.GetName(), key)
			if provider.OpensFile(key, a.GetParameters()[key]) {
				add(field, "caches lie below the server's working folder, and no other file is read or written")
			}
			if provider.IsAddress(key) {
				add(field, "no address in the server's memory is taken from a configuration")
			}
		}
	}
}

// refuseTensors adds unsupported features of single inputs and outputs.
func refuseTensors(c *Config, add func(field, instead string)) {
	for i, in := range c.GetInput() {
		if in.GetIsShapeTensor() {
			add(fmt.Sprintf("input[%d].is_shape_tensor (%q)", i, in.GetName()), "only TensorRT models have shape tensors")
		}
	}
	for i, out := range c.GetOutput() {
		if out.GetIsShapeTensor() {
			add(fmt.Sprintf("output[%d].is_shape_tensor (%q)", i, out.GetName()), "only TensorRT models have shape tensors")
		}
	}
}
