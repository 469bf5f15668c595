package testserver

import (
	"fmt"

	"tuner/engine/api"
	"tuner/model/modelconfig"
)

// The one model: 16 floats in, 16 zeros out.
const (
	model    = "law"
	version  = "1"
	elements = 16
)

// outputs is the answer's JSON after the model's name and the request's id. The tensor follows in
// binary form.
const outputs = `"outputs":[{"name":"y","datatype":"FP32","shape":[16],"parameters":{"binary_data_size":64}}]}`

func serverMetadata() api.ServerMetadata {
	return api.ServerMetadata{Name: "testserver", Version: "1", Extensions: []string{
		"binary_tensor_data", "model_configuration", "model_repository", "parameters", api.ExtensionStatistics,
	}}
}

func (s *Server) modelMetadata() api.ModelMetadata {
	datatype := "FP32"
	if s.options.Faults.Datatype != "" {
		datatype = s.options.Faults.Datatype
	}
	return api.ModelMetadata{
		Name: model, Versions: []string{version}, Platform: "law",
		Inputs:  []api.TensorMetadata{{Name: "x", Datatype: datatype, Shape: []int64{elements}}},
		Outputs: []api.TensorMetadata{{Name: "y", Datatype: "FP32", Shape: []int64{elements}}},
	}
}

const configText = `{"name":"law","platform":"","backend":"law","max_batch_size":0,` +
	`"input":[{"name":"x","data_type":"TYPE_FP32","dims":[16]}],"output":[{"name":"y","data_type":"TYPE_FP32","dims":[16]}]}`

func modelConfig() (*modelconfig.Config, error) {
	c, err := modelconfig.ParseJSON([]byte(configText))
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the one model: %w", err)
	}
	return c, nil
}

func index() []api.IndexEntry {
	return []api.IndexEntry{{Name: model, Version: version, State: api.StateReady}}
}

func unknownModel(name string) string {
	return fmt.Sprintf("Request for unknown model: %q is not found", name)
}
