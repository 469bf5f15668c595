package imported

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/analyze"
	"tuner/internal/alloctest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

func read(t *testing.T, name string) []analyze.Recording {
	t.Helper()
	list, _, err := Read(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// near compares figures after a change of unit.
var near = cmpopts.EquateApprox(1e-9, 0)

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	list, notes, err := Read("testdata/checkpoint.ckpt")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Model != "resnet" {
		t.Fatalf("%d recordings, the first of %q", len(list), list[0].Model)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "left out the models a,b, since they were measured together") {
		t.Errorf("notes: %q", notes)
	}
	var names []string
	for _, c := range list[0].Configs {
		names = append(names, c.Name)
	}
	if want := []string{"resnet_config_2", "resnet_config_10", "resnet_config_default"}; !cmp.Equal(want, names) {
		t.Errorf("configurations %v, want %v", names, want)
	}
	// Milliseconds, megabytes and percent are converted to base units. Memory and power are the
	// sums of both GPUs, utilization is their mean.
	want := analyze.RecordedPoint{
		Load: measure.Load{Concurrency: 1, BatchSize: 1},
		Values: map[measure.Metric]float64{measure.Throughput: 200, measure.LatencyAvg: 0.0049, measure.LatencyP99: 0.0055, measure.QueueTime: 0.00002,
			measure.GPUMemory: 2e9, measure.GPUUtilization: 0.3, measure.GPUPower: 160},
		GPUs: []measure.GPUWindow{{UUID: "GPU-a", Utilization: 0.4, Power: 100, MemoryUsed: 1.5e9, MemoryTotal: 16e9},
			{UUID: "GPU-b", Utilization: 0.2, Power: 60, MemoryUsed: 5e8}},
	}
	byDefault := list[0].Configs[2]
	if diff := cmp.Diff(want, byDefault.Points[0], near); diff != "" {
		t.Error(diff)
	}
	if !byDefault.Default || !byDefault.GPU || byDefault.Deployed.GetName() != "resnet" || byDefault.Deployed.GetMaxBatchSize() != 8 {
		t.Errorf("default %+v", byDefault)
	}
	// Newer versions have another form, with a request rate. Only this entry has memory.
	newer := list[0].Configs[1]
	wantPoint := analyze.RecordedPoint{Load: measure.Load{RequestRate: 100, BatchSize: 4},
		Values: map[measure.Metric]float64{measure.Throughput: 390, measure.LatencyP99: 0.012, measure.Memory: 512e6}}
	if diff := cmp.Diff([]analyze.RecordedPoint{wantPoint}, newer.Points, near); diff != "" || newer.GPU {
		t.Error(diff, newer.GPU)
	}
}

func ranked(t *testing.T, r analyze.Recording, goal search.Goal) analyze.Result {
	t.Helper()
	result, err := r.Rank(goal, analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// A recording has the same views as a campaign: at one load, and by the mean of three.
func TestViewsOfARecording(t *testing.T) {
	t.Parallel()
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	rec := read(t, "checkpoint.ckpt")[0]
	at, err := rec.Rank(goal, analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range at.Configs {
		if c.Best != nil && c.Best.Load.Concurrency != 2 {
			t.Errorf("%s is ranked at %v", c.Name, c.Best.Load)
		}
	}
	if at.Default().Best == nil || len(at.Loads) == 0 || len(at.Fronts) == 0 {
		t.Errorf("default %v, %d loads, %d fronts", at.Default().Best, len(at.Loads), len(at.Fronts))
	}
	var none *analyze.LoadError
	if _, err := rec.Rank(goal, analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 77}}}); !errors.As(err, &none) {
		t.Errorf("at a load that is not there: %v", err)
	}
	if r, err := rec.Rank(goal, analyze.Options{Rank: spec.RankTop3Mean}); err != nil || r.Rank != spec.RankTop3Mean || r.Default().Score == r.Default().Best.Score {
		t.Errorf("by the mean of three: %v, %v", r.Rank, err)
	}
}

func TestRankedCheckpoint(t *testing.T) {
	t.Parallel()
	limit := 0.015
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}}
	r := ranked(t, read(t, "checkpoint.ckpt")[0], goal)
	best, ok := r.Winner()
	if !ok || best.Name != "resnet_config_10" || best.Candidate.Describe() != "2 instances, batch 16, delay 100 µs" {
		t.Fatalf("best is %q (%s), %v", best.Name, best.Candidate.Describe(), ok)
	}
	if base := r.Default(); base.Best.Load.Concurrency != 2 || best.Gain == nil || !cmp.Equal(best.Gain.Value, 390.0/230, near) {
		t.Errorf("default at %v, gain %v", base.Best.Load, best.Gain)
	}
	if _, told := best.Best.Values[measure.LatencyP50]; told {
		t.Error("a percentile is told that the checkpoint does not have")
	}
	if r.Trials != 4 || r.Recorded != "testdata/checkpoint.ckpt" {
		t.Errorf("%d measurements from %q", r.Trials, r.Recorded)
	}
	// A limit on an unknown metric counts as missed.
	goal.Constraints[0].Metric = measure.Memory
	if c, _ := ranked(t, read(t, "checkpoint.ckpt")[0], goal).Config("resnet_config_2"); !c.Best.Misses[0].Missing {
		t.Errorf("misses: %v", c.Best.Misses)
	}
}

func TestPerfAnalyzerCSV(t *testing.T) {
	t.Parallel()
	list := read(t, "resnet-results.csv")
	if list[0].Model != "resnet" || len(list[0].Configs) != 1 || len(list[0].Configs[0].Points) != 2 {
		t.Fatalf("recording %+v", list[0])
	}
	want := analyze.RecordedPoint{Load: measure.Load{Concurrency: 1}, Values: map[measure.Metric]float64{
		measure.Throughput: 62.6, measure.LatencyAvg: 0.015974, measure.LatencyP50: 0.0159, measure.LatencyP90: 0.0161, measure.LatencyP95: 0.0163,
		measure.LatencyP99: 0.021371, measure.QueueTime: 0.00002, measure.ComputeInput: 0.000015, measure.ComputeInfer: 0.015, measure.ComputeOutput: 0.000012,
		measure.GPUMemory: 1e9, measure.GPUUtilization: 0.5, measure.GPUPower: 120.5},
		GPUs: []measure.GPUWindow{{UUID: "GPU-1", Utilization: 0.5, Power: 120.5, MemoryUsed: 1e9, MemoryTotal: 16e9}}}
	if diff := cmp.Diff(want, list[0].Configs[0].Points[0], near); diff != "" {
		t.Error(diff)
	}
	if _, told := list[0].Configs[0].Points[1].Values[measure.GPUPower]; told {
		t.Error("empty cells of GPUs became figures")
	}
}

// A level at which no request was answered has no times. `tuner perf -f` leaves their cells empty.
func TestPerfAnalyzerCSVWithoutAnswers(t *testing.T) {
	t.Parallel()
	list, _, err := parse("m.csv", []byte("Concurrency,Inferences/Second,Client Send,Server Queue,p99 latency\n1,5,10,20,3000\n2,0,,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := analyze.RecordedPoint{Load: measure.Load{Concurrency: 2}, Values: map[measure.Metric]float64{measure.Throughput: 0}}
	if diff := cmp.Diff(want, list[0].Configs[0].Points[1], near); diff != "" {
		t.Error(diff)
	}
}

func TestPerfAnalyzerOutput(t *testing.T) {
	t.Parallel()
	// At concurrency 4 nothing was stable, so it is left out.
	want := []analyze.RecordedPoint{{Load: measure.Load{Concurrency: 1, BatchSize: 2}, Values: map[measure.Metric]float64{
		measure.Throughput: 62.6, measure.LatencyP50: 0.0159, measure.LatencyP90: 0.0161, measure.LatencyP95: 0.021371, measure.LatencyP99: 0.025,
		measure.QueueTime: 0.00002, measure.ComputeInput: 0.000015, measure.ComputeInfer: 0.015, measure.ComputeOutput: 0.000012}}}
	if diff := cmp.Diff(want, read(t, "output.txt")[0].Configs[0].Points, near); diff != "" {
		t.Error(diff)
	}
	// Only the summary lines at the end, in the forms of the documentation.
	lines := func(concurrency int, throughput, p95 float64) analyze.RecordedPoint {
		return analyze.RecordedPoint{Load: measure.Load{Concurrency: concurrency},
			Values: map[measure.Metric]float64{measure.Throughput: throughput, measure.LatencyP95: p95}}
	}
	want = []analyze.RecordedPoint{lines(1, 113.2, 0.008939), lines(2, 138.2, 0.014548), lines(3, 137.2, 0.021947)}
	if diff := cmp.Diff(want, read(t, "summary.txt")[0].Configs[0].Points, near); diff != "" {
		t.Error(diff)
	}
}

func TestNewestCheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want none to be there", err)
	}
	for _, name := range []string{"2.ckpt", "10.ckpt", "x.ckpt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := newest(dir); err != nil || filepath.Base(got) != "10.ckpt" {
		t.Errorf("newest is %q, %v", got, err)
	}
}

func TestWhatIsNoRecording(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":   "the file is empty",
		"{}": "this is not a checkpoint of Model Analyzer: ResultManager.results is missing",
		`{"ResultManager.results": {"_results": {`:                                 "cannot read the checkpoint of Model Analyzer: unexpected end of JSON input",
		`{"ResultManager.results": {"_results": {"a": {"a_config_0": [1]}}}}`:      "a variant has 1 parts instead of two",
		`{"ResultManager.results": {"_results": {"a": {"a_config_0": [{}, {}]}}}}`: "variant a_config_0: it has 0 models instead of one",
		`{"ResultManager.results": {"_results": {"a,b": {}}}}`:                     "the checkpoint has no measurements of a single model",
		"Concurrency,Inferences/Second\n":                                          "the file has no rows: perf_analyzer found no stable load",
		"Concurrency,Inferences/Second\n1\n":                                       "row 2: it has 1 cells, and the header has 2",
		"Concurrency,Inferences/Second\n1,fast\n":                                  `row 2: Inferences/Second is "fast", not a number`,
		"Concurrency,Inferences/Second\n1,\n":                                      `row 2: Inferences/Second is "", not a number`,
		"Concurrency,Inferences/Second\n,1\n":                                      `row 2: Concurrency is "", not a number`,
		"Inferences/Second,p99 latency\n1,2\n":                                     "row 2: it has neither a Concurrency nor a Request Rate",
		"Request concurrency: 0.5\n  Throughput: 5 infer/sec\n":                    "no load has a throughput",
		"hello": "this is neither output of perf_analyzer",
	} {
		if _, _, err := parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Any file is read or refused. The content that is read can be ranked unless all figures are 0:
// loads are valid and figures are numbers.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"checkpoint.ckpt", "resnet-results.csv", "output.txt", "summary.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		list, _, err := parse("f.txt", text)
		if err != nil {
			return
		}
		for _, r := range list {
			for _, c := range r.Configs {
				for _, p := range c.Points {
					if p.Load.Level() <= 0 {
						t.Fatalf("load %+v", p.Load)
					}
					for m, v := range p.Values {
						if !(v >= 0) {
							t.Fatalf("%s is %v", m, v)
						}
					}
				}
			}
			if _, err := r.Rank(goal, analyze.Options{Top: 3}); err != nil && !errors.As(err, new(*analyze.ObjectiveError)) {
				t.Fatal(err)
			}
		}
	})
}
