package gate

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/gate/decide"
	"tuner/internal/alloctest"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/spec"
	"tuner/spec/gates"
)

func noGPUs(string) profile.Place { return profile.Place{} }

// newSetup makes a gate of Triton's example model on a machine with four cores, from a text of
// gate.yaml.
func newSetup(t *testing.T, text string) Setup {
	t.Helper()
	dir := t.TempDir()
	if err := build.Simple().Write(filepath.Join(dir, "simple.onnx"), 1<<20); err != nil {
		t.Fatal(err)
	}
	g, err := gates.Parse(filepath.Join(dir, "gate.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(g, hostinfo.Host{OS: "linux", CPU: hostinfo.CPU{Model: "a CPU", Logical: 4, Allowed: []int{0, 1, 2, 3}}}, noGPUs)
	if err != nil {
		t.Fatal(err)
	}
	s.Tool, s.Candidate.Runtime = "1.0", "cpu@1.31.1"
	return s
}

func TestOpen(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "baseline: simple.onnx\ncandidate: simple.onnx")
	// Triton's auto-completion gives 2 instances with batches of 4, so 2·4·2 requests are in
	// flight.
	if s.Load.Concurrency != 16 || s.Baseline == nil || len(s.Requests) == 0 || s.Fingerprint == "" {
		t.Errorf("load %s, %d requests", s.Load, len(s.Requests))
	}
	job, err := s.Job(s.Candidate)
	if err != nil || job.Windows != 1 || job.Window != 500*time.Millisecond || job.Instances != 2 || job.MaxBatch != 4 || job.Model != "simple" {
		t.Errorf("job %+v, %v", job, err)
	}
	if _, err := os.Stat(filepath.Join(job.Repository, "simple", "config.pbtxt")); err != nil {
		t.Error(err)
	}
	if given := newSetup(t, "candidate: simple.onnx\nlimits: {memory: {max: 1GiB}}\nload: {request_rate: 50}"); given.Load.RequestRate != 50 || given.Baseline != nil {
		t.Errorf("load %s", given.Load)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, m := range map[string]interface{ Write(string, int64) error }{"simple.onnx": build.Simple(), "lstm.onnx": build.LSTM()} {
		if err := m.Write(filepath.Join(dir, name), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"baseline: none.onnx\ncandidate: simple.onnx":   "gate.yaml: baseline: model: cannot open",
		"baseline: simple.onnx\ncandidate: lstm.onnx":   "both must serve the same requests",
		"candidate: lstm.onnx\nlimits: {cpu: {max: 1}}": "load.inputs",
	} {
		g, err := spec.ParseGate(filepath.Join(dir, "gate.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var input *profile.InputError
		if _, err := Open(g, hostinfo.Host{}, noGPUs); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// pairsOf makes pairs of a candidate with throughputs.
func pairsOf(rates ...float64) []Pair {
	var list []Pair
	for _, rate := range rates {
		list = append(list, Pair{Candidate: measure.Measurement{Windows: []measure.Window{steady(rate, 0)(0)}}})
	}
	return list
}

const saving = "candidate: simple.onnx\nbaseline: base.json\nmetrics: [throughput]\nload: {concurrency: 8}"

func newSaved(t *testing.T, s Setup, rates ...float64) Saved {
	t.Helper()
	saved, err := NewSaved(s, pairsOf(rates...), time.Unix(1e9, 0), "abc")
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// A user's link stays, and leads to the new baseline.
func TestSavedBaselineBehindALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "shared", "base.json"), filepath.Join(dir, "base.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	saved := newSaved(t, newSetup(t, saving), 200, 202, 198)
	if err := errors.Join(CheckSaved(link), saved.Save(link)); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link leads to %q, error %v", to, err)
	}
	if _, err := ReadSaved(file); err != nil {
		t.Error(err)
	}
}

func TestSavedBaselineComesBack(t *testing.T) {
	t.Parallel()
	s := newSetup(t, saving)
	saved := newSaved(t, s, 200, 202, 198)
	path := filepath.Join(t.TempDir(), "new", "base.json")
	if err := saved.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := ReadSaved(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, back, cmp.Comparer(func(a, b json.RawMessage) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := back.Jobs[0].Pairs[measure.Throughput]; !cmp.Equal(got, []float64{200, 202, 198}) {
		t.Errorf("throughputs %v", got)
	}
	if _, has := back.Jobs[0].Pairs[measure.Memory]; has {
		t.Error("a metric that was not measured was saved")
	}
	// The same model again adds a job. Another model starts a new baseline.
	if err := saved.Save(path); err != nil {
		t.Fatal(err)
	}
	if back, err = ReadSaved(path); err != nil || len(back.Jobs) != 2 {
		t.Errorf("%d jobs, %v", len(back.Jobs), err)
	}
	saved.Model = "another"
	if err := saved.Save(path); err != nil {
		t.Fatal(err)
	}
	if back, err = ReadSaved(path); err != nil || len(back.Jobs) != 1 || back.Model != "another" {
		t.Errorf("%d jobs of %s, %v", len(back.Jobs), back.Model, err)
	}
}

// Three jobs at 196, 200 and 204.08 have logarithms 0.0202 apart and the standard deviation 0.0202.
// With t(0.975, 2) = 4.303 instead of 1.960 it counts as 0.0443. A new job against the mean of
// three has √(1 + 1/3) times that. One job gets the assumed 2 %.
func TestReference(t *testing.T) {
	t.Parallel()
	s := newSetup(t, saving)
	one := newSaved(t, s, 200, 200, 200)
	r, assumed, ok := one.Reference(measure.Throughput)
	if !ok || !assumed || math.Abs(r.Log-math.Log(200)) > 1e-9 || math.Abs(r.Spread-measure.AssumedSpread*math.Sqrt2) > 1e-9 {
		t.Errorf("one job: %+v, assumed %t", r, assumed)
	}
	three := newSaved(t, s, 204.08, 204.08, 204.08).After(newSaved(t, s, 200, 200, 200).After(newSaved(t, s, 196, 196, 196)))
	r, assumed, ok = three.Reference(measure.Throughput)
	if want := 0.0202 * 4.303 / 1.960 * math.Sqrt(4.0/3); !ok || assumed || math.Abs(r.Log-math.Log(200)) > 1e-3 || math.Abs(r.Spread-want) > 5e-4 {
		t.Errorf("three jobs: %+v, assumed %t; want a spread of %.4f", r, assumed, want)
	}
	// Another model on the same machine keeps the known noise.
	other := newSaved(t, s, 300, 300, 300)
	other.Model = "another"
	if r, assumed, _ := other.After(three).Reference(measure.Throughput); assumed || math.Abs(r.Log-math.Log(300)) > 1e-9 {
		t.Errorf("another model: %+v, assumed %t", r, assumed)
	}
	if _, _, ok := one.Reference(measure.Energy); ok {
		t.Error("a metric that was not measured has a value")
	}
}

func TestReferencesRefuse(t *testing.T) {
	t.Parallel()
	s := newSetup(t, saving)
	saved := newSaved(t, s, 200, 200, 200)
	if references, notes, err := saved.References("base.json", s); err != nil || len(references) != 1 || len(notes) != 1 {
		t.Errorf("%v, %q, %v", references, notes, err)
	}
	for _, model := range []func(*modelconfig.Config){
		func(c *modelconfig.Config) { c.Input[0].Name = "OTHER" },
		func(c *modelconfig.Config) { c.Input[0].DataType = configpb.DataType_TYPE_FP32 },
		func(c *modelconfig.Config) { c.Output[0].Dims = []int64{8} },
		func(c *modelconfig.Config) { c.Input = c.Input[:1] },
	} {
		changed := s
		changed.Candidate.Config = proto.CloneOf(s.Candidate.Config)
		model(changed.Candidate.Config)
		var input *profile.InputError
		if _, _, err := saved.References("base.json", changed); !errors.As(err, &input) || !strings.Contains(err.Error(), "gate.yaml: baseline: base.json: its model has ") {
			t.Errorf("another model: %v", err)
		}
	}
	// Batching is a matter of the configuration. The requests are the same.
	unbatched := s
	unbatched.Candidate.Config = proto.CloneOf(s.Candidate.Config)
	unbatched.Candidate.Config.MaxBatchSize = 0
	for _, in := range unbatched.Candidate.Config.Input {
		in.Dims = slices.Concat([]int64{-1}, in.Dims)
	}
	for _, out := range unbatched.Candidate.Config.Output {
		out.Dims = slices.Concat([]int64{-1}, out.Dims)
	}
	if _, _, err := saved.References("base.json", unbatched); err != nil {
		t.Errorf("the same model without batches: %v", err)
	}
	for want, change := range map[string]func(*Setup){
		"it was measured at concurrency 8, but the candidate's load is concurrency 4": func(s *Setup) { s.Load.Concurrency = 4 },
		"it was measured with the input shapes":                                       func(s *Setup) { s.Spec.Inputs.Shape = map[string][]int64{"x": {3}} },
		"its requests had other data (load.inputs.data)": func(s *Setup) {
			s.Candidate.Rows = &profile.Rows{Record: journal.RequestRows{SHA256: "d"}}
		},
		"has no energy": func(s *Setup) { s.Spec.Metrics = []spec.GateMetric{{Metric: measure.Energy, Margin: 0.1}} },
	} {
		changed := s
		change(&changed)
		var input *profile.InputError
		if _, _, err := saved.References("base.json", changed); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Differences that still allow a comparison are reported: another name, other windows, pauses
// between windows.
func TestReferencesWarn(t *testing.T) {
	t.Parallel()
	s := newSetup(t, saving)
	for want, change := range map[string]func(*Saved){
		`model is named "old", and the candidate's is named "simple"`:           func(s *Saved) { s.Name = "old" },
		"was measured in windows of 2 s, and the candidate in windows of 500ms": func(s *Saved) { s.Window = 2 },
		"with pauses between its windows":                                       func(s *Saved) { s.Settled = false },
	} {
		saved := newSaved(t, s, 200, 200, 200)
		change(&saved)
		if _, notes, err := saved.References("base.json", s); err != nil || len(notes) != 2 || !strings.Contains(notes[0], want) {
			t.Errorf("%q, %v; want %q", notes, err, want)
		}
	}
	// If an unchanged candidate cannot keep a margin, this is reported before the measurement.
	noisy := newSaved(t, s, 200, 200, 200)
	for jobs, want := range map[int]string{0: "measures it. throughput: jobs differ so much that an equally good candidate cannot pass (2 % lower is allowed).",
		3: "throughput: jobs differ so much that an equally good candidate cannot pass (2 % lower is allowed)."} {
		noisy.Noise[measure.Throughput] = Noise{Spread: 0.02, Jobs: jobs}
		if _, notes, err := noisy.References("base.json", s); err != nil || len(notes) != 1 || !strings.HasSuffix(notes[0], want) {
			t.Errorf("%d jobs: %q, %v; want %q", jobs, notes, err, want)
		}
	}
	noisy.Noise[measure.Throughput] = Noise{Spread: 0.001, Jobs: 10}
	if _, notes, err := noisy.References("base.json", s); err != nil || len(notes) != 0 {
		t.Errorf("a quiet machine: %q, %v", notes, err)
	}
	// Jobs of other requests, and those that were measured differently, are not merged.
	for name, change := range map[string]func(*Saved){
		"with pauses":     func(s *Saved) { s.Settled = false },
		"other windows":   func(s *Saved) { s.Window = 2 },
		"other data":      func(s *Saved) { s.Data = "d" },
		"a mix of shapes": func(s *Saved) { s.Mix = "m" },
		"other shapes":    func(s *Saved) { s.Shapes = map[string][]int64{"x": {3}} },
	} {
		old := newSaved(t, s, 300, 300, 300)
		change(&old)
		both := newSaved(t, s, 200, 200, 200).After(old)
		if r, _, _ := both.Reference(measure.Throughput); len(both.Jobs) != 1 || math.Abs(r.Log-math.Log(200)) > 1e-9 {
			t.Errorf("%s: %d jobs were joined, with %.1f infer/s", name, len(both.Jobs), math.Exp(r.Log))
		}
	}
	if beside := newSetup(t, "baseline: simple.onnx\ncandidate: simple.onnx"); newSaved(t, beside, 200).Settled {
		t.Error("windows in turn with a baseline are taken for settled")
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	text := func(h hostinfo.Host) json.RawMessage {
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a := hostinfo.Host{CPU: hostinfo.CPU{Model: "fast", Logical: 8, Allowed: []int{0, 1}}, Memory: hostinfo.Memory{Total: 8 << 30}}
	b := hostinfo.Host{CPU: hostinfo.CPU{Model: "slow", Logical: 8, Allowed: []int{0, 1}, Quota: 1.5}, Memory: hostinfo.Memory{Total: 8 << 30}}
	want := []string{"CPU: fast then, slow now", "cores: 2 of 8 then, 2 of 8 with a quota of 1.5 now"}
	if diff := cmp.Diff(want, Differences(text(a), text(b))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Differences(text(a), text(a)); got != nil {
		t.Errorf("the same machine differs by %q", got)
	}
}

func TestReadSavedRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hello":         "this is not a saved baseline",
		`{"schema": 2}`: "it has schema 2; this version of tuner reads 1",
		`{"schema": 1}`: "jobs: it has none",
		`{"schema": 1, "jobs": [{"pairs": {"throughput": [1, 0]}}]}`:                                 "jobs[0].pairs.throughput: every value must be above 0",
		`{"schema": 1, "jobs": [{"pairs": {}}], "noise": {"throughput": {"spread": -1, "jobs": 3}}}`: "noise.throughput.spread: must be 0 or more",
	} {
		path := filepath.Join(t.TempDir(), "base.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var input *profile.InputError
		if _, err := ReadSaved(path); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		// Save does not replace a file that is not a baseline.
		if err := newSaved(t, newSetup(t, saving), 200).Save(path); err == nil {
			t.Errorf("%q was replaced", text)
		}
	}
}

// A file that cannot be written is detected before the measurement, and the check creates nothing.
func TestCheckBeforeMeasuring(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".json", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"base.json": "", "new/base.json": "",
		"base":           `cannot save a baseline to "` + filepath.Join(dir, "base") + `": name a file that ends in .json`,
		"file.json":      "it has schema 0",
		"file/base.json": "not a directory",
	} {
		if err := CheckSaved(filepath.Join(dir, path)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for path, want := range map[string]string{"history.jsonl": "", "new/history.jsonl": "", "file": "it is not a line of a history", "file/history.jsonl": "not a directory"} {
		if err := CheckHistory(filepath.Join(dir, path)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v; want the two files", left, err)
	}
}

func FuzzReadSaved(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "jobs": [{"pairs": {"throughput": [1, 2]}}], "noise": {"throughput": {"spread": 0.1, "jobs": 3}}}`))
	f.Add([]byte(`{"schema": 1, "jobs": [{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		s, err := parseSaved(text)
		if err != nil {
			return
		}
		if r, _, ok := s.Reference(measure.Throughput); ok && (math.IsNaN(r.Log) || math.IsNaN(r.Spread) || r.Spread < 0) {
			t.Fatalf("reference %+v", r)
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseSaved(again); err != nil || len(back.Jobs) != len(s.Jobs) {
			t.Fatalf("%v: %s", err, again)
		}
	})
}

// Gates that end at the same time keep each other's history lines and baseline jobs.
func TestGatesAtOnce(t *testing.T) {
	t.Parallel()
	const gates, times = 8, 5
	dir := filepath.Join(t.TempDir(), "out")
	history, baseline := filepath.Join(dir, "history.jsonl"), filepath.Join(dir, "base.json")
	setup := newSetup(t, saving)
	var ending sync.WaitGroup
	for range gates {
		saved := newSaved(t, setup, 200)
		ending.Go(func() {
			for range times {
				if _, err := AppendHistory(history, Record{Schema: historySchema, Name: "m", Verdict: decide.Pass}); err != nil {
					t.Error(err)
				}
			}
			if err := saved.Save(baseline); err != nil {
				t.Error(err)
			}
		})
	}
	ending.Wait()
	if records, err := ReadHistory(history); err != nil || len(records) != gates*times {
		t.Errorf("the history has %d lines, %v; want %d", len(records), err, gates*times)
	}
	if back, err := ReadSaved(baseline); err != nil || len(back.Jobs) != gates {
		t.Errorf("the baseline has %d jobs, %v; want %d", len(back.Jobs), err, gates)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v; want the two files alone", entries, err)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out", "history.jsonl")
	if records, err := ReadHistory(path); err != nil || records != nil {
		t.Errorf("of no file: %v, %v", records, err)
	}
	one := Record{Schema: historySchema, Time: time.Unix(1e9, 0).UTC(), Name: "m", Verdict: decide.Pass, Metrics: map[measure.Metric]RecordFigure{measure.Throughput: {Candidate: 200}}}
	for n := range 3 {
		if records, err := AppendHistory(path, one); err != nil || len(records) != n+1 {
			t.Fatalf("%d records, %v", len(records), err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Only the part of a line that a crash left is removed.
	if err := os.WriteFile(path, append(text, `{"schema": 1, "na`...), 0o644); err != nil {
		t.Fatal(err)
	}
	records, err := AppendHistory(path, one)
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	back, err := ReadHistory(path)
	if diff := cmp.Diff(records, back); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// An invalid line is named, and nothing is written.
	bad := append(text, "hello\n"...)
	if err := os.WriteFile(path, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	var input *profile.InputError
	if _, err := AppendHistory(path, one); !errors.As(err, &input) || !strings.Contains(err.Error(), "history.jsonl:4: it is not a line of a history") {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(bad) {
		t.Errorf("the file was changed (%v)", err)
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("{\"schema\":1,\"metrics\":{\"throughput\":{\"candidate\":1}}}\n{\"sch"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		records, size, err := parseHistory(text)
		if err != nil {
			return
		}
		again, same, err := parseHistory(text[:size])
		if diff := cmp.Diff(records, again); err != nil || same != size || diff != "" {
			t.Fatalf("%v, %d of %d bytes: %s", err, same, size, diff)
		}
	})
}
