package reference

import (
	"fmt"
	"time"

	"tuner/ort/addon"
	"tuner/search/plan"
	"tuner/spec"
)

// day is the unit of the longest budget.
const day = 24 * time.Hour

// Profile describes profile.yaml.
func Profile() File {
	return File{
		Name: "profile.yaml",
		Intro: "`tuner profile -f profile.yaml` and `tuner run -f profile.yaml` read this file. [profile.yaml](profile.md) explains how its parts work together. " +
			"`tuner init MODEL` writes one with values for your machine.",
		Fields: []Field{
			{Name: "model", Type: path("model.onnx"), Required: true, Instead: "models", Or: "pipeline", Meaning: "An ONNX file, or a Triton model folder. A folder's model file and config.pbtxt are used."},
			{Name: "config", Type: path("config.pbtxt"), Without: "Triton's auto-completion makes the default from the model",
				Meaning: "The config.pbtxt of the default configuration, for an ONNX file. Auto-completion makes two CPU instances on all cores, and batches up to 4 where the model has a batch dimension."},
			opLibraries(),
			epLibrary(),
			servedName("the model's file or folder name"),
			{Name: "output", Type: path("out/minilm"), Without: "`out/NAME`", Meaning: "Folder of the campaign: its journal, later the results."},
			{Name: "deploy_target", Type: words(spec.TargetTriton, spec.TargetTuner), Default: spec.TargetTriton,
				Meaning: "`triton` keeps the settings that a stock Triton's onnxruntime backend honours, so that you deploy the server that was measured. `tuner` opens all options of the bundled engine."},
			{Name: "mode", Type: words(spec.ModeOnline, spec.ModeOffline), Without: "neither",
				Meaning: "The purpose of serving, in place of an objective. `online`: someone waits for each answer. The objective is the latency: the percentile that the constraints name, else p99. The search begins at the lowest load. " +
					"`offline`: nobody waits. The objective is the throughput, and `load.concurrency: auto` is the highest level alone."},
			{Name: "runner", Fields: runner(), Meaning: "The server that is measured. See [Servers](profile.md#servers)."},
			{Name: "finals", Meaning: "The server of the final trials, if it is another one than the search's.", Fields: []Field{
				{Name: "runner", Fields: runner(), SameAs: "runner", Required: true, Meaning: "The server."},
			}},
			{Name: "search", Fields: searchFields()},
			space(true),
			{Name: "load", Fields: append([]Field{
				{Name: "concurrency", Type: series(whole(1, 0), false).or(words("auto")), Default: "auto", Unit: "requests in flight",
					Meaning: "A closed loop: each answer is followed by the next request. For each configuration the search looks for the best load in this range. In a range or `auto` it may use loads between the levels. " +
						"`auto` has powers of two up to four full batches for every instance of the largest pool, at least 64, at most 1024."},
				{Name: "request_rate", Type: series(whole(1, 10_000_000), false), Unit: "requests per second", Without: "a closed loop",
					Meaning: "An open loop, in place of `concurrency`: requests arrive as `arrivals` says, whatever the server does. Latencies count from the scheduled instant. " +
						"A range without `step` and `scale` doubles from `min`, and ends with `max`. While 1,024 requests are unanswered, further ones are dropped and count as failed."},
				arrivalsField(),
				{Name: "client_batch_size", Type: whole(1, 0), Default: "1", Unit: "inferences", Meaning: "Inferences in one request."},
			}, inputs(true))},
			{Name: "objective", Type: metric().orOfSeveral(), Default: "throughput",
				Meaning: "The metric that the search improves. With `mode: online` the default is the latency. With `models` it is `scale`: how far the traffic can grow while every limit is kept."},
			{Name: "weights", Type: weights(metric().orOfSeveral()), Without: "`objective` alone",
				Meaning: "Several metrics in place of `objective`. Scores are on a log scale: with `{throughput: 10, latency_p99: 5}`, twice the throughput outweighs twice the latency by 10 : 5."},
			{Name: "constraints", Type: limits(true), Without: "none, except `accuracy: {metric: cosine, min: 0.99}` where other precisions are searched",
				Meaning: "Limits that a configuration must keep. `throughput` and goodputs take `min`, `gpu_utilization` takes both, every other metric takes `max`. A bare latency is in milliseconds, and a bare size in megabytes. " +
					"`accuracy: {metric, min}` or `{metric, max}` limits how far the outputs of a variant may differ from the original's. See [Accuracy](profile.md#accuracy)."},
			price("none: the metric `cost` is unknown"),
			accuracySection(),
			{Name: "pipeline", With: "models: {encoder: {}}", Type: path("repository/search"), Without: "no model calls others",
				Meaning: "The folder of a model that calls others, in place of `model`: an [ensemble](../how-to/pipelines.md), or code that calls models. Load, limits and objective are its own. " +
					"`models` are its stages. Those of an ensemble are found in its config.pbtxt, so only what you change about them is written. Their models lie beside the folder unless they say otherwise. " +
					"A stage has `model`, `config`, `space`, `accuracy`, a limit on its `accuracy`, and `load.inputs` for the comparison of its variants."},
			severalModels(),
			{Name: "scale", With: twoModels, Type: scales(), Default: "{min: 0.25, max: 8}",
				Meaning: "With `models`: the factors by which the traffic of all models is multiplied. In a range, neighbouring factors differ by 1.1 %."},
			{Name: "isolation", With: twoModels, Type: list(words("shared", "cores")), Default: "shared",
				Meaning: "With `models`: how they share the cores. `shared`: all compute on all cores. `cores`: the instances of each model compute on cores of its own, which the search divides (host policies). " +
					"With a list, the search chooses. Cores of their own need [intra_op_threads](#spaceintra_op_threads) in the space of each model."},
		},
	}
}

// opLibraries describes the libraries with a model's operators.
func opLibraries() Field {
	return Field{Name: addon.FileField, Type: list(path("operators/libortextensions.so")), Without: "none",
		Meaning: "Libraries with operators that the model uses beside ONNX Runtime's. Their code runs in the server. A config.pbtxt may only name libraries of this list. See [custom operators](../how-to/custom-operators.md)."}
}

// epLibrary describes the library with an execution provider.
func epLibrary() Field {
	return Field{Name: addon.ProviderField, Type: path("providers/libonnxruntime_providers_openvino_plugin.so"), Without: "none",
		Meaning: "A library with an execution provider beside ONNX Runtime's. Its code runs in the server. In `execution_provider` it is called `plugin`. See [execution providers](../design/providers.md#a-library-with-a-provider)."}
}

// twoModels are lines of a profile of several models.
const twoModels = "models: {encoder: {model: a.onnx, load: {request_rate: 120}, constraints: {latency_p99: 50ms}}, ranker: {model: b.onnx, load: {request_rate: 900}, constraints: {latency_p99: 5ms}}}"

// severalModels describes the section of several models.
func severalModels() Field {
	const load, limit = "load: {request_rate: 9}", "constraints: {latency_p99: 5ms}"
	const beside = "model: a.onnx, " + load + ", " + limit
	return Field{Name: "models", IsNamed: true, Without: "one model: `model`", Meaning: "Several models on one server, under the names by which they are served, in place of `model`. " +
		"They are measured together, each with its own traffic. Names have letters, digits, `_` and `-`. See [several models](../how-to/several-models.md).", Fields: []Field{
		{Name: "NAME", Fields: []Field{
			{Name: "model", Type: path("minilm.onnx"), Required: true, Unless: "pipeline", Beside: load + ", " + limit, Meaning: "As [model](#model). A file may serve under one name only."},
			{Name: "config", Type: path("config.pbtxt"), Without: "Triton's auto-completion", Beside: beside, Meaning: "As [config](#config)."},
			{Name: "load", Required: true, Unless: "pipeline", Beside: "model: a.onnx, " + limit, Fields: append([]Field{
				{Name: "concurrency", Type: whole(1, 0), Unit: "requests in flight", Without: "an open loop, with `request_rate`", Meaning: "The model's clients at scale 1: a closed loop. A scale multiplies them, rounded up. Scales between two whole numbers are one load, whose scale is the highest of them."},
				{Name: "request_rate", Type: whole(1, 10_000_000), Unit: "requests per second", Without: "a closed loop, with `concurrency`", Meaning: "The model's traffic at scale 1: an open loop. A scale multiplies it."},
				{Name: "arrivals", Beside: "request_rate: 50", Default: "poisson", Type: arrivalsOfSeveral(), Meaning: "As [load.arrivals](#loadarrivals), without those that repeat."},
				{Name: "client_batch_size", Type: whole(1, 0), Default: "1", Beside: "request_rate: 50", Unit: "inferences", Meaning: "Inferences in one request."},
			}, Field{Name: "inputs", SameAs: "load.inputs", Fields: inputs(true).Fields, Beside: "request_rate: 50", Without: "random values that the model accepts"}), Meaning: "The model's own traffic: one rate, or one number of clients."},
			withoutDefault(space(false), beside),
			{Name: "constraints", Type: Type{Name: "as [constraints](#constraints), without `memory`, `cpu`, `gpu_*`, `energy` and `cost`, which are the server's", Schema: limits(true).Schema,
				Good: []string{"{latency_p99: 50ms, throughput: 9}", "{latency_p90: {max: 20ms}}"}, Bad: []string{"{speed: {max: 1}}"}},
				Without: "none", Beside: "model: a.onnx, " + load, Meaning: "The model's own limits. Where the objective is the scale, each model needs a limit on a latency: without one its traffic could grow without an end."},
			{Name: "accuracy", SameAs: "accuracy", Fields: accuracySection().Fields, Beside: beside + ", space: {precision: [fp32, int8]}", Without: "the defaults of [accuracy](#accuracy)"},
		}},
	}}
}

// withoutDefault returns the section of knobs as a field of one of several models.
func withoutDefault(space Field, beside string) Field {
	return Field{Name: space.Name, SameAs: space.Name, Fields: space.Fields, Type: Type{}, Others: space.Others, Beside: beside, Without: "tuner's default space for the model"}
}

// arrivalsOfSeveral is the type of arrivals that do not repeat.
func arrivalsOfSeveral() Type {
	return Type{Name: "`poisson`, `constant`, or `{gamma: {cv: NUMBER}}`", Schema: arrivalsField().Type.Schema, Good: []string{"constant", "{gamma: {cv: 2}}"}, Bad: []string{"bursty"}}
}

// scales is the type of the factors of several models' traffic.
func scales() Type {
	const factor = `{"type": "number", "minimum": 0.01, "maximum": 10000}`
	return Type{Name: "number from 0.01 to 10,000; or a list; or `{min: …, max: …}`",
		Schema: fmt.Sprintf(`{"anyOf": [%[1]s, {"type": "array", "minItems": 1, "uniqueItems": true, "items": %[1]s}, {"type": "object", "additionalProperties": false, "properties": {"min": %[1]s, "max": %[1]s}}]}`, factor),
		Good:   []string{"2", "[0.5, 1, 2]", "{min: 0.5, max: 4}", "{max: 3}"}, Bad: []string{"0", "[1, 1]", "many", "{most: 3}", "10001"}}
}

// servedName describes the served name of a model.
func servedName(without string) Field {
	return Field{Name: "name", Type: Type{Name: "text: letters, digits, `_`, `.`, `-`", Schema: `{"type": ["string", "number"], "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"}`,
		Good: []string{"minilm", "resnet-50_v1.5"}, Bad: []string{"a/b", "-a", `"a b"`}}, Without: without, Meaning: "The name under which the model is served."}
}

// price describes the price of the machine.
func price(without string) Field {
	return Field{Name: "price", Without: without, Meaning: "The metric `cost` needs it. With it, every report shows the cost.", Fields: []Field{
		{Name: "per_hour", Type: positive(), Unit: "any currency", Required: true, Meaning: "The cost of the machine for an hour."},
	}}
}

// arrivalsField describes the arrivals of an open loop.
func arrivalsField() Field {
	const phase = `{"type": "string", "pattern": "^[0-9.]+ ?(ns|us|µs|ms|s|m|h)"}`
	one := func(name, schema string) string {
		return fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": ["%[1]s"], "properties": {"%[1]s": %[2]s}}`, name, schema)
	}
	return Field{Name: "arrivals", Beside: "request_rate: 50", Default: "poisson",
		Type: Type{Name: "`poisson`, `constant`, `{gamma: {cv: NUMBER}}`, `{on_off: {on: DURATION, off: DURATION}}`, `{curve: {DURATION: FACTOR, …}}`, or `{trace: FILE}`",
			Schema: `{"anyOf": [{"enum": ["poisson", "constant"]}, ` +
				one("gamma", `{"type": "object", "additionalProperties": false, "required": ["cv"], "properties": {"cv": {"type": "number", "exclusiveMinimum": 0, "maximum": 20}}}`) + ", " +
				one("on_off", `{"type": "object", "additionalProperties": false, "required": ["on", "off"], "properties": {"on": `+phase+`, "off": `+phase+`}}`) + ", " +
				one("curve", `{"type": "object", "minProperties": 2, "additionalProperties": {"type": "number", "minimum": 0}}`) + ", " +
				one("trace", `{"type": "string", "minLength": 1}`) + `]}`,
			Good: []string{"constant", "{gamma: {cv: 2}}", "{on_off: {on: 2s, off: 8s}}", "{curve: {0s: 1, 30s: 3, 60s: 1}}", "{trace: trace.csv}"},
			Bad:  []string{"bursty", "{gamma: {}}", "{gamma: {cv: 0}}", "{on_off: {on: 2s}}", "{curve: {0s: 1}}", "{gamma: {cv: 2}, trace: trace.csv}"}},
		Meaning: "When the requests of a rate are due; the rate is the mean. A trace without a rate has its own. See [traffic over time](../how-to/traffic.md)."}
}

// mixSchema is the JSON Schema of a mix.
const mixSchema = `{"oneOf": [` +
	`{"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": false, "required": ["weight", "shape"], "properties": {` +
	`"weight": {"type": "number", "minimum": 0}, ` +
	`"shape": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer", "minimum": 1}}}}}}, ` +
	`{"type": "object", "additionalProperties": false, "required": ["dimension"], "minProperties": 2, "maxProperties": 2, "properties": {` +
	`"sizes": {"const": "trace"}, ` +
	`"dimension": {"type": "string", "minLength": 1}, ` +
	`"values": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number", "minimum": 0}}, ` +
	`"histogram": {"type": "string", "minLength": 1}, ` +
	`"lognormal": {"type": "object", "additionalProperties": false, "required": ["p50", "p99"], "properties": {` +
	`"p50": {"type": "integer", "minimum": 1}, "p99": {"type": "integer", "minimum": 1}, "max": {"type": "integer", "minimum": 1}}}}}]}`

// inputs describes the section of sizes. With isProfile it has the inputs whose sizes are examples.
func inputs(isProfile bool) Field {
	f := Field{Name: "inputs", Fields: []Field{
		{Name: "data", Type: path("requests.npz"), Without: "random values that the model accepts",
			Meaning: "Rows from which requests are drawn, at random and with replacement: `.npz`, `.npy`, a folder of `NAME.npy`, or perf_analyzer's JSON. See [data files](data.md). It takes the place of `shape`."},
		{Name: "shape", Type: Type{Name: "mapping: input to list of sizes", Schema: `{"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer", "minimum": 1}}}`,
			Good: []string{"{input_ids: [32], pixels: [3, 224, 224]}"}, Bad: []string{"{input_ids: 32}", "{input_ids: [0]}", "[32]"}}, Without: "no input has a symbolic dimension",
			Meaning: "The shape of an input in a request, without the batch dimension. An input with symbolic dimensions needs it, unless `mix` sets it."},
		{Name: "mix", Type: Type{Name: "list of `{weight: NUMBER, shape: {INPUT: SIZES}}`; or mapping with `dimension` and one of `values`, `histogram`, `lognormal`, `sizes`", Schema: mixSchema,
			Good: []string{"[{weight: 6, shape: {ids: [16]}}, {weight: 1, shape: {ids: [256]}}]", "{dimension: sequence, values: {16: 6, 64: 3, 256: 1}}",
				"{dimension: sequence, histogram: lengths.csv}", "{dimension: sequence, lognormal: {p50: 40, p99: 300, max: 512}}"},
			Bad: []string{"[{weight: -1, shape: {ids: [16]}}]", "{dimension: sequence}", "16"}}, Without: "all requests have one shape",
			Meaning: "Requests of several shapes, in random order. See [a mix of shapes](../how-to/your-requests.md#a-mix-of-shapes)."},
	}}
	if isProfile {
		f.Fields = append(f.Fields, Field{Name: "pad", Type: Type{Name: "mapping: input to whole number", Schema: `{"type": "object", "additionalProperties": {"type": "integer"}}`,
			Good: []string{"{ids: 1}"}, Bad: []string{"{ids: x}", "1"}}, Without: "0 for every input",
			Meaning: "The value with which an input is padded (`space.padding`), such as the id of the padding token."}, Field{Name: "examples", Type: Type{Name: "mapping: input to text; or names of inputs, as earlier versions wrote them",
			Schema: `{"anyOf": [{"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"], "minLength": 1}}, ` + oneOrMore(anyText) + `]}`,
			Good:   []string{"{input_ids: a text of 128 tokens}", "[input_ids]", "input_ids"}, Bad: []string{"[]", `{input_ids: ""}`, "{input_ids: [128]}"}},
			Without: "none", Beside: "shape: {input_ids: [128]}",
			Meaning: "Inputs whose shape is an example, with the reason for its sizes: every report says so. `tuner init` and `tuner run` write it where the model leaves sizes open and you give none. See [sizes](profile.md#sizes)."})
	}
	return f
}

// runner describes the fields of a measured server.
func runner() []Field {
	const local, remote = "mode: local", "mode: remote, url: 'gpu-host:8001'"
	return []Field{
		{Name: "mode", Type: Type{Name: quoted([]string{spec.RunnerBundled, spec.RunnerLocal, spec.RunnerRemote}), Schema: words(spec.RunnerBundled, spec.RunnerLocal, spec.RunnerRemote).Schema,
			Good: []string{spec.RunnerLocal}, Bad: []string{"docker"}}, Default: spec.RunnerBundled,
			Meaning: "`bundled` is the engine that is part of tuner. `local` launches a tritonserver. `remote` measures a server that runs already."},
		{Name: "protocol", Type: words(spec.ProtocolGRPC, spec.ProtocolHTTP), Default: spec.ProtocolGRPC, Beside: local, Meaning: "The protocol of requests. The scheme of `url` decides where it has one."},
		{Name: "server", Type: Type{Name: "program", Schema: `{"type": "string", "minLength": 1}`, Good: []string{"tritonserver", "./server.sh"}, Bad: []string{`""`}}, Default: spec.DefaultServer, Beside: local,
			Meaning: "For `local`: a tritonserver, or a program that takes its options. A name without a slash is looked for in `PATH`."},
		{Name: "args", Type: Type{Name: "text; or a list", Schema: oneOrMore(anyText), Good: []string{"[--log-verbose=1, --exit-on-error=false]"}, Bad: []string{"[]", "[--http-port=1]"}}, Without: "none", Beside: local,
			Meaning: "For `local`: further options of the server. tuner itself sets repository, model control, ports and addresses."},
		{Name: "environment", Type: Type{Name: "mapping: name to text", Schema: `{"type": "object", "additionalProperties": ` + anyText + `}`, Good: []string{`{OMP_NUM_THREADS: 1, DEBUG: ""}`}, Bad: []string{"[A]"}},
			Without: "none", Beside: local,
			Meaning: "For `local`: environment variables, beside tuner's own. `\"\"` is a variable without a value. Set `CUDA_VISIBLE_DEVICES` for [tuner itself](../design/providers.md#gpus)."},
		{Name: "log", Type: path("server.log"), Without: "none", Beside: local, Meaning: "For `local`: the server's output is appended to this file."},
		{Name: "url", Type: Type{Name: "text: `HOST[:PORT]`, also behind `http://`, `https://`, `grpc://` or `grpcs://`", Schema: `{"type": "string", "minLength": 1}`,
			Good: []string{"gpu-host:8001"}, Bad: []string{`"me@host"`, `"host:0"`}}, Without: "required for `remote`", Beside: "mode: remote",
			Meaning: "For `remote`: the server. Triton's ports are the defaults: 8001 for gRPC, 8000 for HTTP."},
		{Name: "metrics_url", Type: text("http://gpu-host:8002/metrics"), Without: "none", Beside: remote, Meaning: "For `remote`: the server's metrics page. tuner reads the GPUs and the memory of the server's machine from it."},
		{Name: "model_repository", Type: path("models"), Without: "files travel over the wire", Beside: remote,
			Meaning: "For `remote`: the server's model repository, where this machine sees it. Model files are put there while they are measured."},
		{Name: "headers", Type: Type{Name: "mapping: name to text", Schema: `{"type": "object", "additionalProperties": ` + anyText + `}`, Good: []string{"{authorization: $TOKEN}"}, Bad: []string{"[A]"}},
			Without: "none", Beside: remote,
			Meaning: "For `remote`: header fields of every request (gRPC: metadata). `$NAME` in a text is an environment variable, which keeps secrets out of file and journal. See [what else is kept out](journal.md#secrets)."},
		{Name: "tls", Beside: remote, Without: "the system's authorities", Meaning: "For `remote`: PEM files for TLS. `https://` and `grpcs://` ask for TLS, too. Without them this section names one file at least.", Fields: []Field{
			{Name: "ca", Type: path("ca.pem"), Without: "the system's authorities", Meaning: "Certificate authorities to trust."},
			{Name: "certificate", Type: path("client.pem"), Without: "none", Meaning: "The client's own certificate, with its chain."},
			{Name: "key", Type: path("client.key"), Without: "none", Meaning: "The key of the client's certificate."},
		}},
	}
}

// strategies is the type of a strategy. Its examples are those of one model.
func strategies() Type {
	var all []string
	for _, s := range plan.Strategies() {
		all = append(all, s.Name)
	}
	t := words(all...)
	t.Good = plan.Names()
	return t
}

// searchFields lists the fields of the section search.
func searchFields() []Field {
	longest := 30 * day
	return []Field{
		{Name: "strategy", Type: strategies(), Default: plan.Guided,
			Meaning: "`guided` learns how long batches take, predicts every configuration at every load, and measures where the best may be. `grid` measures every combination. `random` measures them in random order. " +
				"`quick` is Model Analyzer's hill climb over `max_batch_size` and `instance_count`, with every other knob at its first value. " +
				"With `models` the default is `colocation`, which measures each model alone, predicts all together, and measures the best of them. For other objectives than the scale it is `alternating`, " +
				"which improves the configuration of one model at a time."},
		{Name: "budget", Type: duration(time.Second, longest), Default: "10m",
			Meaning: "The search ends after this time. It begins no trial that is expected to end later, and finishes a trial that takes longer. A trial that hangs is ended. The limit is 2 minutes for loading a model, " +
				"and for the first answers of new sessions. Later it is 10 s without an answer, or 20 times the longest latency.",
			Fields: []Field{
				{Name: "time", Type: duration(time.Second, longest), Without: "no limit in time", Beside: "trials: 100", Meaning: "The time, where `trials` is given, too."},
				{Name: "trials", Type: whole(1, 1_000_000), Unit: "measurements", Without: "no limit", Meaning: "The search ends after this number of measurements."},
			}},
		{Name: "seed", Type: whole(0, 0), Default: "1", Meaning: "The same seed, space and measurements give the same search."},
		{Name: "window", Type: duration(50*time.Millisecond, 5*time.Minute), Default: "1s",
			Meaning: "The shortest length of a measurement window. Slow models get [longer ones](../design/measurement.md#a-trial)."},
		{Name: "confidence", Type: probability(), Without: "0.95", Unit: "probability",
			Meaning: "The probability with which the recommended configuration keeps all constraints. A lower value recommends configurations nearer to a limit."},
		{Name: "until", Type: share(false), Without: "the search continues while anything is worth a trial",
			Meaning: "The search ends before its budget once nothing else is likely to be better by more than this share, and the answer is confirmed. `search.confidence` says how likely. " +
				"`--until` on the command line overrides it. See [Budget or until](profile.md#budget-or-until)."},
		{Name: "earlier", Type: list(path("out/minilm")), Without: "none",
			Meaning: "Output folders of earlier campaigns to learn from. `--earlier DIR` on the command line adds one. See [Earlier campaigns](profile.md#earlier-campaigns)."},
	}
}

// accuracySection describes how variants are compared with the original.
func accuracySection() Field {
	const variants = "space: {precision: [fp32, int8]}"
	return Field{Name: "accuracy", With: variants, Meaning: "How the outputs of variants are compared with the original's. See [Accuracy](profile.md#accuracy).", Fields: []Field{
		{Name: "data", Type: path("inputs.npz"), With: variants, Without: "synthetic inputs", Meaning: "Inputs to compare on: `.npz`, `.npy`, a folder of `NAME.npy`, or perf_analyzer's JSON. See [data files](data.md)."},
		{Name: "calibration", Type: path("calibration.npz"), With: variants, Without: "`accuracy.data`, else other synthetic inputs", Meaning: "Inputs from which `int8_static` takes its ranges."},
		{Name: "calibration_method", Type: words(spec.CalibrationMinMax, spec.CalibrationPercentile, spec.CalibrationEntropy), With: variants, Without: spec.CalibrationMinMax,
			Meaning: "How `int8_static` takes its ranges from these inputs."},
		{Name: "rows", Type: whole(1, 1_000_000), With: variants, Unit: "rows", Without: "all of the data, or up to 64 synthetic ones",
			Meaning: "The most rows that are compared. The outputs of all rows are held in memory, the original's and one variant's. It is an error if they need more than half of the machine's memory."},
		{Name: "max_kept", Type: share(true), With: variants, Default: "25%", Meaning: "The largest share of convertible operators that may stay in fp32 to keep the limit."},
		{Name: "command", Type: text("python3 metric.py"), With: "constraints: {accuracy: {metric: command, min: 0.9}}\n" + variants, Without: "none",
			Meaning: "A command that computes your own metric, for `constraints: {accuracy: {metric: command, min: …}}`."},
		{Name: "unchecked_options", Type: flag(), With: variants, Default: "false",
			Meaning: "Accepts options of execution providers that lower the precision (`precision_mode: FP16`), although nothing compares their outputs."},
	}}
}
