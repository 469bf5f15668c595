package olive

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tuner/internal/words"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
)

// ParseConfig reads the JSON of OLive's optimization config. file is its name for errors. Relative
// paths in the file are relative to its folder. The error lists all mistakes, including unknown
// keys: a misspelt key would change the search silently.
func ParseConfig(file string, text []byte) (Settings, error) {
	var fields map[string]json.RawMessage
	if err := strict(text, &fields); err != nil {
		return Settings{}, fmt.Errorf("%s: cannot read OLive's configuration: %w", file, err)
	}
	c := config{file: file, fields: fields}
	readers := c.readers()
	known := slices.Sorted(maps.Keys(readers))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		read, ok := readers[key]
		switch {
		case !ok:
			hint := ""
			if near := words.Nearest(key, known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			c.fail(key, "is not a known key of OLive's configuration%s", hint)
		case string(fields[key]) != "null":
			read(fields[key])
		}
	}
	c.finish()
	if len(c.errs) > 0 {
		return Settings{}, errors.Join(c.errs...)
	}
	return c.Settings, nil
}

// config is a configuration that is being read.
type config struct {
	Settings
	file   string
	fields map[string]json.RawMessage
	errs   []error

	names, outNames []string
	shapes          [][]int64
	sessions        int // concurrency_num
	batch           int // dynamic_batching_size
	providers       []string
	trtFP16, fp32   bool
}

func (c *config) fail(key, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s: %s", c.file, key, fmt.Sprintf(format, args...)))
}

// readers returns the reader of each key.
func (c *config) readers() map[string]func(json.RawMessage) {
	readers := map[string]func(json.RawMessage){
		"model_path":                c.text("model_path", &c.Model),
		"result_path":               c.text("result_path", &c.Output),
		"sample_input_data_path":    c.text("sample_input_data_path", &c.Data),
		"inputs_spec":               c.inputsSpec,
		"input_names":               c.texts("input_names", &c.names),
		"output_names":              c.texts("output_names", &c.outNames),
		"input_shapes":              c.inputShapes,
		"providers_list":            c.texts("providers_list", &c.providers),
		"inter_thread_num_list":     c.numbers("inter_thread_num_list", "inter_op_threads"),
		"intra_thread_num_list":     c.numbers("intra_thread_num_list", "intra_op_threads"),
		"execution_mode_list":       c.words("execution_mode_list", "execution_mode", executionModes),
		"ort_opt_level_list":        c.words("ort_opt_level_list", "graph_optimization", graphLevels),
		"quantization_enabled":      c.ifTrue("quantization_enabled", func() { c.knob("precision", recipe.Original, recipe.Int8) }),
		"throughput_tuning_enabled": c.flag("throughput_tuning_enabled", &c.Throughput),
		"trt_fp16_enabled":          c.flag("trt_fp16_enabled", &c.trtFP16),
		"fp32_enabled":              c.flag("fp32_enabled", &c.fp32),
		"dynamic_batching_size":     c.count("dynamic_batching_size", &c.batch),
		"concurrency_num":           c.count("concurrency_num", &c.sessions),
	}
	for key, why := range inapplicable() {
		readers[key] = c.inapplicable(key, why)
	}
	return readers
}

// inapplicable lists the keys that do not apply to a sweep, with the reason and the alternative.
func inapplicable() map[string]string {
	const openMP = "ONNX Runtime has had no OpenMP since version 1.8"
	return map[string]string{
		"openmp_enabled":         openMP,
		"kmp_affinity":           openMP,
		"omp_max_active_levels":  openMP,
		"omp_wait_policy_list":   openMP + "; allow_spinning says whether idle threads wait busily",
		"transformer_enabled":    "ONNX Runtime fuses transformers' operators itself at graph_optimization extended and all",
		"transformer_args":       "ONNX Runtime fuses transformers' operators itself at graph_optimization extended and all",
		"warmup_num":             "every window begins when the figures are steady",
		"test_num":               "windows have a length, and there are as many as the answer needs; budget bounds the time",
		"threads_num":            "twice as many clients as sessions keep every session busy",
		"min_duration_sec":       "budget bounds the time of the whole sweep",
		"max_latency_ms":         "a limit of latency belongs to serving: `tuner profile` searches within constraints",
		"max_latency_percentile": "a limit of latency belongs to serving: `tuner profile` searches within constraints",
		"model_analyzer_config":  "the winner is always written as config.pbtxt too (winner.pbtxt)",
		"use_conda":              "candidates run in engine processes of their own",
		"use_docker":             "candidates run in engine processes of their own",
		"onnxruntime_version":    "--ort-library cpu@VERSION, or the knob runtime, chooses among installed builds",
		"use_gpu":                "providers_list names cuda and tensorrt",
		"cpu_cores":              "intra_thread_num_list says how many threads are tried",
	}
}

// inapplicable adds a note about a key that requests something. false and empty values request
// nothing.
func (c *config) inapplicable(key, why string) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		if s := strings.TrimSpace(string(raw)); s != "false" && s != `""` && s != "[]" && s != "{}" {
			c.addNote(key, "does not apply: "+why)
		}
	}
}

// finish handles settings that depend on several keys.
func (c *config) finish() {
	if len(c.shapes) > 0 && len(c.shapes) != len(c.names) {
		c.fail("input_shapes", "has %d shapes for %d input_names", len(c.shapes), len(c.names))
	}
	for i, name := range c.names {
		in := Input{Name: name}
		if i < len(c.shapes) {
			in.Shape = c.shapes[i]
		}
		c.Inputs = append(c.Inputs, in)
	}
	if err := checkShapes(c.Inputs); err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", c.file, err))
	}
	c.Outputs = c.outNames
	if c.Model == "" {
		c.fail("model_path", "is required")
	}
	for _, name := range []*string{&c.Model, &c.Output, &c.Data} {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(filepath.Dir(c.file), *name)
		}
	}
	c.finishProviders()
	switch {
	case c.Throughput:
		c.Batch, c.Sessions = c.batch, c.sessions
	case c.batch > 1:
		c.addNote("dynamic_batching_size", "does not apply: it counts with throughput_tuning_enabled only")
	}
	if !c.Throughput && c.sessions > 1 {
		c.addNote("concurrency_num", "does not apply: latency is measured without other load; with throughput_tuning_enabled it is the number of sessions")
	}
}

// oliveProviders are the execution providers of OLive's last release. Providers that tuner adds
// later are not among them.
var oliveProviders = []string{"cpu", "cuda", "dnnl", "openvino", "tensorrt"}

// finishProviders makes knobs from the execution providers and TensorRT's precisions.
func (c *config) finishProviders() {
	var providers []string
	for _, p := range c.providers {
		name := provider.FromORT(p)
		if !slices.Contains(oliveProviders, name) {
			c.fail("providers_list", "%q is not an execution provider of OLive; allowed are %s", p, strings.Join(oliveProviders, ", "))
			continue
		}
		if !slices.Contains(providers, name) {
			providers = append(providers, name)
		}
	}
	c.knob("execution_provider", providers...)
	trt := slices.Contains(providers, "tensorrt")
	switch {
	case c.trtFP16 && !trt:
		c.addNote("trt_fp16_enabled", "does not apply: providers_list does not name tensorrt")
	case c.trtFP16 && c.fp32:
		c.knob("tensorrt.precision_mode", "FP32", "FP16")
	case c.trtFP16:
		c.knob("tensorrt.precision_mode", "FP16")
	}
}

// knob adds a knob with each value once, if it has any.
func (c *config) knob(name string, values ...string) {
	var distinct []string
	for _, v := range values {
		if !slices.Contains(distinct, v) {
			distinct = append(distinct, v)
		}
	}
	if len(distinct) > 0 {
		c.Knobs = append(c.Knobs, Knob{name, distinct})
	}
}

func (c *config) text(key string, into *string) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		if json.Unmarshal(raw, into) != nil {
			c.fail(key, "must be a text")
		}
	}
}

// texts reads a JSON list of texts, or one text with commas.
func (c *config) texts(key string, into *[]string) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		var single string
		if json.Unmarshal(raw, &single) == nil {
			names, err := list(single)
			if err != nil {
				c.fail(key, "%v", err)
			}
			*into = names
			return
		}
		if json.Unmarshal(raw, into) != nil || checkNames(*into) != nil {
			c.fail(key, "must be a list of texts that are not empty")
		}
	}
}

func (c *config) flag(key string, into *bool) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		if json.Unmarshal(raw, into) != nil {
			c.fail(key, "must be true or false")
		}
	}
}

func (c *config) ifTrue(key string, then func()) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		var on bool
		c.flag(key, &on)(raw)
		if on {
			then()
		}
	}
}

func (c *config) count(key string, into *int) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		if json.Unmarshal(raw, into) != nil || *into < 1 || *into > 1<<20 {
			c.fail(key, "must be a whole number from 1")
			*into = 0
		}
	}
}

// values reads a JSON list of numbers or texts, a single one, or a text with commas.
func (c *config) values(key string, raw json.RawMessage) []string {
	var many []any
	if json.Unmarshal(raw, &many) != nil {
		var one any
		if json.Unmarshal(raw, &one) != nil {
			c.fail(key, "must be a list")
			return nil
		}
		many = []any{one}
	}
	var values []string
	for _, v := range many {
		switch v := v.(type) {
		case float64:
			values = append(values, strconv.FormatFloat(v, 'f', -1, 64))
		case string:
			for part := range strings.SplitSeq(v, ",") {
				values = append(values, strings.TrimSpace(part))
			}
		case nil: // OLive's "not set", which is always tried
		default:
			c.fail(key, "must be a list of numbers or texts")
			return nil
		}
	}
	return values
}

// numbers reads thread counts.
func (c *config) numbers(key, knob string) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		values := c.values(key, raw)
		for _, v := range values {
			if n, err := strconv.Atoi(v); err != nil || n < 0 || n > 1024 {
				c.fail(key, "%q is not a number of threads from 0 to 1024", v)
				return
			}
		}
		c.knob(knob, values...)
	}
}

func executionModes() map[string]string {
	return map[string]string{"sequential": "sequential", "parallel": "parallel", "0": "sequential", "1": "parallel"}
}

// graphLevels maps OLive's words to ONNX Runtime's numbers.
func graphLevels() map[string]string {
	return map[string]string{"disable": "disable", "basic": "basic", "extended": "extended", "all": "all",
		"0": "disable", "1": "basic", "2": "extended", "99": "all"}
}

// words reads words that have other names here.
func (c *config) words(key, knob string, dictionary func() map[string]string) func(json.RawMessage) {
	return func(raw json.RawMessage) {
		var values []string
		for _, v := range c.values(key, raw) {
			word, ok := dictionary()[strings.ToLower(v)]
			if !ok {
				c.fail(key, "%q is not known; allowed are %s", v, strings.Join(slices.Sorted(maps.Keys(dictionary())), ", "))
				return
			}
			values = append(values, word)
		}
		c.knob(knob, values...)
	}
}

// inputsSpec reads {"name": [1, 7], …}. The shapes are in the order of the names.
func (c *config) inputsSpec(raw json.RawMessage) {
	var spec map[string][]int64
	if json.Unmarshal(raw, &spec) != nil {
		c.fail("inputs_spec", "must be an object of shapes, such as {\"ids\": [-1, 256]}")
		return
	}
	if _, both := c.fields["input_names"]; both {
		c.fail("inputs_spec", "contradicts input_names; keep one of the two")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		c.names, c.shapes = append(c.names, name), append(c.shapes, spec[name])
	}
}

func (c *config) inputShapes(raw json.RawMessage) {
	text := string(raw)
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = quoted
	}
	shapes, err := parseShapes(text)
	if err != nil {
		c.fail("input_shapes", "%v", err)
	}
	c.shapes = append(c.shapes, shapes...)
}
