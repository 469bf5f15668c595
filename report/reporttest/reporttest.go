// Package reporttest has the campaigns for tests of reports. It compares reports with golden files.
package reporttest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/precision/accuracy"
	"tuner/profile/journal"
	"tuner/search"
)

// Typical returns a campaign with a clear winner, a tie, a failure and confirmed finalists.
func Typical(t *testing.T) *analyzetest.Builder {
	best := analyzetest.Candidate(2, 1, 16)
	return analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8, 16).
		Measure(analyzetest.Candidate(1, 1, 4), 4).
		Measure(analyzetest.Candidate(1, 2, 8), 8, 16).
		Fail(analyzetest.Candidate(2, 2, 32), 8, measure.StageStart, "the engine was not ready after 1m0s\nlast words").
		Measure(analyzetest.Candidate(2, 1, 8), 8, 16, 16).
		Measure(best, 8, 16, 32).
		Finals(best, 16).
		Curve(search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"}), 8, 16).
		End("the space is exhausted", false)
}

// Complete returns a campaign that measured its whole space.
func Complete(t *testing.T) *analyzetest.Builder {
	profile := strings.NewReplacer("intra_op_threads: [1, 2]", "intra_op_threads: [1]", "instance_count: [1, 2]", "instance_count: [1]",
		"max_batch_size: [4, 8, 16]", "max_batch_size: [4]", "min: 1, max: 64", "min: 4, max: 8").Replace(analyzetest.Profile)
	return analyzetest.New(t, profile).
		Measure(search.Candidate{}, 4, 8).
		Measure(analyzetest.Candidate(1, 1, 4), 4, 8).
		End("the space is exhausted", false)
}

// WithVariants returns a campaign with two variants. int8 serves on cpu with two operators in fp32,
// and is rejected on OpenVINO. fp16 could not be made.
func WithVariants(t *testing.T) *analyzetest.Builder {
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
		Finals(best, 32).
		End("the space is exhausted", false)
}

// Ranked analyzes a campaign.
func Ranked(t *testing.T, b *analyzetest.Builder, o analyze.Options) analyze.Result {
	t.Helper()
	r, err := analyze.Analyze(b.Campaign(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Tight returns a goal that nothing satisfies.
func Tight() *search.Goal {
	limit := 0.003
	return &search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}},
	}
}

// Failing is a writer on a full disk.
type Failing struct{}

// ErrFull is the error of Failing.
var ErrFull = errors.New("disk full")

// Write implements io.Writer.
func (Failing) Write([]byte) (int, error) { return 0, ErrFull }

// KeysOf collects the keys of all objects, except objects with free keys.
func KeysOf(value any) map[string]bool {
	keys := map[string]bool{}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			keys[key] = true
			if key != "machine" && key != "origin" && key != "outputs" && key != "accuracy" {
				maps.Copy(keys, KeysOf(inner))
			}
		}
	case []any:
		for _, inner := range v {
			maps.Copy(keys, KeysOf(inner))
		}
	}
	return keys
}

// Predicted returns the typical campaign with the predictions of a strategy, and an effect of every
// kind.
func Predicted(t *testing.T) analyze.Result {
	t.Helper()
	r := Ranked(t, Typical(t), analyze.Options{})
	x := &r.Explanation
	number := func(v float64) *float64 { return &v }
	best := &x.Subjects[0]
	best.Curve = &analyze.ServiceCurve{Sizes: []int{1, 4, 16}, Alone: []float64{0.005, 0.014, 0.05}, Crowded: []float64{0.0055, 0.0154, 0.055}, Overhead: 0.0003, Path: 0.00002}
	for _, p := range []analyze.Prediction{
		{Metric: measure.Throughput, Simulated: number(640.1), Believed: &measure.Estimate{Value: 620, Lo: 600, Hi: 640}},
		{Metric: measure.LatencyP99, Simulated: number(0.0231), Believed: &measure.Estimate{Value: 0.0205, Lo: 0.02, Hi: 0.021}},
		{Metric: measure.LatencyAvg, Simulated: number(0.0270)},
	} {
		p.Measured = r.Configs[0].Best.Values[p.Metric]
		best.Predictions = append(best.Predictions, p)
	}
	limit := 2e8
	change := func(value, half float64) measure.Estimate {
		return measure.Estimate{Value: value, Lo: value - half, Hi: value + half}
	}
	x.Knobs = []search.KnobEffect{
		{Knob: search.KnobInstanceCount, Chosen: "2", Others: []search.Effect{
			{Value: "1", Basis: search.BasisMeasured, Change: change(-0.37, 0.02)},
			{Value: "8", Basis: search.BasisPredicted, Misses: []search.Miss{
				{Constraint: search.Constraint{Metric: measure.Memory, Max: &limit}, Value: 8.6e8, Violation: 3.3}}}}},
		{Knob: search.KnobIntraOpThreads, Chosen: "1", Others: []search.Effect{
			{Value: "0", Basis: search.BasisBound, Change: change(-0.082, 0.05)},
			{Value: "2", Basis: search.BasisBound, Change: change(0.031, 0.01)},
			{Value: "4", Basis: search.BasisUnknown}}},
		{Knob: search.KnobMaxQueueDelay, Chosen: "0us", Others: []search.Effect{{Value: "100us", Basis: search.BasisPredicted, Change: change(-0.003, 0.02)}}},
	}
	x.Barred = &analyze.Barred{Name: "minilm_config_6", Load: measure.Load{Concurrency: 64, BatchSize: 1}, Change: 0.2, Misses: []search.Miss{
		{Constraint: search.Constraint{Metric: measure.Memory, Max: &limit}, Value: 3e8, Violation: 0.5}}}
	x.Untried = analyze.Untried{Candidates: 180, Measured: 23, Predicted: 97, Unreached: 0, Gain: number(0.012), Skipped: []search.Fold{
		{Reason: "by service times that are predicted from engines like them, they are not expected to be better", Count: 60}}}
	x.Dropped = []measure.Metric{measure.LatencyP99}
	r.Folds = []search.Fold{{Reason: "a batch of one never waits", Count: 12}}
	return r
}

// Root returns the module's folder, above the test's folder.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above the test's folder (%v)", err)
	return ""
}

// Recorded returns the result of a campaign that was recorded with an earlier journal format.
func Recorded(t testing.TB, name string) analyze.Result {
	t.Helper()
	c, err := analyze.Replay(filepath.Join(Root(t), "testdata/journals", name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := analyze.Analyze(c, analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Imported returns the result of another program's figures, without intervals, counts and a
// machine.
func Imported(t testing.TB) analyze.Result {
	t.Helper()
	point := analyze.RecordedPoint{Load: measure.Load{Concurrency: 2}, Values: map[measure.Metric]float64{measure.Throughput: 200, measure.LatencyP99: 0.01}}
	rec := analyze.Recording{Model: "mlp", Source: "0.ckpt", Configs: []analyze.RecordedConfig{
		{Name: "mlp_config_default", Default: true, Deployed: &modelconfig.Config{}, Points: []analyze.RecordedPoint{point}}}}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	r, err := rec.Rank(goal, analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// OfTwoServers returns a campaign whose finals ran on another server. The default was confirmed
// there at one load, or not at all.
func OfTwoServers(t *testing.T, isDefaultConfirmed bool) analyze.Result {
	t.Helper()
	best := analyzetest.Candidate(2, 1, 16)
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8).Measure(analyzetest.Candidate(2, 1, 8), 8, 16).Measure(best, 8, 16).Confirm(best, 16)
	if isDefaultConfirmed {
		b.Confirm(search.Candidate{}, 8)
	}
	c := b.End("the space is exhausted", false).Campaign()
	c.Header.Finals = &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver", Name: "triton", Version: "2.51.0"}
	r, err := analyze.Analyze(c, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// OfAnother returns another program's recording of a default on a GPU. It misses the tight limit.
func OfAnother(t *testing.T) analyze.Result {
	t.Helper()
	rec := analyze.Recording{Model: "resnet", Source: "0.ckpt", Configs: []analyze.RecordedConfig{{
		Name: "resnet_config_default", Default: true, GPU: true, Deployed: &modelconfig.Config{Name: "resnet", MaxBatchSize: 8},
		Points: []analyze.RecordedPoint{{Load: measure.Load{Concurrency: 1, BatchSize: 1},
			Values: map[measure.Metric]float64{measure.Throughput: 200, measure.LatencyP99: 0.005}}},
	}}}
	r, err := rec.Rank(*Tight(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Written returns the text that a format writes for a result.
func Written(t *testing.T, r analyze.Result, write func(io.Writer, analyze.Result) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// WithModel writes a model with external data to disk, and its digest into the result.
func WithModel(t *testing.T, r analyze.Result) analyze.Result {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"external.onnx", "external.bin"} {
		CopyFile(t, filepath.Join(Root(t), "testdata/ort", name), filepath.Join(dir, name))
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

// CopyFile copies a file.
func CopyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// MakeFolder makes a folder below another one and returns its path.
func MakeFolder(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
