package modelconfig

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// RefuseUnsupported says which features of a configuration the bundled engine
// does not have, all of them at once; a real Triton may well serve it.
func RefuseUnsupported(c *Config) error {
	var errs []error
	add := func(field, instead string) {
		errs = append(errs, fmt.Errorf("model %q uses %s, which this engine does not support; %s", c.GetName(), field, instead))
	}
	if c.GetEnsembleScheduling() != nil || c.GetPlatform() == ensemblePlatform {
		add("ensemble_scheduling", "serve and tune its models one by one")
	}
	if c.GetSequenceBatching() != nil {
		add("sequence_batching", "only stateless models can be served")
	}
	if c.GetModelTransactionPolicy().GetDecoupled() {
		add("model_transaction_policy.decoupled", "an ONNX model gives one response for each request")
	}
	if len(c.GetBatchInput()) > 0 {
		add("batch_input", "give the model these tensors as inputs")
	}
	if len(c.GetBatchOutput()) > 0 {
		add("batch_output", "outputs are split along the batch dimension")
	}
	refuseTensors(c, add)
	for i, g := range c.GetInstanceGroup() {
		if g.GetRateLimiter() != nil {
			add(fmt.Sprintf("instance_group[%d].rate_limiter", i), "instances take requests as soon as they are idle")
		}
		if len(g.GetSecondaryDevices()) > 0 {
			add(fmt.Sprintf("instance_group[%d].secondary_devices", i), "an instance has one device")
		}
	}
	if len(c.GetModelRepositoryAgents().GetAgents()) > 0 {
		add("model_repository_agents", "no agent is loaded")
	}
	if len(c.GetModelOperations().GetOpLibraryFilename()) > 0 {
		add("model_operations.op_library_filename", "only ONNX Runtime's own operators can be run")
	}
	for _, key := range slices.Sorted(maps.Keys(c.GetParameters())) {
		if namesFile(key) {
			add(fmt.Sprintf("parameters[%q]", key), "no file outside of the model's folder is read or written")
		}
	}
	for _, a := range slices.Concat(c.GetOptimization().GetExecutionAccelerators().GetGpuExecutionAccelerator(), c.GetOptimization().GetExecutionAccelerators().GetCpuExecutionAccelerator()) {
		for _, key := range slices.Sorted(maps.Keys(a.GetParameters())) {
			if opensFile(key, a.GetParameters()[key]) {
				add(fmt.Sprintf("execution accelerator %q, parameter %q", a.GetName(), key), "caches lie below the server's working folder, and no other file is read or written")
			}
		}
	}
	return errors.Join(errs...)
}

// refuseTensors adds what single inputs and outputs ask for.
func refuseTensors(c *Config, add func(field, instead string)) {
	for i, in := range c.GetInput() {
		if in.GetAllowRaggedBatch() {
			add(fmt.Sprintf("input[%d].allow_ragged_batch (%q)", i, in.GetName()), "pad the requests to one shape")
		}
		if in.GetIsShapeTensor() {
			add(fmt.Sprintf("input[%d].is_shape_tensor (%q)", i, in.GetName()), "only TensorRT models have shape tensors")
		}
		if in.GetOptional() {
			add(fmt.Sprintf("input[%d].optional (%q)", i, in.GetName()), "requests cannot replace the value that the model has of it yet: leave the input out of the configuration, and that value serves")
		}
	}
	for i, out := range c.GetOutput() {
		if out.GetIsShapeTensor() {
			add(fmt.Sprintf("output[%d].is_shape_tensor (%q)", i, out.GetName()), "only TensorRT models have shape tensors")
		}
	}
}

// opensFile reports whether an option of an execution provider makes it read or write a file that it should not: any but a
// cache below the working folder.
func opensFile(key, value string) bool {
	switch key {
	case "trt_engine_cache_path", "trt_timing_cache_path", "trt_engine_cache_prefix", "int8_calibration_table_name", "cache_dir",
		"ModelCacheDirectory":
		return value != "" && !filepath.IsLocal(value)
	case "load_config":
		return !deviceProperties().holds(value)
	case "trt_extra_plugin_lib_paths", "trt_ep_context_file_path", "trt_onnx_model_folder_path", "context":
		return true
	}
	return false
}

// namesFile reports whether a session entry of ONNX Runtime makes it read or write a file of any path.
func namesFile(key string) bool {
	switch key {
	case "session.model_external_initializers_file_folder_path", "session.collect_node_memory_stats_to_file",
		"session.resource_cuda_partitioning_settings", "session.optimized_model_external_initializers_file_name":
		return true
	}
	return false
}
