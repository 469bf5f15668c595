package modelanalyzer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/internal/golden"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/csvfiles"
	"tuner/spec/document"
)

// machine returns a machine without GPUs and with a tritonserver. The first line of a file may
// change that: "# machine: gpus=2 server=none".
func machine(t *testing.T, text string) Machine {
	t.Helper()
	m := Machine{Dir: "/work", Server: "/opt/tritonserver/bin/tritonserver"}
	first, _, _ := strings.Cut(text, "\n")
	words, found := strings.CutPrefix(first, "# machine: ")
	if !found {
		return m
	}
	for word := range strings.FieldsSeq(words) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "gpus":
			if _, err := fmt.Sscan(value, &m.GPUs); err != nil {
				t.Fatal(err)
			}
		case "server":
			m.Server = ""
		}
	}
	return m
}

// facts describe a machine with eight cores and a model that batches.
var facts = search.Facts{Cores: 8, Batching: true, BaseMaxBatchSize: 16, BaseInstances: 1}

// factsOf returns the facts of a profile's models, all of which batch.
func factsOf(p spec.Profile) search.Facts {
	if !p.IsSeveral() {
		return facts
	}
	joint := search.Facts{Cores: facts.Cores, Parts: map[string]search.Facts{}}
	for _, name := range p.ModelNames() {
		joint.Parts[name] = facts
	}
	return joint
}

// describe prints the meaning of a file: its warnings, its campaigns and its analyses. Each
// campaign is a file of tuner's own, with the number of its configurations and its loads. For an
// invalid file it prints the mistakes.
func describe(path string, text []byte, m Machine) string {
	var b strings.Builder
	parse := ParseProfile
	if strings.HasPrefix(filepath.Base(path), "analyze") {
		parse = ParseAnalyze
	}
	f, err := parse("config/"+filepath.Base(path), text, m, Options{})
	for _, w := range f.Warnings {
		fmt.Fprintln(&b, "warning:", w)
	}
	if err != nil {
		fmt.Fprintln(&b, err)
		return b.String()
	}
	for _, c := range f.Campaigns {
		space := c.Profile.Space(factsOf(c.Profile))
		n, _ := space.Candidates().Len()
		fmt.Fprintf(&b, "--- %s: %d configurations beside the default, loads %v\n%s", c.Profile.Name, n, space.Load.Levels, c.Profile.Text)
		describeResults(&b, c.Analyze)
	}
	for _, a := range f.Analyses {
		fmt.Fprintln(&b, "--- analysis")
		describeResults(&b, a)
	}
	if f.Unreported {
		fmt.Fprintln(&b, "no results are written after the campaigns")
	}
	return b.String()
}

func describeResults(b *strings.Builder, a spec.Analyze) {
	fmt.Fprintf(b, "results of %s into %s (shared: %v), top %d", a.Input, a.Output, a.Shared, a.Top)
	if a.Objective != nil {
		fmt.Fprintf(b, ", objective %v", a.Objective.Terms)
	}
	for _, c := range a.Constraints {
		fmt.Fprintf(b, ", limit on %s", c.Metric)
	}
	if a.Configs != nil {
		fmt.Fprintf(b, ", only %v", a.Configs)
	}
	for _, p := range a.Plots {
		fmt.Fprintf(b, ", plot %+v", p)
	}
	for _, csv := range []csvfiles.File{a.CSV.Inference, a.CSV.GPU, a.CSV.Server} {
		if csv.Name != "" || csv.Columns != nil {
			fmt.Fprintf(b, ", %s %v", csv.Name, csv.Columns)
		}
	}
	fmt.Fprintln(b)
}

// Each file of the corpus has the meaning in its golden file.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v: want 30 at least", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !Is(text) {
				t.Error("is not taken for a file of Model Analyzer")
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".golden", describe(file, text, machine(t, string(text))))
		})
	}
}

// Every shipped example is valid.
func TestConfigs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../configs/model_analyzer/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples found (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parse := ParseProfile
		if filepath.Base(file) == "report.yaml" {
			parse = ParseAnalyze
		}
		f, err := parse(file, text, machine(t, ""), Options{})
		if err != nil || len(f.Campaigns)+len(f.Analyses) != 1 {
			t.Errorf("%s: %v, %d campaigns, %d analyses", file, err, len(f.Campaigns), len(f.Analyses))
		}
	}
}

// The tutorial on OLive and Model Analyzer has five preferred batch sizes by five instance counts
// for the model. It has one configuration for the default. All use a GPU with TensorRT in half
// precision.
func TestTutorialExpandsToItsCounts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/corpus/tutorial.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseProfile("config.yml", text, Machine{Dir: "/work", GPUs: 1, Server: "/opt/tritonserver"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, c := range f.Campaigns {
		got[c.Profile.Name], _ = c.Profile.Space(facts).Candidates().Len()
		if want := []float64{1, 2, 4, 8, 16, 32, 64, 128}; !cmp.Equal(c.Profile.Load.Levels, want) {
			t.Errorf("%s: loads %v, want %v", c.Profile.Name, c.Profile.Load.Levels, want)
		}
	}
	if want := map[string]int{"bertsquad_default": 1, "bertsquad": 25}; !cmp.Equal(got, want) {
		t.Errorf("configurations: %v, want %v", got, want)
	}
}

// A journal has the campaign as a file of tuner's own, which reads the same.
func TestJournalsTextReadsTheSame(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/corpus/parameters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseProfile("config.yml", text, machine(t, ""), Options{CheckpointDirectory: "/c", ExportPath: "/e"})
	if err != nil {
		t.Fatal(err)
	}
	p := f.Campaigns[0].Profile
	if Is(p.Text) {
		t.Error("the text is Model Analyzer's, not tuner's own")
	}
	again, err := spec.ParseProfile(p.Path, p.Text)
	if diff := cmp.Diff(p, again); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if p.Output != "/c/resnet" || f.Campaigns[0].Analyze.Output != "/e" {
		t.Errorf("campaign in %q, results in %q: the command line's folders are not used", p.Output, f.Campaigns[0].Analyze.Output)
	}
}

// The results of several models together are in the export path, for every place of file and
// working folder.
func TestJointFolder(t *testing.T) {
	t.Parallel()
	check := func(exportPath, flag, want string) {
		t.Helper()
		text := "model_repository: m\nprofile_models: [a, b]\nexport_path: " + exportPath
		for _, parse := range []func(string, []byte, Machine, Options) (File, error){ParseProfile, ParseAnalyze} {
			f, err := parse("config/f.yaml", []byte(text), machine(t, ""), Options{ExportPath: flag})
			if err != nil || f.Joint != want {
				t.Errorf("export_path: %s, --export-path %q: %q, %v; want %q", exportPath, flag, f.Joint, err, want)
			}
		}
	}
	check("/srv/export", "", "/srv/export")
	check("export/", "", "export")
	check(".", "/e", "/e")
}

// The documentation's rows and the code's table have the same fields with the same effects.
func TestDocsNameEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/model_analyzer.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]Section{"### The file itself": TopLevel, "### Of a model in `profile_models`": PerModel, "### `parameters` of a model": Parameters,
		"### `perf_analyzer_flags`": ClientFlags, "### Of a model in `analysis_models`": AnalysisSpec,
		"### Of a configuration in `report_model_configs`": ReportSpec}
	got := map[string]Effect{}
	var section Section
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			section = headings[line]
		}
		cells := strings.Split(line, "|")
		if section == "" || len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			got[string(section)+" "+strings.Trim(name, " `")] = Effect(strings.TrimSpace(cells[2]))
		}
	}
	want := map[string]Effect{}
	for _, f := range Fields() {
		key := string(f.Section) + " " + f.Name
		if _, twice := want[key]; twice {
			t.Errorf("%s is in the table twice", key)
		}
		if f.Effect != Applied && f.Text == "" {
			t.Errorf("%s has no reason", key)
		}
		want[key] = f.Effect
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("code (-) and docs/reference/model_analyzer.md (+) differ:\n%s", diff)
	}
}

// The table has every field of Model Analyzer's profile and report configurations, from its
// documentation and source.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	file := `config_file model_repository profile_models bls_composing_models ensemble_composing_models cpu_only_composing_models checkpoint_directory
		output_model_repository_path override_output_model_repository export_path concurrency batch_sizes request_rate client_max_retries client_protocol
		duration_seconds monitoring_interval collect_cpu_metrics gpus dcgm_disable always_report_gpu_metrics skip_summary_reports skip_detailed_reports
		model_type perf_analyzer_path perf_analyzer_timeout perf_analyzer_cpu_util perf_analyzer_max_auto_adjusts perf_output perf_output_path
		reload_model_disable triton_launch_mode triton_docker_image triton_http_endpoint triton_grpc_endpoint triton_metrics_url triton_server_path
		triton_install_path triton_output_path triton_docker_mounts triton_docker_labels triton_docker_args triton_docker_shm_size triton_server_flags
		triton_server_environment perf_analyzer_flags genai_perf_flags objectives constraints weighting latency_budget min_throughput
		run_config_search_mode run_config_search_disable run_config_search_min_concurrency run_config_search_max_concurrency
		run_config_search_min_request_rate run_config_search_max_request_rate run_config_search_min_model_batch_size
		run_config_search_max_model_batch_size run_config_search_min_instance_count run_config_search_max_instance_count
		run_config_search_max_binary_search_steps request_rate_search_enable run_config_profile_models_concurrently_enable early_exit_enable
		min_percentage_of_search_space max_percentage_of_search_space optuna_min_trials optuna_max_trials optuna_early_exit_threshold
		use_concurrency_formula concurrency_sweep_disable num_configs_per_model num_top_model_configs filename_model_inference filename_model_gpu
		filename_server_only inference_output_fields gpu_output_fields server_output_fields plots report_model_configs output_formats`
	ofModel := `cpu_only objectives constraints weighting parameters model_config_parameters perf_analyzer_flags genai_perf_flags triton_server_flags
		triton_server_environment triton_docker_args`
	for section, fields := range map[Section]string{TopLevel: file, PerModel: ofModel, Parameters: "batch_sizes concurrency request_rate"} {
		for name := range strings.FieldsSeq(fields) {
			if _, known := find(section, name); !known {
				t.Errorf("%s: no field %q in the table", section, name)
			}
		}
	}
}

// Each field is read. An unused or refused field gives its message. A field that applies is known.
func TestEachFieldIsRead(t *testing.T) {
	t.Parallel()
	base := "model_repository: m\nprofile_models:\n  a:\n"
	for _, f := range Fields() {
		text := ""
		switch f.Section {
		case TopLevel:
			text = "model_repository: m\nprofile_models: [a]\n" + f.Name + ": sample\n"
		case PerModel:
			text = base + "    " + f.Name + ": sample\n"
		case ClientFlags:
			text = base + "    perf_analyzer_flags:\n      " + f.Name + ": sample\n"
		default:
			continue
		}
		file, err := ParseProfile("f.yaml", []byte(text), machine(t, ""), Options{})
		isWarned := false
		for _, w := range file.Warnings {
			isWarned = isWarned || strings.HasSuffix(w.Path, f.Name) && w.Text == f.Text
		}
		isRefused := err != nil && strings.Contains(err.Error(), f.Name+": "+f.Text)
		if isWarned != (f.Effect == Unused) || isRefused != (f.Effect == Refused) && f.Effect != Applied {
			t.Errorf("%s %s (%s): warned %v, refused %v: %v", f.Section, f.Name, f.Effect, isWarned, isRefused, err)
		}
		if err != nil && strings.Contains(err.Error(), f.Name+": unknown field") {
			t.Errorf("%s %s: %v", f.Section, f.Name, err)
		}
	}
}

// Files of tuner's own are not recognized as Model Analyzer's, even with fields that both have.
func TestIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"model: a\nconstraints: {latency_p99: {max: 1}}", "input: out\nplots: all\ngpu_output_fields: gpu_uuid", "", "- a", "model: [", "a: &x [*x]"} {
		if Is([]byte(text)) {
			t.Errorf("%q is taken for a file of Model Analyzer", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/corpus/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("profile_models: &a [*a]"))
	f.Add([]byte("<<: {profile_models: a}\nmodel_repository: x"))
	m := Machine{Dir: "/work", Server: "/opt/tritonserver"}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		for _, parse := range []func(string, []byte, Machine, Options) (File, error){ParseProfile, ParseAnalyze} {
			file, err := parse("f.yaml", text, m, Options{})
			var mistakes document.Errors
			if err != nil && (!errors.As(err, &mistakes) || len(mistakes) == 0) {
				t.Fatalf("error is %T: %v", err, err)
			}
			for _, e := range mistakes {
				if e.File != "f.yaml" || e.Line < 1 || e.Problem == "" {
					t.Fatalf("incomplete mistake %+v", e)
				}
			}
			for _, c := range file.Campaigns {
				if err != nil {
					break
				}
				if again, err := spec.ParseProfile(c.Profile.Path, c.Profile.Text); err != nil || !cmp.Equal(again, c.Profile) {
					t.Fatalf("the journal's text does not read the same: %v", err)
				}
			}
		}
	})
}
