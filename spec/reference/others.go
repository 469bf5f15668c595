package reference

import (
	"fmt"
	"strings"
	"time"

	"tuner/search"
	"tuner/spec"
	"tuner/spec/csvfiles"
)

// Analyze describes analyze.yaml. formats are the allowed words of the field with that name.
func Analyze(formats []string) File {
	return File{
		Name: "analyze.yaml",
		Intro: "`tuner analyze -f analyze.yaml` reads this file. [analyze.yaml](analyze.md) explains how its parts work together. " +
			"Values are written as in [profile.yaml](profile.md#values).",
		Fields: []Field{
			{Name: "input", Type: path("out/minilm"), Required: true, Meaning: "The output folder of the campaign."},
			{Name: "output", Type: path("results"), Without: "`input`", Meaning: "Folder of the results."},
			{Name: "objective", Type: metric().orOfSeveral(), Without: "the profile's", Meaning: "The metric by which configurations are ranked. A metric without figures is an error that names those with figures."},
			{Name: "weights", Type: weights(metric().orOfSeveral()), Without: "the profile's", Meaning: "Several metrics in place of `objective`, as in [profile.yaml](profile-fields.md#weights)."},
			{Name: "constraints", Type: limits(false).orOfSeveralModels(), Without: "the profile's",
				Meaning: "Limits in place of all constraints of the profile, except that of accuracy, which was decided before anything was measured. `{}` is none."},
			price("the profile's"),
			{Name: "mode", Type: words(spec.ModeOnline, spec.ModeOffline), Without: "the profile's goal", Meaning: "The purpose of serving, see [Mode](analyze.md#mode)."},
			{Name: "at", Type: Type{Name: "`best`, `lowest`, `each`, `concurrency=N`, `request_rate=N`, of several models `scale=N`",
				Schema: `{"type": "string", "pattern": "^(best|lowest|each|concurrency=[1-9][0-9]*|(request_rate|scale)=[0-9.]+)$"}`,
				Good:   []string{"best", "lowest", "each", "concurrency=8", "request_rate=200", "scale=1.5"}, Bad: []string{"worst", "concurrency=0"}}, Without: "`best`; with `mode: online` `lowest`",
				Meaning: "The load at which configurations are compared, see [Load](analyze.md#load)."},
			{Name: "confidence", Type: probability(), Without: "the profile's `search.confidence`", Unit: "probability", Meaning: "The probability with which the recommended configuration keeps all constraints."},
			{Name: "rank", Type: words(spec.RankScore, spec.RankTop3Mean), Default: spec.RankScore,
				Meaning: "`score` ranks by the score of the best load. `top3-mean` ranks by the mean of the three highest throughputs, see [Rank](analyze.md#rank)."},
			{Name: "top", Type: whole(1, 1000), Default: "3", Unit: "configurations", Meaning: "The number of configurations that tables and charts bring out, beside the default."},
			formatsField(formats),
			plots(),
			columns("inference_output_fields", csvfiles.InferenceFields(), "metrics-model-inference.csv", csvfiles.BackendParameter),
			columns("gpu_output_fields", csvfiles.GPUFields(), "metrics-model-gpu.csv", ""),
			columns("server_output_fields", csvfiles.ServerFields(), "metrics-server-only.csv", ""),
		},
	}
}

// formatsField describes the report formats. A chart needs the repository that it serves.
func formatsField(formats []string) Field {
	t := list(words(formats...))
	t.Name = "list of " + quoted(formats)
	t.Good = []string{"[" + strings.Join(formats, ", ") + "]", formats[0]}
	return Field{Name: "formats", Type: t, Without: "all",
		Meaning: "The files that are written beside `report.md` and `result.json`, see [result files](results.md). `helm` needs `repository`, and only [tuner run](run.md) writes it; [`tuner export helm`](export.md) does so at any time."}
}

// plots describes the charts that the user requests.
func plots() Field {
	const axes = "x_axis: latency_p99, y_axis: throughput"
	x := metric()
	x.Name += ", `concurrency` or `request_rate`"
	x.Schema = fmt.Sprintf(`{"anyOf": [{"enum": ["concurrency", "request_rate", "error_rate"]}, %s]}`, x.Schema)
	x.Good, x.Bad = append(x.Good, "concurrency", "error_rate"), x.Bad[:1]
	y := metric()
	y.Schema = fmt.Sprintf(`{"anyOf": [{"enum": ["error_rate"]}, %s]}`, y.Schema)
	y.Bad = y.Bad[:1]
	return Field{Name: "plots", IsNamed: true, Without: "none", Meaning: "Further charts, `plots/simple/NAME.png`, with a curve for each configuration.", Fields: []Field{
		{Name: "NAME", Fields: []Field{
			{Name: "title", Type: text("Throughput within the limit"), Without: "the axes' names", Beside: axes, Meaning: "The title of the chart."},
			{Name: "x_axis", Type: x, Required: true, Beside: "y_axis: throughput", Meaning: "The horizontal axis."},
			{Name: "y_axis", Type: y, Required: true, Beside: "x_axis: latency_p99", Meaning: "The vertical axis."},
			{Name: "monotonic", Type: flag(), Default: "false", Beside: axes, Meaning: "Keeps only the points that are higher than all to their left."},
		}},
	}}
}

// columns describes the choice of a CSV file's columns.
func columns(name string, allowed []string, file, prefix string) Field {
	t := list(words(allowed...))
	t.Name = "list of " + quoted(allowed)
	t.Good = []string{"[" + strings.Join(allowed, ", ") + "]", allowed[0]}
	if prefix != "" {
		t.Name += fmt.Sprintf(", `%sNAME`", prefix)
		t.Schema = oneOrMore(fmt.Sprintf(`{"anyOf": [{"enum": %s}, {"type": "string", "pattern": "^%s.+"}]}`, raw(allowed), prefix))
		t.Good, t.Bad = append(t.Good, prefix+"intra_op_thread_count"), t.Bad[2:]
	}
	return Field{Name: name, Type: t, Without: "Model Analyzer's own choice", Meaning: fmt.Sprintf("The columns of `%s`, in this order. See [CSV columns](csv-columns.md).", file)}
}

// Gate describes gate.yaml.
func Gate() File {
	return File{
		Name: "gate.yaml",
		Intro: "`tuner gate -f gate.yaml` reads this file. [gate.yaml](gate.md) explains the verdict and the results. " +
			"Values are written as in [profile.yaml](profile.md#values).",
		Fields: []Field{
			{Name: "candidate", Type: path("model.onnx"), Required: true, Instead: "models", Fields: side(), Meaning: "The model that is judged: an ONNX file or a Triton model folder, also that of a deployed repository. As a section it has these fields."},
			{Name: "baseline", Type: path("main/model.onnx"), Without: "none: only `limits` are judged", Fields: side(),
				Meaning: "The model that the candidate is compared with: a path or a section as for `candidate`, or a baseline that `--save-baseline` wrote (`.json`)."},
			gateModels(),
			{Name: "load", Fields: []Field{
				{Name: "concurrency", Type: whole(1, 1<<20), Without: "2 · largest batch · instances of the baseline", Unit: "requests in flight", Meaning: "A closed loop of this concurrency."},
				{Name: "request_rate", Type: whole(1, 10_000_000), Without: "a closed loop", Unit: "requests per second", Meaning: "An open loop, in place of `concurrency`: requests arrive as `arrivals` says."},
				arrivalsField(),
				{Name: "client_batch_size", Type: whole(1, 1<<20), Default: "1", Unit: "inferences", Meaning: "Inferences in one request."},
				inputs(true),
			}},
			{Name: "metrics", Type: gateMetrics(),
				With: "baseline: main/model.onnx", Without: "`throughput` (at a rate `latency_avg`) and `latency_p99`",
				Meaning: "Metrics that must not be worse than the baseline's by more than the margin, a share of the baseline's value. Without a margin it is 2 %, and 10 % for percentiles from the 90th on. `cost` and `error_rate` are not among them."},
			{Name: "limits", Type: limits(true), With: "baseline: main/model.onnx", Without: "none",
				Meaning: "Limits that the candidate must keep by itself. `accuracy: {metric: cosine, min: 0.99}` limits how far its outputs may differ from those of the baseline's model."},
			{Name: "accuracy", With: accuracyLimits, Meaning: "How outputs are compared, where `limits` has `accuracy`.", Fields: gateAccuracy()},
			{Name: "budget", Type: duration(time.Second, 30*day), Default: "15m", Meaning: "The longest time to measure. Conversions and the comparison of outputs come before it."},
			{Name: "window", Type: duration(50*time.Millisecond, 5*time.Minute), Default: "500ms",
				Meaning: "The shortest length of a window. Each side has twelve in a pair, and slow models get longer ones. Use longer windows where noise keeps a gate from a verdict after 60 pairs."},
			{Name: "inconclusive", Type: words(spec.GatePass, spec.GateFail), Without: "neither", Meaning: "An inconclusive verdict counts as this one."},
			opLibraries(),
			epLibrary(),
			servedName("the candidate's file name"),
			{Name: "output", Type: path("out/gate"), Without: "`out/NAME-gate`", Meaning: "Folder of the results."},
			{Name: "history", Type: path("history.jsonl"), Without: "`history.jsonl` in `output`", Meaning: "Every gate adds a line to this file."},
		},
	}
}

// gateAccuracy lists the fields of the comparison of outputs.
func gateAccuracy() []Field {
	return []Field{
		{Name: "data", Type: path("inputs.npz"), With: accuracyLimits, Without: "random inputs", Meaning: "Inputs to compare on, see [data files](data.md)."},
		{Name: "rows", Type: whole(1, 1_000_000), With: accuracyLimits, Without: "all of the data, or up to 64 random ones", Unit: "rows", Meaning: "The most rows that are compared."},
		{Name: "command", Type: text("python3 metric.py"), With: strings.Replace(accuracyLimits, "cosine", "command", 1), Without: "none", Meaning: "A command that computes your own metric, for `metric: command`."},
	}
}

// gateMetrics is the type of the compared metrics.
func gateMetrics() Type {
	return Type{Name: "list of metrics, or of `{name, margin}`"}.of(fmt.Sprintf(`{"anyOf": [%[1]s, {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {"name": %[1]s, "margin": %[2]s}}]}`, metric().Schema, share(false).Schema),
		[]string{"[throughput, {name: latency_p99, margin: 10%}]", "throughput"}, []string{"[]", "[speed]", "[{margin: 2%}]", "[{name: throughput, margin: 0}]"})
}

// gateModels describes the section of several models.
func gateModels() Field {
	const load, candidate = "load: {concurrency: 9}", "candidate: b.onnx"
	const beside = candidate + ", baseline: a.onnx, " + load
	const accuracy = beside + ", limits: {accuracy: {metric: cosine, min: 0.99}}"
	return Field{Name: "models", IsNamed: true, Without: "one model: `candidate`", Meaning: "Several models on one server, under the names by which they are served, in place of `candidate`. All are under load together. " +
		"A name has letters, digits, `_` and `-`. `metrics` and `limits` at the top of the file are then those of the server, such as `memory`. See [several models](gate.md#several-models).", Fields: []Field{
		{Name: "NAME", Fields: []Field{
			{Name: "candidate", Type: path("model.onnx"), Required: true, Beside: load, SameAs: "candidate", Fields: side(), Meaning: "A path or a section, as [candidate](#candidate). `runtime` and `engine` are the same for all models."},
			{Name: "baseline", Type: path("main/model.onnx"), Beside: candidate + ", " + load, SameAs: "candidate", Fields: side(), Without: "none: only `limits` are judged",
				Meaning: "A path or a section: the model that the candidate is compared with. Either all models have one, or none; a model that did not change has the candidate's file."},
			{Name: "load", Required: true, Beside: candidate, Meaning: "The model's own traffic: one rate, or one number of clients.", Fields: []Field{
				{Name: "concurrency", Type: whole(1, 1<<20), Without: "an open loop, with `request_rate`", Unit: "requests in flight", Meaning: "A closed loop of this concurrency."},
				{Name: "request_rate", Type: whole(1, 10_000_000), Without: "a closed loop, with `concurrency`", Unit: "requests per second", Meaning: "An open loop."},
				{Name: "arrivals", Beside: "request_rate: 50", Default: "poisson", Type: arrivalsOfSeveral(), Meaning: "As [load.arrivals](#loadarrivals), without those that repeat."},
				{Name: "client_batch_size", Type: whole(1, 1<<20), Default: "1", Beside: "concurrency: 9", Unit: "inferences", Meaning: "Inferences in one request."},
				{Name: "inputs", SameAs: "load.inputs", Fields: inputs(true).Fields, Beside: "concurrency: 9", Without: "random values that the model accepts"},
			}},
			{Name: "metrics", Type: gateMetrics(), Beside: beside, Without: "`throughput` (at a rate `latency_avg`) and `latency_p99`", Meaning: "As [metrics](#metrics), of the model."},
			{Name: "limits", Type: Type{Name: "as [limits](#limits), without `energy`, and without `memory`, `cpu` and `gpu_*`, which are the server's", Schema: limits(true).Schema,
				Good: []string{"{latency_p99: 50ms, throughput: 9}", "{latency_p90: {max: 20ms}}"}, Bad: []string{"{speed: {max: 1}}"}}, Beside: beside, Without: "none", Meaning: "The model's own limits."},
			{Name: "accuracy", SameAs: "accuracy", Fields: gateAccuracy(), Beside: accuracy, Without: "the defaults of [accuracy](#accuracy)"},
		}},
	}}
}

const accuracyLimits = "baseline: main/model.onnx\nlimits: {accuracy: {metric: cosine, min: 0.99}}"

// of returns the type with a schema and example values.
func (t Type) of(schema string, good, bad []string) Type {
	t.Schema, t.Good, t.Bad = oneOrMore(schema), good, bad
	return t
}

// side describes one side of a gate.
func side() []Field {
	const model = "model: model.onnx"
	return []Field{
		{Name: "model", Type: path("model.onnx"), Required: true, Meaning: "An ONNX file or a Triton model folder."},
		{Name: "config", Type: path("config.pbtxt"), Without: "Triton's auto-completion", Beside: model, Meaning: "The config.pbtxt, for an ONNX file."},
		{Name: "runtime", Type: text("cpu@1.31.1", "./libonnxruntime.so"), Without: "`--ort-library`, else the usual build", Beside: model,
			Meaning: "An installed build of ONNX Runtime, or a library file, whose path has a slash."},
		{Name: "engine", Type: path("old/tuner"), Without: "this program", Beside: model, Meaning: "The program file of another tuner, whose engine serves."},
	}
}

// Sweep describes ortsweep.yaml.
func Sweep() File {
	return File{
		Name: "ortsweep.yaml",
		Intro: "`tuner ortsweep -f ortsweep.yaml` reads this file. [ortsweep.yaml](ortsweep.md) explains the race and the results. " +
			"Values are written as in [profile.yaml](profile.md#values).",
		Fields: sweepFields(),
	}
}

// sweepFields lists a profile's fields that describe sessions, and a sweep's own fields.
func sweepFields() []Field {
	shared := map[string]Field{}
	for _, f := range Profile().Fields {
		shared[f.Name] = f
	}
	target := shared["deploy_target"]
	target.Default, target.Meaning = spec.TargetTuner, "`triton` leaves out the settings that a stock Triton does not honour."
	config := shared["config"]
	config.Without, config.Meaning = "ONNX Runtime's own defaults", "A config.pbtxt, for an ONNX file. Its session settings are the default that everything is compared with; its batcher is left out."
	output := shared["output"]
	output.Without, output.Meaning = "`out/NAME-ortsweep`", "Folder of the results. It must be absent, empty, or an earlier sweep's."
	knobs := shared["space"]
	knobs.Without = "[the race's own values](ortsweep.md#space)"
	knobs.Meaning = "The settings and their values. Every setting may also be left alone: that is one value more."
	knobs.Type, knobs.Fields, knobs.Others = Type{}, sweepKnobs(), knobs.Others[:2]
	const variants = "space: {precision: [fp32, int8]}"
	limit := Type{Name: "mapping: `accuracy` to `{metric, min}` or `{metric, max}`", Schema: limits(true).Schema,
		Good: []string{"{accuracy: {metric: cosine, min: 0.99}}"}, Bad: []string{"{speed: {max: 1}}"}}
	model := shared["model"]
	model.Instead, model.Or = "", ""
	return []Field{model, config, opLibraries(), shared["name"], output,
		{Name: "measure", Type: words(spec.SweepLatency, spec.SweepThroughput), Default: spec.SweepLatency,
			Meaning: "`latency` is the mean compute time of one execution, by one session with one client. `throughput` counts the rows per second of all sessions, none of them ever idle."},
		{Name: "batch", Type: whole(1, 1<<20), Default: "1", Unit: "rows", Meaning: "Rows in one execution."},
		{Name: "sessions", Type: whole(1, 1<<20), Default: "1", With: "measure: throughput",
			Meaning: "Sessions side by side, all on one device. More than one needs `measure: throughput`. On GPUs the device is the first one of `config`'s instance group, else GPU 0."},
		target, knobs,
		{Name: "constraints", Type: limit, With: variants, Without: "`{accuracy: {metric: cosine, min: 0.99}}` where the space has other precisions or providers",
			Meaning: "The accuracy that a lower precision must keep. A precision that misses it is listed as rejected, and not ranked."},
		shared["accuracy"],
		{Name: "load", Fields: []Field{inputs(true)}},
		{Name: "search", Fields: []Field{
			{Name: "budget", Type: duration(time.Second, 30*day), Default: "3m", Meaning: "Time for the race, its launches included. Conversions and accuracy checks come before it."},
			{Name: "seed", Type: whole(0, 0), Default: "1", Meaning: "The order of the windows in a round."},
			{Name: "window", Type: duration(50*time.Millisecond, 5*time.Minute), Default: "250ms",
				Meaning: "The shortest length of a window. Later rounds take up to three times that, the finals up to four times. A slow model gets longer ones."},
		}},
	}
}

// sweepKnobs lists the knobs of a session.
func sweepKnobs() []Field {
	var list []Field
	for _, f := range sessionKnobs(false) {
		if scope, _ := search.KnobScope(f.Name); scope == search.ScopeArtifact || scope == search.ScopeEngine {
			f.With = ""
			list = append(list, f)
		}
	}
	return list
}
