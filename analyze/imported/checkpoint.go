package imported

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// checkpoint holds the parts of a Model Analyzer checkpoint that are read. It has models, their
// variants by name, and for each variant a pair of configuration and measurements.
type checkpoint struct {
	Results *struct {
		Models map[string]map[string]variant `json:"_results"`
	} `json:"ResultManager.results"`
}

// variant is a pair [run configuration, {key: measurement}].
type variant struct {
	run          runConfig
	measurements map[string]measurement
}

// UnmarshalJSON reads the pair.
func (v *variant) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a variant has %d parts instead of two", len(pair))
	}
	if err := json.Unmarshal(pair[0], &v.run); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &v.measurements)
}

// runConfig is the configuration of a variant, one for each model that was under load. Newer
// versions wrap the model's configuration.
type runConfig struct {
	Models []struct {
		Config  json.RawMessage `json:"_model_config"`
		Variant *struct {
			Config  json.RawMessage `json:"model_config"`
			CPUOnly bool            `json:"cpu_only"`
		} `json:"_model_config_variant"`
	} `json:"_model_run_configs"`
}

// measurement is one load of a variant.
type measurement struct {
	GPUs   map[string][]record `json:"_gpu_data"`
	Models []struct {
		Parameters map[string]json.RawMessage `json:"_model_specific_pa_params"`
		Records    []record                   `json:"_non_gpu_data"`
	} `json:"_model_config_measurements"`
}

// record is a pair [tag, {"_value": number, …}].
type record struct {
	tag   string
	value float64
}

// UnmarshalJSON reads the pair.
func (r *record) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a record has %d parts instead of two", len(pair))
	}
	var content struct {
		Value float64 `json:"_value"`
	}
	if err := json.Unmarshal(pair[1], &content); err != nil {
		return err
	}
	r.value = content.Value
	return json.Unmarshal(pair[0], &r.tag)
}

// parseCheckpoint reads a checkpoint. It leaves out measurements of several models at once, with a
// note.
func parseCheckpoint(path string, text []byte) ([]analyze.Recording, []string, error) {
	var c checkpoint
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, nil, fmt.Errorf("cannot read the checkpoint of Model Analyzer: %w", err)
	}
	if c.Results == nil {
		return nil, nil, errors.New("this is not a checkpoint of Model Analyzer: ResultManager.results is missing")
	}
	var list []analyze.Recording
	var notes []string
	for _, model := range slices.Sorted(maps.Keys(c.Results.Models)) {
		if strings.Contains(model, ",") {
			notes = append(notes, fmt.Sprintf("%s: left out the models %s, since they were measured together", path, model))
			continue
		}
		r := analyze.Recording{Model: model, Source: path}
		for _, name := range slices.SortedFunc(maps.Keys(c.Results.Models[model]), byNumber) {
			config, err := recorded(model, name, c.Results.Models[model][name])
			if err != nil {
				return nil, nil, fmt.Errorf("variant %s: %w", name, err)
			}
			r.Configs = append(r.Configs, config)
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		return nil, notes, errors.New("the checkpoint has no measurements of a single model")
	}
	return list, notes, nil
}

// byNumber orders variants in the order in which Model Analyzer made them: model_config_2 before
// model_config_10.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// recorded converts one variant.
func recorded(model, name string, v variant) (analyze.RecordedConfig, error) {
	c := analyze.RecordedConfig{Name: name, Default: strings.HasSuffix(name, "_config_default"), Deployed: &modelconfig.Config{}}
	if len(v.run.Models) != 1 {
		return c, fmt.Errorf("it has %d models instead of one", len(v.run.Models))
	}
	text := v.run.Models[0].Config
	if newer := v.run.Models[0].Variant; newer != nil {
		text = newer.Config
	}
	config, err := configOf(text)
	if err != nil {
		return c, err
	}
	if config != nil {
		// the server knows the variants by the model's name; their own names are in the checkpoint
		// only
		config.Name = model
		c.Deployed = config
	}
	for _, g := range c.Deployed.GetInstanceGroup() {
		c.GPU = c.GPU || g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU
	}
	for _, key := range slices.Sorted(maps.Keys(v.measurements)) {
		p, err := v.measurements[key].point()
		if err != nil {
			return c, fmt.Errorf("measurement %q: %w", key, err)
		}
		c.Points = append(c.Points, p)
	}
	return c, nil
}

// configOf reads a model's configuration; nil without one. It may be wrapped, and has one field
// that is Model Analyzer's own.
func configOf(text json.RawMessage) (*modelconfig.Config, error) {
	if len(text) == 0 {
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("its configuration is not an object: %w", err)
	}
	if inner, wrapped := fields["_model_config"]; wrapped {
		return configOf(inner)
	}
	delete(fields, "cpu_only")
	own, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("cannot copy its configuration: %w", err)
	}
	return modelconfig.ParseJSON(own)
}

// point converts a measurement's figures. Model Analyzer's units are infer/s, milliseconds,
// megabytes, percent and watts.
func (m measurement) point() (analyze.RecordedPoint, error) {
	p := analyze.RecordedPoint{Values: map[measure.Metric]float64{}}
	if len(m.Models) != 1 {
		return p, fmt.Errorf("it has %d models instead of one", len(m.Models))
	}
	parameter := func(name string) float64 {
		x, _ := number(strings.Trim(string(m.Models[0].Parameters[name]), `"`))
		return x
	}
	batch, concurrency, rate := parameter("batch-size"), parameter("concurrency-range"), parameter("request-rate-range")
	switch {
	case concurrency >= 1 && concurrency < 1<<31:
		p.Load = closedLoop(concurrency, batch)
	case rate > 0:
		p.Load = openLoop(rate, batch)
	default:
		return p, errors.New("it has neither a concurrency nor a request rate")
	}
	for _, r := range m.Models[0].Records {
		if metric, factor := metricOf(r.tag); metric != "" && r.value >= 0 {
			p.Values[metric] = r.value * factor
		}
	}
	gpus := gpuPoint{RecordedPoint: &p}
	for _, uuid := range slices.Sorted(maps.Keys(m.GPUs)) {
		gpus.addGPU(uuid, m.GPUs[uuid])
	}
	return p, nil
}
