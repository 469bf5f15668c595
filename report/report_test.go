package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/plotstyle"
	"tuner/journal"
	"tuner/measure"
	"tuner/precision/accuracy"
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
		Measure(analyzetest.Candidate(2, 1, 8), 8, 16, 16).
		Measure(best, 8, 16, 32).
		Confirm(best, 16).Confirm(search.Candidate{}, 8).Confirm(search.Candidate{}, 8).Confirm(best, 16).
		Curve(search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"}), 8, 16).
		End("the space is exhausted", false)
}

// complete is a campaign that measured all that its space has.
func complete(t *testing.T) *analyzetest.Builder {
	profile := strings.NewReplacer("intra_op_threads: [1, 2]", "intra_op_threads: [1]", "instance_count: [1, 2]", "instance_count: [1]",
		"max_batch_size: [4, 8, 16]", "max_batch_size: [4]", "min: 1, max: 64", "min: 4, max: 8").Replace(analyzetest.Profile)
	return analyzetest.New(t, profile).
		Measure(search.Candidate{}, 4, 8).
		Measure(analyzetest.Candidate(1, 1, 4), 4, 8).
		End("the space is exhausted", false)
}

// withVariants is a campaign with int8, which serves on cpu with two operators in fp32 and is rejected on OpenVINO, and with
// fp16, which could not be made.
func withVariants(t *testing.T) *analyzetest.Builder {
	profile := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]",
		"intra_op_threads: [1, 2]\n  precision: [fp32, int8, fp16]\n  execution_provider: [cpu, openvino]", 1) +
		"accuracy: {data: sentences.npz}\n"
	compared := func(mean, p1, least, largest float64) accuracy.Report {
		return accuracy.Report{Rows: 240, Outputs: map[string]accuracy.Figures{"embedding": {
			CosineMean: mean, CosineP1: p1, CosineMin: least, MaxAbs: largest, MeanAbs: largest / 10, MaxRel: math.NaN(), MeanRel: math.NaN(),
			Top1: math.NaN(), Top5: math.NaN(), Neighbour: 0.89,
		}}}
	}
	int8 := func(c search.Candidate) search.Candidate {
		return c.With(search.KnobPrecision, "int8").With(search.KnobExecutionProvider, "cpu")
	}
	best := int8(analyzetest.Candidate(2, 1, 16))
	return analyzetest.New(t, profile).
		Compared(
			journal.Variant{Precision: "fp32", Path: "minilm.onnx", SHA256: "ab12", Bytes: 90_000_000,
				Accuracy: map[string]accuracy.Report{"openvino": compared(1, 0.99999, 0.9999, 0.0001)}},
			journal.Variant{Precision: "int8", Path: "cache/int8.onnx", SHA256: "cd34", Bytes: 58_700_000, Converted: 34,
				Notes:    []string{"2 weights were denormal and became 0"},
				Kept:     []journal.KeptNode{{Node: "/layer.5/MatMul_3", Error: 0.0021}, {Node: "/layer.4/MatMul_3", Error: 0.0012}},
				Accuracy: map[string]accuracy.Report{"cpu": compared(0.9931, 0.985, 0.983, 0.05), "openvino": compared(0.9612, 0.93, 0.91, 0.2)},
				Rejected: map[string]string{"openvino": `cosine is 0.9612, less than 0.99 (output "embedding")`}},
			journal.Variant{Precision: "fp16", Rejected: map[string]string{"": "cannot convert to fp16: opset 6 is too old"}}).
		Measure(search.Candidate{}, 4, 8, 16).
		Measure(int8(analyzetest.Candidate(2, 1, 4)), 8, 16).
		Measure(best, 16, 32).
		Confirm(best, 32).Confirm(search.Candidate{}, 8).Confirm(search.Candidate{}, 8).Confirm(best, 32).
		End("the space is exhausted", false)
}

func ranked(t *testing.T, b *analyzetest.Builder, o analyze.Options) analyze.Result {
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
	found := ranked(t, typical(t), analyze.Options{Top: 3})
	variants := ranked(t, withVariants(t), analyze.Options{})
	infeasible := ranked(t, typical(t), analyze.Options{Goal: tight()})
	nothing := ranked(t, complete(t), analyze.Options{Goal: tight()})
	alone := ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4), analyze.Options{})
	failed := ranked(t, analyzetest.New(t, analyzetest.Profile).
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
		{"variants.table.txt", variants, WriteTable},
		{"variants.md", variants, markdown},
		{"variants.json", variants, WriteJSON},
		{"variants.pbtxt", variants, WriteConfig},
		{"infeasible.table.txt", infeasible, WriteTable},
		{"infeasible.json", infeasible, WriteJSON},
		{"alone.table.txt", alone, WriteTable},
		{"alone.pbtxt", alone, WriteConfig},
		{"failed.table.txt", failed, WriteTable},
		{"failed.md", failed, markdown},
		{"gpu.csv", found, WriteGPUCSV},
		{"server.csv", found, WriteServerCSV},
		{"found.junit.xml", found, WriteJUnit},
		{"infeasible.junit.xml", infeasible, WriteJUnit},
		{"nothing.table.txt", nothing, WriteTable},
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
	r := ranked(t, typical(t), analyze.Options{})
	markdown := func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, false) }
	page := func(w io.Writer, r analyze.Result) error { return WriteHTML(w, r, true) }
	for name, write := range map[string]func(io.Writer, analyze.Result) error{
		"table": WriteTable, "markdown": markdown, "html": page, "json": WriteJSON, "inference": WriteInferenceCSV, "gpu": WriteGPUCSV,
		"server": WriteServerCSV, "chart": WriteLoadChart, "stages": WriteStagesChart, "config": WriteConfig, "junit": WriteJUnit,
		"location": func(w io.Writer, _ analyze.Result) error { return writeLocation(w, "optimal") },
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
	r := ranked(t, b, analyze.Options{})
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
	nothing := ranked(t, analyzetest.New(t, analyzetest.Profile).
		Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{})
	found := ranked(t, typical(t), analyze.Options{})
	for name, test := range map[string]struct { // few: under the race detector each takes seconds
		result  analyze.Result
		write   func(io.Writer, analyze.Result) error
		color   color.RGBA
		colored bool
		height  int
	}{
		"latency":          {found, WriteLatencyChart, palette[0], true, 1300},
		"stages":           {found, WriteStagesChart, stageFirst.color, true, 1300},
		"pareto":           {found, WriteParetoChart, frontLook.color, true, 1680},
		"breakdown":        {found, WriteBreakdownChart, plotstyle.Blue, true, 1300},
		"nothing measured": {nothing, WriteParetoChart, frontLook.color, false, 1680},
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
		if got := picture.Bounds().Size(); got != (image.Point{X: 2000, Y: test.height}) {
			t.Errorf("%s: size is %v, want 2000 × %d", name, got, test.height)
		}
		ink, colored := inkOf(picture, test.color)
		if ink < 0.005 || ink > 0.5 {
			t.Errorf("%s: %.1f %% of the picture is not white", name, 100*ink)
		}
		if colored != test.colored {
			t.Errorf("%s: the curve's colour is there: %v, want %v", name, colored, test.colored)
		}
	}
}

// inkOf returns the share of dots that are not white, and whether a colour occurs.
func inkOf(picture image.Image, wanted color.RGBA) (share float64, found bool) {
	dots := image.NewRGBA(picture.Bounds())
	draw.Draw(dots, dots.Bounds(), picture, dots.Bounds().Min, draw.Src)
	ink := 0
	for at := 0; at < len(dots.Pix); at += 4 {
		c := color.RGBA{dots.Pix[at], dots.Pix[at+1], dots.Pix[at+2], dots.Pix[at+3]}
		if c != (color.RGBA{255, 255, 255, 255}) {
			ink++
		}
		found = found || c == wanted
	}
	return float64(ink) / float64(len(dots.Pix)/4), found
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
	check("a short range has more", "15 20 30 50 70 100", labels(logAxis("", [2]float64{15, 100}, plotstyle.DecadeTicks)))
	check("decades", "5 10 20 50 100", labels(logAxis("", [2]float64{5, 120}, plotstyle.DecadeTicks)))
}

// TestPictures writes the charts where one can look at them: TUNER_PICTURES=dir go test ./report -run Pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("TUNER_PICTURES")
	if dir == "" {
		t.Skip("set TUNER_PICTURES to a folder to write the charts there and look at them")
	}
	many := func(n int) *analyzetest.Builder {
		b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 1, 2, 4, 8, 16)
		for i := range n - 1 { // beside the default
			b.Measure(analyzetest.Candidate(1+i%4, 1+i/4%3, []int{16, 8, 4, 2, 1}[i/12%5]), 1, 4, 8, 16, 32)
		}
		return b
	}
	long := analyzetest.Candidate(2, 1, 16).With(search.KnobMaxQueueDelay, "2000us").With(search.KnobExecutionProvider, "openvino").
		With(search.KnobGraphOptimization, "extended").With(search.KnobMemoryArena, "false")
	for name, r := range map[string]analyze.Result{
		"typical":    ranked(t, typical(t), analyze.Options{}),
		"variants":   ranked(t, withVariants(t), analyze.Options{}),
		"infeasible": ranked(t, typical(t), analyze.Options{Goal: tight()}),
		"alone":      ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4), analyze.Options{}),
		"of 2":       ranked(t, many(2), analyze.Options{}),
		"of 10":      ranked(t, many(10), analyze.Options{}),
		"of 60":      ranked(t, many(60), analyze.Options{}),
		"long names": ranked(t, typical(t).Measure(long, 8, 24, 48), analyze.Options{}),
		"failed": ranked(t, analyzetest.New(t, analyzetest.Profile).
			Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{}),
	} {
		for _, f := range files(dir, r, allFormats()) {
			if f.format != spec.FormatPNG {
				continue
			}
			if err := writeFile(filepath.Join(dir, name, filepath.Base(f.path)), func(w io.Writer) error { return f.write(w, r) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Every key of result.json stands in its documentation.
func TestResultFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/reference/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []analyze.Result{
		ranked(t, typical(t), analyze.Options{}), ranked(t, typical(t), analyze.Options{Goal: tight()}), ranked(t, withVariants(t), analyze.Options{}),
	} {
		var b bytes.Buffer
		if err := WriteJSON(&b, r); err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(b.Bytes(), &value); err != nil {
			t.Fatal(err)
		}
		for key := range keysOf(value) {
			if !strings.Contains(string(doc), key) {
				t.Errorf("docs/reference/results.md does not mention %q", key)
			}
		}
	}
}

// What others took is in the notes of every report, and in result.json.
func TestOthersAreTold(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Beside(0.25)
	r := ranked(t, b, analyze.Options{})
	const want = "Other processes took 25 % of the CPU time on average (up to 25 %); figures are corrected to the average."
	for name, lines := range map[string][]string{"table": notes(r, grid{}), "page": pageNotes(r)} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s: %q", name, lines)
		}
	}
	var text bytes.Buffer
	if err := WriteJSON(&text, r); err != nil {
		t.Fatal(err)
	}
	var d struct{ Withheld struct{ Mean, Slope float64 } }
	if err := json.Unmarshal(text.Bytes(), &d); err != nil || d.Withheld.Mean != 0.25 || d.Withheld.Slope != -1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// keysOf collects the keys of all objects but those that are free in form.
func keysOf(value any) map[string]bool {
	keys := map[string]bool{}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			keys[key] = true
			if key != "machine" && key != "origin" && key != "outputs" && key != "accuracy" {
				maps.Copy(keys, keysOf(inner))
			}
		}
	case []any:
		for _, inner := range v {
			maps.Copy(keys, keysOf(inner))
		}
	}
	return keys
}
