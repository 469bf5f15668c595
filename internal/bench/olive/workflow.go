package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
)

//go:embed rows.py
var rowsScript string

// object is a JSON object of Olive's.
type object map[string]any

// threadCounts are the powers of two up to the cores, and the cores.
func threadCounts(cores int) []int {
	var list []int
	for n := 1; n < cores; n *= 2 {
		list = append(list, n)
	}
	return append(list, cores)
}

// workflow is Olive's workflow file for a model, as Olive 0.13 can run it: its evaluator names a type, since without one the
// engine ends with an AttributeError (olive/resource_path.py); and the search goes pass by pass, since with the order "joint" every
// point whose first pass comes from the cache fails ("FootprintNode" object has no field "model_config"). The order of the passes
// is that of their names here: encoding/json sorts keys.
//
// Every pass has all values that matter written out: what is absent would be
// searched too (olive/passes/olive_pass.py), and multiply the points. For 8 bits it gets the recipe that tuner has: matrix
// products alone for dynamic, u8 activations for static, scales per channel for both. The peephole pass stands for fp32, since a
// group of passes has no "none". OrtSessionParamsTuning's other fields cannot be searched: their type or Olive's check of
// accelerators allows one value.
func workflow(s subject, script, output, cache string) ([]byte, error) {
	int8 := func(kind string, more object) object {
		pass := object{"type": kind, "precision": "int8", "per_channel": true, "reduce_range": false, "quant_preprocess": true}
		for key, value := range more {
			pass[key] = value
		}
		return pass
	}
	text, err := json.MarshalIndent(object{
		"input_model": object{"type": "ONNXModel", "model_path": s.path},
		"systems": object{"here": object{"type": "LocalSystem",
			"accelerators": []object{{"device": "cpu", "execution_providers": []string{"CPUExecutionProvider"}}}}},
		"host": "here", "target": "here",
		"data_configs": []object{{"name": "rows", "user_script": script,
			"load_dataset_config": object{"type": "npz_rows", "params": object{"path": s.rows}}}},
		"evaluators": object{"latency": object{"type": "OnnxEvaluator", "metrics": []object{{"name": "latency", "type": "latency", "data_config": "rows",
			"sub_types": []object{{"name": "avg", "priority": 1}}}}}},
		"evaluator": "latency",
		"passes": object{
			"precision": []object{
				{"type": "OnnxPeepholeOptimizer"},
				int8("OnnxDynamicQuantization", object{"op_types_to_quantize": []string{"MatMul"}}),
				int8("OnnxStaticQuantization", object{"data_config": "rows", "calibrate_method": "MinMax", "quant_format": "QDQ",
					"activation_type": "uint8"}),
			},
			"session": object{"type": "OrtSessionParamsTuning", "data_config": "rows", "providers_list": "CPUExecutionProvider",
				"provider_options_list": object{}, "execution_mode_list": []int{0, 1}, "opt_level_list": []int{2, 99},
				"intra_thread_num_list": threadCounts(runtime.NumCPU())},
		},
		"search_strategy": object{"execution_order": "pass-by-pass", "sampler": "sequential"},
		"output_dir":      output, "cache_dir": cache, "log_severity_level": 1,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write the workflow of %s: %w", filepath.Base(s.path), err)
	}
	return text, nil
}
