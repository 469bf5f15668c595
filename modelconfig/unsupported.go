package modelconfig

import (
	"errors"
	"fmt"
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
	for i, in := range c.GetInput() {
		if in.GetAllowRaggedBatch() {
			add(fmt.Sprintf("input[%d].allow_ragged_batch (%q)", i, in.GetName()), "pad the requests to one shape")
		}
		if in.GetIsShapeTensor() {
			add(fmt.Sprintf("input[%d].is_shape_tensor (%q)", i, in.GetName()), "only TensorRT models have shape tensors")
		}
	}
	for i, out := range c.GetOutput() {
		if out.GetIsShapeTensor() {
			add(fmt.Sprintf("output[%d].is_shape_tensor (%q)", i, out.GetName()), "only TensorRT models have shape tensors")
		}
	}
	return errors.Join(errs...)
}
