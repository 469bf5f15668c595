package report

import (
	"bytes"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/modelconfig"
	"tuner/onnx"
	"tuner/search"
	"tuner/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// typical is a campaign with a clear winner, a tie, a failure and confirmed finalists.
func typical(t *testing.T) *analyzetest.Builder {
	best := analyzetest.Candidate(2, 1, 16)
	return analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8, 16).
		Measure(analyzetest.Candidate(1, 1, 4), 4).
		Measure(analyzetest.Candidate(1, 2, 8), 8, 16).
		Fail(analyzetest.Candidate(2, 2, 32), 8, measure.StageStart, "the engine was not ready after 1m0s\nlast words").
		Measure(analyzetest.Candidate(2, 1, 8), 8, 16).
		Measure(best, 8, 16, 32).
		Confirm(best, 16).Confirm(search.Candidate{}, 8).Confirm(search.Candidate{}, 8).Confirm(best, 16).
		End("the space is exhausted", false)
}

func result(t *testing.T, b *analyzetest.Builder, o analyze.Options) analyze.Result {
	t.Helper()
	r, err := analyze.Analyze(b.Campaign(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tight is a goal that nothing keeps.
func tight() *search.Goal {
	limit := 0.003
	return &search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-golden +got):\n%s", name, diff)
	}
}

func TestGoldens(t *testing.T) {
	t.Parallel()
	found := result(t, typical(t), analyze.Options{Top: 3})
	infeasible := result(t, typical(t), analyze.Options{Goal: tight()})
	alone := result(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4), analyze.Options{})
	failed := result(t, analyzetest.New(t, analyzetest.Profile).
		Fail(search.Candidate{}, 4, measure.StageLoad, "onnx runtime error 7: invalid graph"), analyze.Options{})
	markdown := func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, true) }
	for _, test := range []struct {
		golden string
		result analyze.Result
		write  func(io.Writer, analyze.Result) error
	}{
		{"found.table.txt", found, WriteTable},
		{"found.md", found, markdown},
		{"found.json", found, WriteJSON},
		{"found.csv", found, WriteInferenceCSV},
		{"found.pbtxt", found, WriteConfig},
		{"infeasible.table.txt", infeasible, WriteTable},
		{"infeasible.json", infeasible, WriteJSON},
		{"alone.table.txt", alone, WriteTable},
		{"alone.pbtxt", alone, WriteConfig},
		{"failed.table.txt", failed, WriteTable},
		{"failed.md", failed, markdown},
		{"gpu.csv", found, WriteGPUCSV},
		{"server.csv", found, WriteServerCSV},
	} {
		var b bytes.Buffer
		if err := test.write(&b, test.result); err != nil {
			t.Errorf("%s: %v", test.golden, err)
			continue
		}
		golden(t, test.golden, b.Bytes())
	}
}

// failing is a full disk.
type failing struct{}

var errFull = errors.New("disk full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	r := result(t, typical(t), analyze.Options{})
	markdown := func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, false) }
	for name, write := range map[string]func(io.Writer, analyze.Result) error{
		"table": WriteTable, "markdown": markdown, "json": WriteJSON, "inference": WriteInferenceCSV, "gpu": WriteGPUCSV,
		"server": WriteServerCSV, "latency chart": WriteLatencyChart, "load chart": WriteLoadChart, "config": WriteConfig,
	} {
		if err := write(failing{}, r); !errors.Is(err, errFull) {
			t.Errorf("%s: error is %v, want %v", name, err, errFull)
		}
	}
}

// A table with every column there is, and with wide figures, fits a terminal.
func TestTableFitsATerminal(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]",
		"intra_op_threads: [1, 2]\n  max_queue_delay: [0, 100us]\n  graph_optimization: [basic, all]", 1)
	b := analyzetest.New(t, profile).Measure(search.Candidate{}, 8)
	for _, delay := range []search.Value{"0us", "100us", "20000us"} {
		c := analyzetest.Candidate(2, 1, 16).With(search.KnobMaxQueueDelay, delay)
		if delay != "0us" {
			c = c.With(search.KnobGraphOptimization, "basic").With(search.KnobExecutionProvider, "openvino")
		}
		b.Measure(c, 16)
	}
	r := result(t, b, analyze.Options{})
	for i := range r.Configs {
		c := &r.Configs[i]
		c.Setup.Precision = []string{"fp32", "int8_static"}[i%2]
		c.Best.Values[measure.Throughput] = measure.Estimate{Value: 12345.6, Lo: 12222.2, Hi: 12469}
		c.Best.Values[measure.Memory] = measure.Estimate{Value: 12345e6}
	}
	var text bytes.Buffer
	if err := WriteTable(&text, r); err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"Delay", "Provider", "Precision"} {
		if !strings.Contains(text.String(), header) {
			t.Errorf("no column %s:\n%s", header, text.String())
		}
	}
	if !strings.Contains(text.String(), "graph_optimization basic") {
		t.Errorf("a knob without a column is not named:\n%s", text.String())
	}
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
			t.Errorf("line has %d columns: %s", n, line)
		}
	}
}

func TestChartsHaveSizeAndInk(t *testing.T) {
	t.Parallel()
	nothing := result(t, analyzetest.New(t, analyzetest.Profile).
		Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{})
	found := result(t, typical(t), analyze.Options{})
	for name, test := range map[string]struct {
		result  analyze.Result
		write   func(io.Writer, analyze.Result) error
		colored bool
	}{
		"latency":          {found, WriteLatencyChart, true},
		"load":             {found, WriteLoadChart, true},
		"infeasible":       {result(t, typical(t), analyze.Options{Goal: tight()}), WriteLatencyChart, true},
		"nothing measured": {nothing, WriteLatencyChart, false},
	} {
		var b bytes.Buffer
		if err := test.write(&b, test.result); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := picture.Bounds().Size(); got != (image.Point{X: 2000, Y: 1300}) {
			t.Errorf("%s: size is %v, want 2000 × 1300", name, got)
		}
		ink, colored := inkOf(picture, palette[0])
		if ink < 0.01 || ink > 0.3 {
			t.Errorf("%s: %.1f %% of the picture is not white", name, 100*ink)
		}
		if colored != test.colored {
			t.Errorf("%s: the best configuration's colour is there: %v, want %v", name, colored, test.colored)
		}
	}
}

// inkOf returns the share of dots that are not white, and whether a colour occurs.
func inkOf(picture image.Image, wanted color.RGBA) (share float64, found bool) {
	ink := 0
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
			if c != (color.RGBA{255, 255, 255, 255}) {
				ink++
			}
			found = found || c == wanted
		}
	}
	return float64(ink) / float64(bounds.Dx()*bounds.Dy()), found
}

func TestTicks(t *testing.T) {
	t.Parallel()
	labels := func(a axis) string {
		var list []string
		for _, tick := range a.ticks {
			list = append(list, tick.Label)
		}
		return strings.Join(list, " ")
	}
	check := func(name, want, got string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: ticks are %q, want %q", name, got, want)
		}
	}
	check("doublings", "1 2 4 8 16 32 64", labels(logAxis("", [2]float64{1, 64}, doublingTicks)))
	check("one load still has neighbours", "2 4 8", labels(logAxis("", [2]float64{4, 4}, doublingTicks)))
	check("a short range has more", "15 20 30 50 70 100", labels(logAxis("", [2]float64{15, 100}, decadeTicks)))
	check("decades", "5 10 20 50 100", labels(logAxis("", [2]float64{5, 120}, decadeTicks)))
	check("from zero in round steps", "0 200 400 600", labels(axis{ticks: linearTicks(717)}))
	check("small numbers", "0 0.05 0.1 0.15 0.2 0.25", labels(axis{ticks: linearTicks(0.26)}))
}

// withModel puts a model with external data on disk and its digest into the result.
func withModel(t *testing.T, r analyze.Result) analyze.Result {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"external.onnx", "external.bin"} {
		copyFile(t, filepath.Join("../testdata/ort", name), filepath.Join(dir, name))
	}
	model, err := onnx.Read(filepath.Join(dir, "external.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := model.Digest()
	if err != nil {
		t.Fatal(err)
	}
	models := slices.Clone(r.Header.Models)
	models[0].Path, models[0].SHA256 = model.Path(), digest
	r.Header.Models = models
	return r
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func allFormats() []string {
	return []string{spec.FormatTable, spec.FormatCSV, spec.FormatPNG, spec.FormatConfig, spec.FormatRepository}
}

func TestWriteAll(t *testing.T) {
	t.Parallel()
	r := withModel(t, result(t, typical(t), analyze.Options{}))
	dir := t.TempDir()
	for range 2 { // the second time replaces everything
		written, err := WriteAll(dir, r, allFormats())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, path := range written {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		want := []string{
			"results/metrics-model-inference.csv", "results/metrics-model-gpu.csv", "results/metrics-server-only.csv",
			"plots/throughput_vs_p99.png", "plots/throughput_vs_concurrency.png", "report.md", "result.json",
			"optimal/config.pbtxt", "repository/minilm",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	}
	checkDeployed(t, dir)
}

// checkDeployed reads the optimum back: the winner's settings, and the same configuration in both places.
func checkDeployed(t *testing.T, dir string) {
	t.Helper()
	var configs []*modelconfig.Config
	for _, path := range []string{"optimal/config.pbtxt", "repository/minilm/config.pbtxt"} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		c, err := modelconfig.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, c)
	}
	if !modelconfig.Equal(configs[0], configs[1]) {
		t.Error("optimal and repository differ")
	}
	c := configs[0]
	if c.GetMaxBatchSize() != 16 || c.GetInstanceGroup()[0].GetCount() != 2 || len(c.GetModelWarmup()) != 2 {
		t.Errorf("not the winner's configuration with two warm-ups: %v", c)
	}
	for _, name := range []string{"model.onnx", "external.bin"} {
		if info, err := os.Stat(filepath.Join(dir, "repository/minilm/1", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestOnlyTheFormatsAskedFor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	written, err := WriteAll(dir, result(t, typical(t), analyze.Options{}), []string{spec.FormatTable, spec.FormatConfig})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "report.md"), filepath.Join(dir, "result.json"), filepath.Join(dir, "optimal/config.pbtxt")}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestOutdatedOptimumIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := WriteAll(dir, withModel(t, result(t, typical(t), analyze.Options{})), allFormats()); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteAll(dir, result(t, typical(t), analyze.Options{Goal: tight()}), allFormats()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"optimal/config.pbtxt", "repository/minilm"} {
		if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

func TestForeignOptimumStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "optimal", "config.pbtxt")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("name: \"mine\"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "result.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := WriteAll(dir, result(t, typical(t), analyze.Options{Goal: tight()}), allFormats())
	if err == nil || !strings.Contains(err.Error(), "tuner did not write it") {
		t.Errorf("error is %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "name: \"mine\"\n" {
		t.Errorf("the user's file is %q, %v", text, err)
	}
}

func TestChangedModelIsRefused(t *testing.T) {
	t.Parallel()
	r := withModel(t, result(t, typical(t), analyze.Options{}))
	copyFile(t, "../testdata/ort/add_sub.onnx", r.Header.Models[0].Path)
	dir := t.TempDir()
	written, err := WriteAll(dir, r, allFormats())
	if err == nil || !strings.Contains(err.Error(), "changed since it was measured") {
		t.Errorf("error is %v", err)
	}
	if len(written) != 8 { // everything but the repository
		t.Errorf("written: %v", written)
	}
	if _, err := os.Stat(filepath.Join(dir, "repository")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a repository was begun (%v)", err)
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteAll(dir, result(t, typical(t), analyze.Options{}), allFormats()); err == nil {
		t.Error("a folder with other files was written into")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("folder has %d entries, want the user's one", len(entries))
	}
}

func TestRequestDims(t *testing.T) {
	t.Parallel()
	check := func(name string, dims, measured, want []int64) {
		t.Helper()
		got, ok := requestDims(dims, measured)
		if ok != (want != nil) || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, want)
		}
	}
	check("fixed", []int64{3, 224, 224}, nil, []int64{3, 224, 224})
	check("measured size", []int64{-1}, []int64{32}, []int64{32})
	check("own batch dimension", []int64{-1, -1}, []int64{32}, []int64{1, 32})
	check("unknown", []int64{-1, 4}, nil, nil)
}

// TestPictures writes the charts where one can look at them: TUNER_PICTURES=dir go test ./report -run Pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("TUNER_PICTURES")
	if dir == "" {
		t.Skip("set TUNER_PICTURES to a folder to write the charts there and look at them")
	}
	many := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 1, 2, 4, 8, 16)
	for instances := 1; instances <= 4; instances++ {
		for threads := 1; threads <= 3; threads++ {
			for _, batch := range []int{1, 2, 4, 8, 16} {
				many.Measure(analyzetest.Candidate(instances, threads, batch), 1, 4, 8, 16, 32)
			}
		}
	}
	long := analyzetest.Candidate(2, 1, 16).With(search.KnobMaxQueueDelay, "2000us").With(search.KnobExecutionProvider, "openvino").
		With(search.KnobGraphOptimization, "extended").With(search.KnobMemoryArena, "false")
	for name, r := range map[string]analyze.Result{
		"typical":    result(t, typical(t), analyze.Options{}),
		"infeasible": result(t, typical(t), analyze.Options{Goal: tight()}),
		"alone":      result(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4), analyze.Options{}),
		"many":       result(t, many, analyze.Options{}),
		"long names": result(t, typical(t).Measure(long, 8, 24, 48), analyze.Options{}),
		"failed": result(t, analyzetest.New(t, analyzetest.Profile).
			Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{}),
	} {
		for _, f := range files(r, allFormats()) {
			if f.format != spec.FormatPNG {
				continue
			}
			var b bytes.Buffer
			if err := f.write(&b, r); err != nil {
				t.Fatal(err)
			}
			if err := writeFile(filepath.Join(dir, name, filepath.Base(f.path)), b.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestModelFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(file, want string) {
		t.Helper()
		if got := modelFolder(filepath.Join(dir, file)); got != want {
			t.Errorf("model folder of %s is %q, want %q", file, got, want)
		}
	}
	check("repo/minilm/1/model.onnx", "")
	copyFile(t, "testdata/found.pbtxt", makeFolder(t, dir, "repo/minilm")+"/config.pbtxt")
	check("repo/minilm/1/model.onnx", filepath.Join(dir, "repo/minilm"))
	check("repo/minilm/1/model.onnx/model.onnx", filepath.Join(dir, "repo/minilm"))
	check("elsewhere/minilm.onnx", "")
}

func makeFolder(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
