package modelanalyzer

import (
	"slices"
	"sync"
)

// Section is a part of a file that has fields.
type Section string

// The sections of Model Analyzer's files.
const (
	TopLevel     Section = "file"                // the file itself
	PerModel     Section = "model"               // an entry of profile_models
	Parameters   Section = "parameters"          // of a model
	ClientFlags  Section = "perf_analyzer_flags" // of the file or a model
	AnalysisSpec Section = "analysis model"      // an entry of analysis_models
	ReportSpec   Section = "report model"        // an entry of report_model_configs
)

// Effect is the effect of a field.
type Effect string

// The effects.
const (
	Applied Effect = "applied" // it has the same meaning here
	Unused  Effect = "unused"  // it changes nothing here; using it gives a warning
	// Refused: an error, since something else would be measured than the file requests
	Refused Effect = "refused"
)

// Field is a field of Model Analyzer's files. docs/reference/model_analyzer.md has a row for each.
type Field struct {
	Section Section
	Name    string
	Effect  Effect
	Text    string // of the warning or the error
	Hint    string // remedy for an error
}

// Fields lists every field of Model Analyzer's profile, report and (until its version 1.11) analyze
// files.
func Fields() []Field {
	return slices.Concat(appliedFields(), unusedFields(), refusedFields(), modelFields(), clientFields())
}

// appliedFields lists the file's fields with the same meaning here.
func appliedFields() []Field {
	return slices.Concat(
		fields(TopLevel, Applied, "", "model_repository", "profile_models", "checkpoint_directory", "export_path", "concurrency", "batch_sizes",
			"request_rate", "client_protocol", "model_type", "collect_cpu_metrics", "gpus", "skip_summary_reports", "triton_launch_mode",
			"triton_http_endpoint", "triton_grpc_endpoint", "triton_metrics_url", "triton_server_path", "triton_output_path",
			"triton_server_flags", "triton_server_environment", "perf_analyzer_flags", "objectives", "constraints", "latency_budget",
			"min_throughput", "run_config_search_mode", "run_config_search_disable", "run_config_search_min_concurrency",
			"run_config_search_max_concurrency", "run_config_search_min_request_rate", "run_config_search_max_request_rate",
			"run_config_search_min_model_batch_size", "run_config_search_max_model_batch_size", "run_config_search_min_instance_count",
			"run_config_search_max_instance_count", "request_rate_search_enable", "num_configs_per_model", "filename_model_inference",
			"filename_model_gpu", "filename_server_only", "inference_output_fields", "gpu_output_fields", "server_output_fields",
			"report_model_configs", "analysis_models", "plots", concurrentField, logicField, ensembleField, onCPUField),
	)
}

// unusedFields lists the file's fields without an effect here.
func unusedFields() []Field {
	return slices.Concat(
		fields(TopLevel, Unused, "results are written as CSV, PNG, HTML, JSON and Markdown; nothing is written as PDF", "output_formats"),
		fields(TopLevel, Unused, "is Model Analyzer's own command line: this file is the one that -f names", "config_file"),
		fields(TopLevel, Unused, "variants are built below the campaign's folder; nothing is written or removed there", "output_model_repository_path",
			"override_output_model_repository"),
		fields(TopLevel, Unused, "how long a server may take to be ready is fixed: a minute, and 2 minutes to load the model", "client_max_retries"),
		fields(TopLevel, Unused, "a server without a model is not measured: metrics-server-only.csv has no rows", "duration_seconds"),
		fields(TopLevel, Unused, "GPUs, memory and clock are read four times a second", "monitoring_interval"),
		fields(TopLevel, Unused, "GPUs are read through NVML, or from the server's metrics page; DCGM is not used", "dcgm_disable"),
		fields(TopLevel, Unused, "GPUs are always read where there are any", "always_report_gpu_metrics"),
		fields(TopLevel, Unused, "the report has all configurations in detail", "skip_detailed_reports"),
		fields(TopLevel, Unused, "tuner has a load generator of its own, and runs no perf_analyzer", "perf_analyzer_path", "perf_analyzer_timeout",
			"perf_analyzer_cpu_util", "perf_analyzer_max_auto_adjusts", "perf_output", "perf_output_path"),
		fields(TopLevel, Unused, "genai-perf is not run", "genai_perf_flags"),
		fields(TopLevel, Unused, "no container is started: see triton_launch_mode", "triton_docker_image", "triton_docker_mounts",
			"triton_docker_labels", "triton_docker_args", "triton_docker_shm_size"),
		fields(TopLevel, Unused, "is for the C API, which is not used", "triton_install_path"),
		fields(TopLevel, Unused, "each load is bisected as far as its range allows", "run_config_search_max_binary_search_steps"),
		fields(TopLevel, Unused, "the search itself knows when more load cannot help", "early_exit_enable"),
		fields(TopLevel, Unused, "Optuna's sampler is not used: `guided` ends when nothing better is to be expected", "min_percentage_of_search_space",
			"max_percentage_of_search_space", "optuna_min_trials", "optuna_max_trials", "optuna_early_exit_threshold", "use_concurrency_formula"),
		fields(TopLevel, Unused, "the best load of each configuration is sought in any case", "concurrency_sweep_disable"),
		fields(TopLevel, Unused, "models are ranked each by itself", "num_top_model_configs"),
		fields(TopLevel, Unused, "results are always summarized", "summarize"),
		fields(TopLevel, Unused, "is of versions before 1.10, which did not search max_batch_size; that is searched instead",
			"run_config_search_max_preferred_batch_size", "run_config_search_preferred_batch_size_disable"),
	)
}

// refusedFields lists the file's fields that request unsupported features.
func refusedFields() []Field {
	return slices.Concat(
		refused(TopLevel, "a server that may not load models runs one configuration, and there is nothing to search",
			"`tuner perf` measures it at a range of loads", "reload_model_disable"),
		refused(TopLevel, "belongs to a model, in profile_models", "", weightField),
	)
}

// modelFields lists the fields of models, for all places that list models.
func modelFields() []Field {
	return slices.Concat(
		fields(PerModel, Applied, "", "cpu_only", "objectives", "constraints", "parameters", "model_config_parameters", "perf_analyzer_flags",
			"triton_server_flags", "triton_server_environment", weightField),
		fields(PerModel, Unused, "genai-perf is not run", "genai_perf_flags"),
		fields(PerModel, Unused, "no container is started: see triton_launch_mode", "triton_docker_args"),

		fields(Parameters, Applied, "", "batch_sizes", "concurrency", "request_rate"),
		fields(AnalysisSpec, Applied, "", "objectives", "constraints"),
		fields(ReportSpec, Applied, "", "plots"),
	)
}

// clientFields lists perf_analyzer's flags.
func clientFields() []Field {
	return slices.Concat(
		fields(ClientFlags, Applied, "", "batch-size", "b", "shape", "input-data", "measurement-interval", "concurrency-range", "request-rate-range", "percentile",
			"http-header", secureFlag, "ssl-grpc-root-certifications-file", "ssl-grpc-private-key-file", "ssl-grpc-certificate-chain-file",
			"ssl-https-verify-peer", "ssl-https-verify-host", "ssl-https-ca-certificates-file", "ssl-https-client-certificate-type",
			"ssl-https-client-certificate-file", "ssl-https-private-key-type", "ssl-https-private-key-file"),
		fields(ClientFlags, Unused, "windows are judged by confidence intervals, not by perf_analyzer's stability", "measurement-mode",
			"measurement-request-count", "stability-percentage", "max-trials", "max-threads", "async", "sync", "binary-search", "verbose",
			"extra-verbose", "verbose-csv", "latency-report-file", "latency-threshold"),
		fields(ClientFlags, Unused, "the address, the protocol and the metrics page are those of the file's own fields", "url", "protocol", "collect-metrics",
			"metrics-url", "metrics-interval", "service-kind", "model-name", "triton-server-directory", "model-repository"),
		fields(ClientFlags, Unused, "made text is of digits", "string-length", "string-data"),
		fields(ClientFlags, Unused, "requests of a rate come as those of independent users do (Poisson)", "request-distribution"),
		fields(ClientFlags, Unused, "tensors travel over the network", "shared-memory", "output-shared-memory-size"),
		fields(ClientFlags, Unused, "is for other servers than Triton, or for other models than ONNX", "model-signature-name", "grpc-compression-algorithm"),
		refused(ClientFlags, "is another load than the search can measure", "`tuner perf` replays it on a server", "request-intervals",
			"num-of-sequences", "sequence-length", "sequence-length-variation", "sequence-id-range", "streaming"),
		refused(ClientFlags, "the newest version of the model is what is measured", "remove the line", "model-version"),
	)
}

func fields(s Section, e Effect, text string, names ...string) []Field {
	list := make([]Field, len(names))
	for i, name := range names {
		list[i] = Field{Section: s, Name: name, Effect: e, Text: text}
	}
	return list
}

func refused(s Section, text, hint string, names ...string) []Field {
	list := fields(s, Refused, text, names...)
	for i := range list {
		list[i].Hint = hint
	}
	return list
}

// table is Fields, made once.
var table = sync.OnceValue(Fields)

func find(s Section, name string) (Field, bool) {
	list := table()
	i := slices.IndexFunc(list, func(f Field) bool { return f.Section == s && f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return list[i], true
}

func names(s Section) []string {
	var list []string
	for _, f := range table() {
		if f.Section == s {
			list = append(list, f.Name)
		}
	}
	return list
}
