package sessionoption

import "fmt"

// table has a row for each option that is a knob, in the order of lists, programs and sweeps.
var table = []Option{
	{
		Name: IntraOpThreads, Kind: Threads, Default: "0",
		About:     "Threads of one operator. OpenVINO has `openvino.num_of_threads` instead",
		Parameter: "intra_op_thread_count", Triton: true, Entry: "session.intra_op_num_threads",
		Python: line("options.intra_op_num_threads = %s"),
		CPP:    line("options.SetIntraOpNumThreads(%s);"),
		Go:     line("check(options.SetIntraOpNumThreads(%s))"),
	},
	{
		Name: GraphOptimization, Kind: Word, Words: []string{Disabled, "basic", "extended", "all"}, Default: "all",
		About:   "How far ONNX Runtime rewrites the graph of the model",
		IsLevel: true, Codes: map[string]string{Disabled: "2", "basic": "-1", "extended": "1", "all": "0"},
		Triton: true, Entry: "session.graph_optimization_level", ChangesResults: true,
		Swept: []string{"extended", "all"}, Short: "graph",
		Python: level("options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_%s",
			"DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED"),
		CPP: level("options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_%s);",
			"DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED"),
		Go: level("check(options.SetGraphOptimizationLevel(ort.GraphOptimizationLevel%s))",
			"DisableAll", "EnableBasic", "EnableExtended"),
	},
	{
		Name: ExecutionMode, Kind: Word, Words: []string{"sequential", Parallel}, Default: "sequential",
		About:     "Independent operators run one after the other, or at the same time",
		Parameter: "execution_mode", Codes: map[string]string{"sequential": "0", Parallel: "1"},
		Refusal: "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got %s .",
		Triton:  true, Entry: "session.execution_mode",
		Swept:  []string{"sequential", Parallel},
		Python: always("options.execution_mode = ort.ExecutionMode.ORT_PARALLEL"),
		CPP:    always("options.SetExecutionMode(ORT_PARALLEL);"),
		Go:     always("check(options.SetExecutionMode(ort.ExecutionModeParallel))"),
	},
	{
		Name: InterOpThreads, Kind: Threads, Default: "0",
		About:     "Threads that run operators side by side",
		Parameter: "inter_op_thread_count", Triton: true, Entry: "session.inter_op_num_threads",
		Needs: Need{Option: ExecutionMode, Value: Parallel, Idle: "1"}, Short: "inter-op",
		Python: line("options.inter_op_num_threads = %s"),
		CPP:    line("options.SetInterOpNumThreads(%s);"),
		Go:     line("check(options.SetInterOpNumThreads(%s))"),
	},
	{
		// The default differs beside a provider with its own thread pool
		// (modelconfig.Options.Given).
		Name: AllowSpinning, Kind: Switch, Default: On,
		About:   "Idle threads spin before they sleep",
		Entries: []string{IntraSpinning, InterSpinning},
		Swept:   []string{On, Off}, Short: "spinning",
	},
	{
		Name: MemoryArena, Kind: Switch, Default: On,
		About:     "Freed CPU memory is kept for the next run",
		Parameter: "enable_mem_arena", Triton: true, Entry: "session.enable_cpu_mem_arena",
		Swept: []string{On, Off}, Short: "arena",
		Python: always("options.enable_cpu_mem_arena = False"),
		CPP:    always("options.DisableCpuMemArena();"),
		Go:     always("check(options.SetCpuMemArena(false))"),
	},
	{
		Name: MemoryPattern, Kind: Switch, Default: On,
		About:     "Memory is planned ahead for known shapes",
		Parameter: "enable_mem_pattern", Triton: true, Entry: "session.enable_mem_pattern",
		Swept: []string{On, Off}, Short: "pattern",
		Python: always("options.enable_mem_pattern = False"),
		CPP:    always("options.DisableMemPattern();"),
		Go:     always("check(options.SetMemPattern(false))"),
	},
	{
		// The name of the parameter is that of the requests to add it to Triton's backend
		// (onnxruntime_backend, pull requests 141, 248 and 343). No release of it has it.
		Name: ShareSession, Kind: Switch, Default: Off,
		About:     "All instances on the CPU run one session, so that its weights are in memory once. They share its threads, too",
		Parameter: "share_session_between_instances", OfInstances: true, Short: "shared session",
	},
}

// line makes a Line from a format. %s stands for the value.
func line(format string) Line {
	return func(value string) string { return fmt.Sprintf(format, value) }
}

// always makes a Line for an option that has only one value other than its default.
func always(text string) Line { return func(string) string { return text } }

// level makes a Line from a format and the names of the graph levels below "all".
func level(format, disabled, basic, extended string) Line {
	names := map[string]string{Disabled: disabled, "basic": basic, "extended": extended}
	return func(value string) string { return fmt.Sprintf(format, names[value]) }
}
