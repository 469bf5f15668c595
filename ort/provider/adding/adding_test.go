// Package adding_test proves that a new execution provider needs only a row in the table of package
// provider (docs/how-to/add-a-provider.md). The test adds two rows to a copy of the table, and runs
// itself again in a build with that copy. It takes the new providers through the program:
// profile.yaml, search space, config.pbtxt, session, programs, report, export.
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
	"tuner/export"
	"tuner/internal/overlay"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/ort/provider"
	"tuner/ortsweep/snippet"
	"tuner/report/formats"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// rows are two providers that do not exist. sundial has its own threads, and no stock Triton has
// it. slate computes on GPUs, and a stock Triton passes its options on.
const rows = `
	{
		Name: "sundial", Title: "Sundial", Class: "Sundial", Generic: "SUNDIAL",
		Options: []Option{
			{Name: "hours", Form: whole(1, MaxThreads)},
			{Name: "rounding", Form: word("up", "down"), Lowers: is("down")},
			{Name: "notes", Form: text(), Opens: outside},
		},
		Threads: Threads{Option: "hours", Only: true},
	},
	{
		Name: "slate", Title: "Slate", Class: "Slate",
		GPU: true, Triton: Passed, Flavour: "cuda", BuildsEngines: true,
		Options:  []Option{{Name: "chalk", Form: word("white", "red")}},
		Device:   Device{Option: "device_id", Set: true},
		Defaults: map[string]string{"device_id": "0"},
		CPP:      Call{ObjectCall, "Slate"},
		Go:       Call{ObjectCall, "Slate"},
	},
`

func TestAddAProvider(t *testing.T) {
	if _, known := provider.Find("sundial"); !known {
		if overlay.IsAgain() {
			t.Fatal("the build has no row for sundial")
		}
		overlay.Run(t, map[string]string{"../table.go": overlay.Table(t, "../table.go", rows)})
		return
	}
	t.Run("profile", testProfile)
	t.Run("configuration", testConfiguration)
	t.Run("programs", testPrograms)
	t.Run("report and export", testReportAndExport)
}

// parse reads a profile with a space.
func parse(target, space string) (spec.Profile, error) {
	return spec.ParseProfile("p.yaml", []byte("model: m.onnx\ndeploy_target: "+target+"\nload: {concurrency: 1}\nspace:\n"+space))
}

// testProfile reads profiles and enumerates their space.
func testProfile(t *testing.T) {
	p, err := parse(spec.TargetTuner, "  execution_provider: [cpu, sundial]\n  sundial.hours: [2, 3]\n  intra_op_threads: [1, 2]\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Space(search.Facts{Cores: 2}).Candidates().All() {
		got = append(got, c.Key())
	}
	want := []string{
		"execution_provider=cpu intra_op_threads=1",
		"execution_provider=cpu intra_op_threads=2",
		"execution_provider=sundial sundial.hours=2 intra_op_threads=0", // not 3: there are 2 cores
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	for space, want := range map[string]string{
		"  execution_provider: [sundial]\n":                       "sundial is not an execution provider of a stock Triton",
		"  execution_provider: [slate]\n  slate.chalk: [green]\n": `cannot set option "chalk" of execution provider slate to "green": expected one of white, red`,
		"  execution_provider: [slate]\n  slate.chalks: [red]\n":  `its options are chalk; did you mean "chalk"?`,
	} {
		if _, err := parse(spec.TargetTriton, space); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", space, err, want)
		}
	}
	if _, err := parse(spec.TargetTuner, "  execution_provider: [sundial]\n  sundial.rounding: [down]\n"); err == nil || !strings.Contains(err.Error(), "fewer bits") {
		t.Errorf("an option that lowers the precision: %v", err)
	}
	auto, err := parse(spec.TargetTriton, "  execution_provider: auto\n")
	if err != nil {
		t.Fatal(err)
	}
	values := auto.Space(search.Facts{}).Knobs[0].Values
	if !slices.Contains(values, "slate") || slices.Contains(values, "sundial") {
		t.Errorf("auto for a stock Triton is %v", values)
	}
}

// on makes a candidate from pairs of knobs and values.
func on(settings ...string) search.Candidate {
	var c search.Candidate
	for i := 0; i < len(settings); i += 2 {
		c = c.With(settings[i], search.Value(settings[i+1]))
	}
	return c
}

// testConfiguration writes config.pbtxt, and reads it as the search and the engine do.
func testConfiguration(t *testing.T) {
	for _, test := range []struct {
		candidate search.Candidate
		want      []string // parts of config.pbtxt, without white space
	}{
		{on(search.KnobExecutionProvider, "sundial", "sundial.hours", "2"),
			[]string{"kind:KIND_CPU", `cpu_execution_accelerator{name:"sundial"parameters{key:"hours"value:"2"}}`}},
		{on(search.KnobExecutionProvider, "slate", "slate.chalk", "red"),
			[]string{"kind:KIND_GPU", `gpu_execution_accelerator{name:"slate"parameters{key:"chalk"value:"red"}}`}},
	} {
		config := analyzetest.Config(t, test.candidate)
		text, err := modelconfig.Format(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(strings.Join(strings.Fields(string(text)), ""), strings.Join(strings.Fields(want), "")) {
				t.Errorf("%s: %s is missing in\n%s", test.candidate, want, text)
			}
		}
		chosen, _ := test.candidate.Get(search.KnobExecutionProvider)
		if got := knobs.Base(config)[search.KnobExecutionProvider]; got != chosen {
			t.Errorf("%s: its configuration reads as %s", test.candidate, got)
		}
		if err := modelconfig.RefuseUnsupported(config); err != nil {
			t.Errorf("%s: the engine refuses it: %v", test.candidate, err)
		}
	}
	config := analyzetest.Config(t, on(search.KnobExecutionProvider, "sundial"))
	config.Optimization.ExecutionAccelerators.CpuExecutionAccelerator[0].Parameters = map[string]string{"notes": "/etc/passwd"}
	if err := modelconfig.RefuseUnsupported(config); err == nil {
		t.Error("the engine lets a configuration name any file")
	}
}

// testPrograms writes the programs of `tuner ortsweep`, with the options that the engine gives a
// session.
func testPrograms(t *testing.T) {
	for _, test := range []struct {
		candidate            search.Candidate
		at                   modelconfig.Device
		python, cpp, program string
	}{
		{on(search.KnobExecutionProvider, "sundial", "sundial.notes", "cache"), modelconfig.Device{Cores: 3, Bound: true},
			`("SundialExecutionProvider", {"hours": "3", "notes": "cache"})`,
			`options.AppendExecutionProvider("SUNDIAL", sundial);`,
			`check(options.AppendExecutionProvider("SUNDIAL", map[string]string{`},
		{on(search.KnobExecutionProvider, "slate"), modelconfig.Device{OnGPU: true},
			`providers = ["SlateExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]`,
			`options.AppendExecutionProvider_Slate_V2(*slate);`,
			`check(options.AppendExecutionProviderSlate(slate))`},
	} {
		options, err := modelconfig.ORTOptions(analyzetest.Config(t, test.candidate))
		if err != nil {
			t.Fatal(err)
		}
		s := snippet.Session{Model: "m.onnx", Runtime: "cuda@1.2.3", Inputs: []snippet.Input{{Name: "x", Type: onnx.Float, Shape: []int64{1}}}}
		if s.Options, s.Providers, err = snippet.Given(options, test.at); err != nil {
			t.Fatal(err)
		}
		var python, cpp, golang bytes.Buffer
		for _, err := range []error{snippet.WritePython(&python, s), snippet.WriteCPP(&cpp, s), snippet.WriteGo(&golang, s)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for want, text := range map[string]string{test.python: python.String(), test.cpp: cpp.String(), test.program: golang.String()} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s is missing in\n%s", test.candidate, want, text)
			}
		}
	}
}

// testReportAndExport analyzes a campaign whose best configuration is on sundial, writes its
// reports, and exports it.
func testReportAndExport(t *testing.T) {
	profile := strings.NewReplacer("output: out", "output: out\ndeploy_target: tuner",
		"intra_op_threads: [1, 2]", "execution_provider: [cpu, sundial]\n  sundial.hours: [1, 2]").Replace(analyzetest.Profile)
	best := on(search.KnobExecutionProvider, "sundial", "sundial.hours", "2", search.KnobInstanceCount, "1", search.KnobMaxBatchSize, "16")
	campaign := analyzetest.New(t, profile).Won(best).Campaign()
	campaign.Facts.Assigned = map[string]string{"sundial": "all 2 nodes"}
	result, err := analyze.Analyze(campaign, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "analyzed")
	if _, err := formats.All().WriteReports(dir, result, nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sundial took all 2 nodes.", "sundial.hours 2"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is missing in the report\n%s", want, page)
		}
	}
	source := modelrepo.Source{Path: "../../../testdata/ort/add_sub.onnx", Digest: "d"}
	if err := modelrepo.Write(filepath.Join(dir, "repository"), source, analyzetest.Config(t, best)); err != nil {
		t.Fatal(err)
	}
	options := export.DefaultOptions()
	options.Inputs = []string{dir}
	exported, err := export.Write(export.Triton, filepath.Join(t.TempDir(), "deploy"), options)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(exported.Deployment.Notes, "\n")
	if want := `names the execution accelerator "sundial". ` + "`tuner serve` has it, but a stock Triton does not load the model"; !strings.Contains(notes, want) {
		t.Errorf("%q is missing in the notes\n%s", want, notes)
	}
	if got := exported.Deployment.Models[0].Threads; got != 2 {
		t.Errorf("an instance is given %d threads, want the provider's own", got)
	}
}
