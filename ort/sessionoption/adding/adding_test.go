// Package adding_test proves that a new session option needs only a row in the table of package
// sessionoption (docs/how-to/add-a-session-option.md). The test adds two rows to a copy of the
// table, and runs itself again in a build with that copy. It takes the new options through the
// program: profile.yaml, search space, config.pbtxt, session, programs, report.
package adding_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/engine"
	"tuner/engine/hostpolicy"
	"tuner/engine/onnxruntime"
	"tuner/internal/orttest"
	"tuner/internal/overlay"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/sessionoption"
	"tuner/ortsweep/snippet"
	"tuner/report/formats"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/draft"
	"tuner/spec/knobs"
)

// rows are two options that are not knobs. model_format is a parameter of config.pbtxt here, and
// package ort sets it by its session entry. denormals_as_zero is a session entry in config.pbtxt,
// which a stock Triton does not honour.
const rows = `
	{
		Name: "model_format", Kind: Word, Words: []string{"ONNX", "ORT"}, Default: "ONNX",
		About:     "The format of the model file",
		Parameter: "model_format", Triton: true, Entry: "session.load_model_format",
		Swept: []string{"ONNX", "ORT"}, Short: "format",
	},
	{
		Name: "denormals_as_zero", Kind: Switch, Default: Off,
		About:   "Whether tiny numbers count as zero",
		Entries: []string{"session.set_denormal_as_zero"}, ChangesResults: true,
		Swept: []string{On, Off}, Short: "denormals as zero",
	},
`

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

func TestAddASessionOption(t *testing.T) {
	if _, known := sessionoption.Find("model_format"); !known {
		if overlay.IsAgain() {
			t.Fatal("the build has no row for model_format")
		}
		overlay.Run(t, map[string]string{"../table.go": overlay.Table(t, "../table.go", rows)})
		return
	}
	t.Run("profile", testProfile)
	t.Run("sweep", testSweep)
	t.Run("configuration", testConfiguration)
	t.Run("programs", testPrograms)
	t.Run("report", testReport)
	t.Run("session", testSession)
}

// parse reads a profile with a space.
func parse(target, space string) (spec.Profile, error) {
	return spec.ParseProfile("p.yaml", []byte("model: m.onnx\ndeploy_target: "+target+"\nload: {concurrency: 1}\nspace:\n"+space))
}

// keys lists the candidates of a profile's space.
func keys(t *testing.T, target string) []string {
	t.Helper()
	p, err := parse(target, "  model_format: [ONNX, ORT]\n  denormals_as_zero: [true, false]\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Space(search.Facts{TritonOnly: target == spec.TargetTriton}).Candidates().All() {
		got = append(got, c.Key())
	}
	return got
}

// testProfile reads profiles and enumerates their space.
func testProfile(t *testing.T) {
	want := []string{
		"model_format=ONNX denormals_as_zero=true", "model_format=ONNX denormals_as_zero=false",
		"model_format=ORT denormals_as_zero=true", "model_format=ORT denormals_as_zero=false",
	}
	if diff := cmp.Diff(want, keys(t, spec.TargetTuner)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"model_format=ONNX", "model_format=ORT"}, keys(t, spec.TargetTriton)); diff != "" {
		t.Errorf("candidates for a stock Triton (-want +got):\n%s", diff)
	}
	for space, want := range map[string]string{
		"  model_format: [XML]\n":             "allowed: ONNX, ORT",
		"  denormals_as_zero: [1]\n":          "allowed: true, false",
		"  parameters: {model_format: ORT}\n": "use the knob model_format",
		"  modelformat: [ORT]\n":              `did you mean "model_format"?`,
		"  denormals_as_zero: [true]\n  session.set_denormal_as_zero: [\"1\"]\n": "is set by denormals_as_zero, too",
	} {
		if _, err := parse(spec.TargetTuner, space); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", space, err, want)
		}
	}
	text, err := draft.NewStarter("m.onnx").Profile()
	if err != nil || !strings.Contains(string(text), "# model_format: [ONNX, ORT]\n") || strings.Contains(string(text), "denormals_as_zero") {
		t.Errorf("the first profile.yaml, %v:\n%s", err, text)
	}
}

// testSweep reads an ortsweep.yaml without a space.
func testSweep(t *testing.T) {
	s, err := spec.ParseSweep("s.yaml", []byte("model: m.onnx\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model_format", "denormals_as_zero"} {
		if !slices.ContainsFunc(s.Knobs, func(k search.Knob) bool { return k.Name == name && len(k.Values) == 2 }) {
			t.Errorf("%s is not swept: %v", name, s.Knobs)
		}
	}
}

// best sets both options.
func best() search.Candidate {
	return search.Candidate{}.With("model_format", "ORT").With("denormals_as_zero", "true")
}

// testConfiguration writes config.pbtxt, and reads it as the search and the engine do.
func testConfiguration(t *testing.T) {
	config := analyzetest.Config(t, best())
	for key, want := range map[string]string{"model_format": "ORT", "session.set_denormal_as_zero": "1"} {
		if got := config.GetParameters()[key].GetStringValue(); got != want {
			t.Errorf("parameter %s is %q, want %q", key, got, want)
		}
	}
	for at, want := range map[*modelconfig.Config][2]search.Value{
		config: {"ORT", "true"}, analyzetest.Config(t, search.Candidate{}): {"ONNX", "false"},
	} {
		base := knobs.Base(at)
		if got := [2]search.Value{base["model_format"], base["denormals_as_zero"]}; got != want {
			t.Errorf("the configuration reads as %v, want %v", got, want)
		}
	}
	if err := modelconfig.RefuseUnsupported(config); err != nil {
		t.Errorf("the engine refuses it: %v", err)
	}
	for text, want := range map[string]string{
		`parameters { key: "session.load_model_format" value { string_value: "ORT" } }`: "set model_format, which it would override",
		`parameters { key: "model_format" value { string_value: "XML" } }`:              "unsupported model_format 'XML'",
	} {
		config, err := modelconfig.Parse("config.pbtxt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := modelconfig.ORTOptions(config)
		refused := modelconfig.RefuseUnsupported(config)
		if !errorHas(wrong, want) && !errorHas(refused, want) {
			t.Errorf("%s: %v, %v, want %q", text, wrong, refused, want)
		}
	}
}

func errorHas(err error, want string) bool { return err != nil && strings.Contains(err.Error(), want) }

// testPrograms writes the programs of `tuner ortsweep`.
func testPrograms(t *testing.T) {
	options, err := modelconfig.ORTOptions(analyzetest.Config(t, best()))
	if err != nil {
		t.Fatal(err)
	}
	s := snippet.Session{Model: "m.onnx", Runtime: "cpu@1.2.3", Options: options, Inputs: []snippet.Input{{Name: "x", Type: onnx.Float, Shape: []int64{1}}}}
	var python, cpp, golang bytes.Buffer
	for _, err := range []error{snippet.WritePython(&python, s), snippet.WriteCPP(&cpp, s), snippet.WriteGo(&golang, s)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for text, call := range map[*bytes.Buffer]string{
		&python: "options.add_session_config_entry(", &cpp: "options.AddConfigEntry(", &golang: "options.AddSessionConfigEntry(",
	} {
		for _, entry := range []string{`"session.load_model_format", "ORT")`, `"session.set_denormal_as_zero", "1")`} {
			if !strings.Contains(text.String(), call+entry) {
				t.Errorf("%s%s is missing in\n%s", call, entry, text)
			}
		}
	}
}

// testReport analyzes a campaign whose best configuration has the options, and writes its reports.
func testReport(t *testing.T) {
	profile := strings.NewReplacer("output: out", "output: out\ndeploy_target: tuner",
		"intra_op_threads: [1, 2]", "model_format: [ONNX, ORT]\n  denormals_as_zero: [true, false]").Replace(analyzetest.Profile)
	won := best().With(search.KnobInstanceCount, "1").With(search.KnobMaxBatchSize, "16")
	result, err := analyze.Analyze(analyzetest.New(t, profile).Won(won).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "analyzed")
	if _, err := formats.All().WriteReports(dir, result, nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(page), `model\_format ORT`) || !strings.Contains(string(page), `denormals\_as\_zero true`) {
		t.Errorf("the report, %v:\n%s", err, page)
	}
}

// testSession makes sessions with ONNX Runtime, which refuses an ONNX file in its own format.
func testSession(t *testing.T) {
	backend := onnxruntime.New(orttest.Runtime(t))
	files := engine.ModelFiles{Path: "../../../testdata/ort/add_sub.onnx"}
	for format, want := range map[search.Value]string{"ONNX": "", "ORT": "onnx runtime error"} {
		config := analyzetest.Config(t, best().With("model_format", format))
		session, err := backend.NewSession(t.Context(), files, config, engine.Instance{Policy: hostpolicy.Any()})
		switch {
		case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", format, err, want)
		case err == nil:
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
