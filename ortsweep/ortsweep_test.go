package ortsweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/golden"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/precision/accuracy"
	"tuner/ort/sessionoption"
	"tuner/ortsweep/race"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// newSetup makes a sweep of Triton's example model on a machine with four cores, from a text of
// ortsweep.yaml.
func newSetup(t *testing.T, text string) Setup {
	t.Helper()
	dir := t.TempDir()
	if err := build.Simple().Write(filepath.Join(dir, "simple.onnx"), 1<<20); err != nil {
		t.Fatal(err)
	}
	sweep, err := spec.ParseSweep(filepath.Join(dir, "ortsweep.yaml"), []byte("model: simple.onnx\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := profile.OpenSubject(sweep.Profile, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	facts := search.Facts{Cores: 4, Batching: true, Unavailable: map[string]string{"cuda": "there is no GPU"}}
	s, err := NewSetup(sweep, profile.Setup{Profile: sweep.Profile, Subject: subject, Facts: facts, Tool: "tuner test",
		Runtime: journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1", Library: "libonnxruntime.so"}, Fingerprint: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func candidate(settings ...string) search.Candidate {
	c := search.Candidate{}
	for _, s := range settings {
		knob, value, _ := strings.Cut(s, "=")
		c = c.With(knob, search.Value(value))
	}
	return c
}

func TestDefaultHasNoBatcher(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "measure: throughput\nsessions: 3\nbatch: 8")
	c := s.Subject.Config
	if c.GetSchedulingChoice() != nil || c.InstanceGroup[0].Count != 3 || c.MaxBatchSize != 8 {
		t.Errorf("the default is %v", c)
	}
}

func TestBatchNeedsABatchDimension(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "batch: 2")
	s.Facts.Batching = false
	var input *profile.InputError
	if _, err := NewSetup(s.Sweep, s.Setup); !errors.As(err, &input) || !strings.Contains(err.Error(), "no symbolic batch dimension") {
		t.Errorf("error is %v", err)
	}
}

// A configuration without batches is the reason where the model has the dimension.
func TestBatchNeedsBatchesInTheConfiguration(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "batch: 2")
	s.Facts.Batching, s.Subject.Config = false, &modelconfig.Config{Name: "simple"}
	const want = "with batch 2: max_batch_size of its configuration is 0; raise it to 2"
	if _, err := NewSetup(s.Sweep, s.Setup); !errors.As(err, new(*profile.InputError)) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v lacks %q", err, want)
	}
}

// A setting that equals ONNX Runtime's default makes no other candidate.
func TestEqualSessionsAreOneCandidate(t *testing.T) {
	t.Parallel()
	s := newSetup(t, `space: {execution_provider: [cpu, cuda], precision: [fp32, int8], intra_op_threads: [0, 1], inter_op_threads: [2, 4],
  execution_mode: [sequential, parallel], graph_optimization: [all], memory_arena: [true, false], memory_pattern: [true, false],
  allow_spinning: [true, false]}`)
	k := s.canon()
	for _, c := range []struct{ from, want search.Candidate }{
		{candidate("memory_arena=true", "memory_pattern=true", "allow_spinning=true"), candidate()},
		{candidate("execution_provider=cpu", "precision=fp32", "execution_mode=sequential", "graph_optimization=all", "intra_op_threads=0"), candidate()},
		{candidate("inter_op_threads=2"), candidate()},
		{candidate("execution_mode=sequential", "inter_op_threads=4"), candidate()},
		{candidate("execution_mode=parallel", "inter_op_threads=4"), candidate("inter_op_threads=4", "execution_mode=parallel")}, // in the file's order
		{candidate("allow_spinning=false", "memory_arena=true"), candidate("allow_spinning=false")},
		{candidate("precision=int8", "memory_arena=false"), candidate("precision=int8", "memory_arena=false")},
	} {
		got, out := k.of(c.from)
		if out != "" || got.Key() != c.want.Key() {
			t.Errorf("%s is %s (%q), want %s", c.from, got, out, c.want)
		}
		if again, _ := k.of(got); again.Key() != got.Key() {
			t.Errorf("%s is not its own canonical form, but %s", got, again)
		}
	}
	entry := newSetup(t, `space: {session.intra_op.allow_spinning: ["0", "1"]}`).canon() // which excludes the knob
	if got, out := entry.of(candidate("session.intra_op.allow_spinning=1")); out != "" || !got.IsDefault() {
		t.Errorf("the entry's own default is %s (%q)", got, out)
	}
	if _, out := k.of(candidate("execution_provider=cuda")); !strings.Contains(out, "there is no GPU") {
		t.Errorf("cuda is left out for %q", out)
	}
}

// An option has no effect without its execution provider, so the provider stays in the candidate.
func TestOptionsKeepTheirProvider(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "space: {execution_provider: [cpu, openvino], openvino.num_of_threads: [1, 2]}")
	k := s.canon()
	both := candidate("execution_provider=openvino", "openvino.num_of_threads=1")
	if got, out := k.of(both); got.Key() != both.Key() {
		t.Errorf("%s is %s (%q)", both, got, out)
	}
	if got, out := k.of(candidate("openvino.num_of_threads=1")); !got.IsDefault() || out != "" {
		t.Errorf("an option without its provider is %s (%q)", got, out)
	}
}

func TestRejectedPrecisionIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "")
	s.Facts.Rejected = []search.Rejection{{Precision: "int8", Provider: "cpu", Reason: "cosine 0.8 is below 0.99"}}
	k := s.canon()
	if _, out := k.of(candidate("precision=int8")); !strings.Contains(out, "cosine 0.8") {
		t.Errorf("a rejected precision is left out for %q", out)
	}
}

func TestPruneKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "space: {execution_provider: [cpu, cuda], memory_arena: [true, false], inter_op_threads: [2], execution_mode: [sequential, parallel]}")
	k := s.canon()
	knobs, outs := k.prune()
	got := map[string][]search.Value{}
	for _, knob := range knobs {
		got[knob.Name] = knob.Values
	}
	// cpu, true and sequential are the defaults. inter_op_threads has an effect only with parallel.
	want := map[string][]search.Value{"memory_arena": {"false"}, "inter_op_threads": {"2"}, "execution_mode": {"parallel"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("knobs (-want +got):\n%s", diff)
	}
	if len(outs) != 1 || outs[0].Candidate.Key() != "execution_provider=cuda" {
		t.Errorf("left out are %v", outs)
	}
}

// measurer returns figures from a table of latencies by key. Every window advances its clock.
type measurer struct {
	seconds map[string]float64
	clock   time.Time
	after   int     // number of windows until stop is called
	foreign float64 // share of each window that others take
	stop    func()
	err     error
}

func (m *measurer) Measure(_ context.Context, t race.Trial) (Figure, error) {
	if m.after--; m.after == 0 {
		m.stop()
	}
	m.clock = m.clock.Add(t.Window + 300*time.Millisecond)
	seconds, ok := m.seconds[t.Candidate.Key()]
	if !ok {
		return Figure{Failure: "crash: it crashed\nlast words"}, m.err
	}
	w := measure.Window{Duration: t.Window, Foreign: m.foreign}
	return Figure{Value: seconds, Memory: 1e6, Window: w, Withheld: w.Withheld(2), Flags: []measure.Flag{measure.FlagForeign}}, m.err
}

// observer does nothing.
type observer struct{}

func (observer) Measured(race.Trial, Figure, time.Duration) {}

// sweepOf runs a sweep of two thread settings. One is twice as fast, and the other crashes.
func sweepOf(t *testing.T, m *measurer) (Setup, Result, error) {
	t.Helper()
	s := newSetup(t, "space: {intra_op_threads: [1, 2], execution_provider: [cpu, cuda]}\nname: simple")
	s.Variants = []journal.Variant{{Precision: "int8", Rejected: map[string]string{"cpu": "cosine 0.81 is below 0.99"},
		Accuracy: map[string]accuracy.Report{"cpu": {Rows: 64, Synthetic: true}}}}
	r, outs := s.Race()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.seconds = map[string]float64{"default": 0.004, "intra_op_threads=1": 0.002}
	m.stop, m.clock = cancel, time.Unix(0, 0)
	outcome, err := Run(ctx, r, m, func() time.Time { return m.clock }, observer{})
	return s, NewResult(s, r, outs, outcome, nil), err
}

func TestRunFindsTheWinner(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{})
	if err != nil || r.Outcome.Interrupted || !r.Race.Confirmed || r.Race.Winner.Key() != "intra_op_threads=1" {
		t.Fatalf("%v, %+v", err, r.Race)
	}
	win, _ := r.winner()
	if win.Gain.Value < 1.999 || win.Gain.Value > 2.001 {
		t.Errorf("gain is %+v, want 2", win.Gain)
	}
}

// The time that others took is summed over the windows, and reported in the result's words and in
// result.json.
func TestResultTellsOfOthers(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{foreign: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	const want = "Other processes took 20 % of the CPU time on average (up to 20 %); figures are corrected to the average."
	if !slices.Contains(r.warnings(), want) {
		t.Errorf("warnings are %q", r.warnings())
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Withheld struct{ Mean, Most, Slope float64 }
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil || math.Abs(d.Withheld.Mean-0.2) > 1e-9 || d.Withheld.Slope != -1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestInterruptedRunHasAResult(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{after: 12})
	if err != nil || !r.Outcome.Interrupted || r.Race.Confirmed {
		t.Fatalf("%v, %+v", err, r.Outcome)
	}
	dir := t.TempDir()
	if _, err := WriteAll(dir, r); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWithTheMeasurersError(t *testing.T) {
	t.Parallel()
	broken := errors.New("no space left")
	if _, _, err := sweepOf(t, &measurer{err: broken}); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}

func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	s, r, err := sweepOf(t, &measurer{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	written, err := WriteAll(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := WriteTable(&table, r); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"table.txt": table.String()}
	for _, name := range []string{jsonName, configName, pythonName} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		// The folder differs in each run. No other digest depends on it.
		text = strings.ReplaceAll(text, filepath.Dir(s.Sweep.Path), "DIR")
		golden.Check(t, filepath.Join("testdata", name), text)
	}
	if len(written) != 7 {
		t.Errorf("wrote %q", written)
	}
	if err := CheckOutput(dir); err != nil {
		t.Errorf("its own folder is refused: %v", err)
	}
}

func TestChartIsAPicture(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteChart(&b, r); err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(&b); err != nil {
		t.Error(err)
	}
	if err := WriteChart(&b, Result{Setup: r.Setup}); err != nil {
		t.Errorf("without a candidate: %v", err)
	}
}

// The axis ends at three times the longer one of default and answer. Without either, it ends at the
// longest bar or its drawn interval.
func TestReach(t *testing.T) {
	t.Parallel()
	figure := func(verdict race.Verdict, c search.Candidate, value, hi float64) bar {
		return bar{Standing: race.Standing{Candidate: c, Verdict: verdict, Value: stats.Estimate{Value: value, Hi: hi}}}
	}
	base := figure(race.Slower, candidate(), 2, 2.5)
	slow := figure(race.Dropped, candidate("execution_mode=parallel"), 100, 1000)
	for want, bars := range map[float64][]bar{2.5: {base}, 6: {base, slow}, 150: {slow}, 1: nil} {
		if got := reach(bars); got != want {
			t.Errorf("%d bars: %g, want %g", len(bars), got, want)
		}
	}
}

// Without a figure for the default there is no winner, and an earlier sweep's winner files are
// removed.
func TestNoWinnerRemovesItsFiles(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := WriteAll(dir, r); err != nil {
		t.Fatal(err)
	}
	r.Race.Standings, r.Race.Broken = nil, "it crashed"
	written, err := WriteAll(dir, r)
	if err != nil || slices.Contains(written, filepath.Join(dir, configName)) {
		t.Errorf("%q, %v", written, err)
	}
	if _, err := os.Stat(filepath.Join(dir, pythonName)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the earlier winner's program is still there")
	}
}

// ONNX Runtime's texts about a setting are often long. They must fit the screen.
func TestTableFitsATerminal(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{})
	if err != nil {
		t.Fatal(err)
	}
	r.Outs = append(r.Outs, race.Out{Reason: strings.Repeat("no such kernel ", 20)})
	var table strings.Builder
	if err := WriteTable(&table, r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if utf8.RuneCountInString(line) > 121 { // 120 and the end of the line
			t.Errorf("too long: %s", line)
		}
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var input *profile.InputError
	if err := CheckOutput(dir); !errors.As(err, &input) {
		t.Errorf("error is %v", err)
	}
}

func TestNotOfTriton(t *testing.T) {
	t.Parallel()
	c := candidate("precision=int8", "intra_op_threads=2", "allow_spinning=false", "session.use_device_allocator_for_initializers=1",
		"execution_provider=xnnpack", "openvino.num_of_threads=2", "cuda.use_tf32=0", "runtime=openvino@1.24.1")
	want := []string{
		"The model file is that of precision int8.", "A stock Triton ignores allow_spinning: false; tuner serve honours it.",
		"A stock Triton has no execution provider xnnpack; tuner serve has.", "A stock Triton does not pass openvino.num_of_threads: 2 on; tuner serve does.",
		"A stock Triton has its own ONNX Runtime; this was measured with openvino@1.24.1.",
	}
	if diff := cmp.Diff(want, notOfTriton(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// result.json is valid even if there are no intervals.
func TestJSONOfNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteJSON(&b, Result{Setup: newSetup(t, "")}); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("is not JSON")
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	// Threads are 1, 2 or unset. The arena is off or unset. cuda is missing: 3·2.
	s := newSetup(t, "space: {intra_op_threads: [1, 2], memory_arena: [true, false], execution_provider: [cpu, cuda]}")
	list, whole := s.Candidates(100)
	if len(list) != 6 || !whole || !list[0].IsDefault() {
		t.Errorf("%d candidates, whole %t: %v", len(list), whole, list)
	}
	if cut, whole := s.Candidates(3); len(cut) != 3 || whole {
		t.Errorf("cut to %d, whole %t", len(cut), whole)
	}
}

func TestGainText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]stats.Estimate{
		"+100 %":                      {Value: 2, Lo: 2 - 1e-12, Hi: 2 + 1e-12}, // only rounding, which is no interval
		"+109 % (+43.2 % to +207 %)":  {Value: 2.09, Lo: 1.432, Hi: 3.07},
		"-12.0 % (-30.0 % to +100 %)": {Value: 0.88, Lo: 0.7, Hi: 1.9996},
		"+5.0 %":                      {Value: 1.05, Lo: 0, Hi: 200},
	} {
		if got := gainText(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// The programs' inputs have the size of the measured requests, also if the configuration sets their
// shape.
func TestProgramsHaveTheMeasuredShapes(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "batch: 2")
	s.Subject.Model = build.LSTM() // series FLOAT[batch,sequence,32]
	s.Subject.Config = &modelconfig.Config{Input: []*configpb.ModelInput{{Name: "series", Dims: []int64{16, 32}}}}
	list, err := Result{Setup: s}.inputs()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if diff := cmp.Diff([]int64{2, 16, 32}, list[0].Shape); diff != "" {
		t.Errorf("shape (-want +got):\n%s", diff)
	}
}

// An instance group makes its count of instances on each of its GPUs. A sweep's sessions are on one
// GPU, so that their number is the requested one.
func TestSessionsAreOnOneGPU(t *testing.T) {
	t.Parallel()
	const gpus = 2
	onCPU := newSetup(t, "measure: throughput\nsessions: 3")
	onGPUs := onCPU.Setup
	onGPUs.Subject.Config = modelconfig.Clone(onCPU.Subject.Config)
	onGPUs.Subject.Config.InstanceGroup = []*configpb.ModelInstanceGroup{{Kind: configpb.ModelInstanceGroup_KIND_GPU, Gpus: []int32{1, 0}}}
	pinned, err := NewSetup(onCPU.Sweep, onGPUs)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		setup     Setup
		candidate search.Candidate
		gpu       int32
	}{
		"a default on two GPUs": {pinned, candidate(), 1}, "another on the same": {pinned, candidate("intra_op_threads=1"), 1},
		"CUDA beside the CPU": {onCPU, candidate("execution_provider=cuda"), 0},
	} {
		config, err := c.setup.config(c.candidate)
		if err != nil {
			t.Fatal(err)
		}
		if n := modelconfig.Instances(config, gpus); n != 3 || !slices.Equal(config.InstanceGroup[0].Gpus, []int32{c.gpu}) {
			t.Errorf("%s: %d sessions on GPUs %v, want 3 on GPU %d", name, n, config.InstanceGroup[0].Gpus, c.gpu)
		}
	}
	if pinned.Facts.GPUs != 1 {
		t.Errorf("the facts speak of %d GPUs", pinned.Facts.GPUs)
	}
}

// XNNPACK's session does not spin by default, and its own pool uses all cores.
func TestXNNPACKSessions(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "space: {execution_provider: [cpu, xnnpack], intra_op_threads: [1, 4], allow_spinning: [true, false]}")
	s.device.Cores = 4
	k := s.canon()
	for _, c := range []struct{ from, want search.Candidate }{
		{candidate("execution_provider=xnnpack", "allow_spinning=false"), candidate("execution_provider=xnnpack")},
		{candidate("execution_provider=xnnpack", "intra_op_threads=4"), candidate("execution_provider=xnnpack")},
		{candidate("execution_provider=xnnpack", "allow_spinning=true"), candidate("execution_provider=xnnpack", "allow_spinning=true")},
		{candidate("execution_provider=xnnpack", "intra_op_threads=1"), candidate("execution_provider=xnnpack", "intra_op_threads=1")},
	} {
		if got, out := k.of(c.from); out != "" || got.Key() != c.want.Key() {
			t.Errorf("%s is %s (%q), want %s", c.from, got, out, c.want)
		}
	}
	knobs, _ := k.prune()
	i := slices.IndexFunc(knobs, func(o search.Knob) bool { return o.Name == sessionoption.AllowSpinning })
	if i < 0 || !slices.Contains(knobs[i].Values, "true") {
		t.Errorf("spinning is not tried: %v", knobs)
	}
}

// An engine that is kept to some of the machine's cores, as by taskset, counts its threads by them. So do
// the programs, which run elsewhere. On the whole machine both leave the number to ONNX Runtime.
func TestProgramsOfAKeptProcess(t *testing.T) {
	t.Parallel()
	whole := hostinfo.Online()
	if whole < 2 {
		t.Skip("needs a machine of two cores")
	}
	for cores, want := range map[int]string{whole: "", 1: "1"} {
		s := newSetup(t, "")
		s.device = deviceOf(cores)
		win := candidate("memory_arena=false")
		r := Result{Setup: s, Race: race.Result{Winner: win, Standings: []race.Standing{{Candidate: win, Verdict: race.Winner}}}}
		session, err := r.session()
		if got := session.Options.Settings[sessionoption.IntraOpThreads]; err != nil || got != want {
			t.Errorf("on %d of %d cores: %q threads, want %q; %v", cores, whole, got, want, err)
		}
	}
}

// The programs create the measured session, and not only the given settings.
func TestProgramsMakeTheMeasuredSession(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "")
	for _, c := range []struct {
		winner    search.Candidate
		threads   int
		providers []modelconfig.Provider
	}{
		{candidate("execution_provider=xnnpack", "intra_op_threads=2"), 1,
			[]modelconfig.Provider{{Name: "xnnpack", Options: map[string]string{"intra_op_num_threads": "2"}}}},
		{candidate("execution_provider=tensorrt", "intra_op_threads=2"), 2,
			[]modelconfig.Provider{{Name: "tensorrt", Options: map[string]string{}}, {Name: "cuda", Options: map[string]string{}}}},
	} {
		r := Result{Setup: s, Race: race.Result{Winner: c.winner, Standings: []race.Standing{{Candidate: c.winner, Verdict: race.Winner}}}}
		session, err := r.session()
		if diff := cmp.Diff(c.providers, session.Providers); diff != "" || err != nil || session.Options.Settings.Whole(sessionoption.IntraOpThreads) != c.threads {
			t.Errorf("%s: %v, %d threads; providers (-want +got):\n%s", c.winner, err, session.Options.Settings.Whole(sessionoption.IntraOpThreads), diff)
		}
	}
}

// The programs know which outputs have no dimensions, which the Go program makes itself.
func TestProgramsKnowScalars(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "")
	g := build.NewGraph("mean")
	x := g.Input("x", onnx.Float, onnx.Fixed(3))
	g.OutputAs("y", x, onnx.Float, onnx.Fixed(3))
	g.OutputAs("mean", g.Node("ReduceMean", []string{x}, build.IntAttribute("keepdims", 0)), onnx.Float)
	s.Subject.Model, s.Subject.Config = g.Model(), &modelconfig.Config{}
	r := Result{Setup: s, Race: race.Result{Standings: []race.Standing{{Verdict: race.Winner}}}}
	session, err := r.session()
	if diff := cmp.Diff(map[string]onnx.DataType{"mean": onnx.Float}, session.Scalars); diff != "" || err != nil {
		t.Errorf("%v; scalars (-want +got):\n%s", err, diff)
	}
}

// A race that ended before its question was answered says so with its answer, also if only the
// default was measured.
func TestUnprovenIsTold(t *testing.T) {
	t.Parallel()
	_, r, err := sweepOf(t, &measurer{})
	if err != nil {
		t.Fatal(err)
	}
	const why = "the budget of 1s was too short to find out whether anything beats the default"
	r.Race = race.Result{Unproven: true, Why: why, Standings: []race.Standing{{Verdict: race.Base, Windows: 1, Value: stats.Estimate{Value: 0.004}}}}
	dir := t.TempDir()
	if _, err := WriteAll(dir, r); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := WriteTable(&table, r); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"table": table.String()}
	for _, name := range []string{jsonName, configName, pythonName, cppName, goName} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		want := "Not proven: " + why
		if name == jsonName {
			want = `"unproven": true`
		}
		if !strings.Contains(text, want) || strings.Contains(text, "Default stays") || strings.Contains(text, "beyond doubt") {
			t.Errorf("%s does not say that nothing is proven:\n%s", name, text)
		}
	}
	if !strings.HasSuffix(r.headline(), "; try a longer --budget.") {
		t.Errorf("the headline is %q", r.headline())
	}
	r.Outcome.Interrupted = true
	if strings.Contains(r.headline(), "--budget") {
		t.Errorf("interrupted, the headline is %q", r.headline())
	}
}
