package gate

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/gate/decide"
	"tuner/measure"
)

// A line of the history has the criteria of each metric and its verdict. A metric with a margin and
// a limit has the verdict of both.
func TestNewRecord(t *testing.T) {
	t.Parallel()
	row := func(c Criterion, v decide.Verdict, candidate, baseline, value, lo, hi float64) Row {
		s := decide.Standing{Verdict: v, Value: value, Lo: lo, Hi: hi}
		return Row{Criterion: c, Verdict: v, Candidate: candidate, Baseline: baseline, HasCandidate: true, HasBaseline: baseline > 0, Change: c.Change(s), Standing: s}
	}
	r := Result{Time: time.Unix(1e9, 0), Outcome: Outcome{Verdict: decide.Fail}, Rows: []Row{
		// 0.05 worse in logarithms is e^−0.05 − 1 = −4.877 % of throughput, between −5.824 % and
		// −3.921 %.
		row(Criterion{Metric: measure.Throughput, Margin: 0.02}, decide.Fail, 190, 200, 0.05, 0.04, 0.06),
		row(Criterion{Metric: measure.LatencyP99, Margin: 0.1}, decide.Pass, 0.02, 0.02, 0, -0.01, 0.01),
		// Half of the limit, with bounds of 1/e and e times the limit.
		row(Criterion{Metric: measure.LatencyP99, Bound: 0.04}, decide.Inconclusive, 0.02, 0, math.Log(0.5), math.Log(0.5)-1, math.Log(0.5)+1),
		row(Criterion{Metric: measure.Memory, Bound: 1e9}, decide.Inconclusive, 3e8, 0, 0, math.Inf(-1), math.Inf(1)),
		{Criterion: Criterion{Metric: measure.CPU, Bound: 1}, Verdict: decide.Inconclusive}, // not measured
	}}
	p := func(v float64) *float64 { return &v }
	want := map[measure.Metric]RecordFigure{
		measure.Throughput: {Candidate: 190, Baseline: p(200), Change: p(-0.0487706), Lo: p(-0.0582355), Hi: p(-0.0392106), Verdict: decide.Fail, Margin: p(0.02)},
		measure.LatencyP99: {Candidate: 0.02, Baseline: p(0.02), Change: p(0), Lo: p(-0.00995017), Hi: p(0.0100502), Verdict: decide.Inconclusive, Margin: p(0.1),
			Max: p(0.04), CandidateLo: p(0.00735759), CandidateHi: p(0.0543656)},
		measure.Memory: {Candidate: 3e8, Verdict: decide.Inconclusive, Max: p(1e9)},
	}
	got := NewRecord(r)
	if diff := cmp.Diff(want, got.Metrics); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.VerdictOn(measure.LatencyP99) != decide.Inconclusive {
		t.Errorf("the verdict on the latency is %q", got.VerdictOn(measure.LatencyP99))
	}
	// A line of an earlier version has only the gate's verdict.
	old := Record{Verdict: decide.Pass, Metrics: map[measure.Metric]RecordFigure{measure.Throughput: {Candidate: 190}}}
	if got := old.VerdictOn(measure.Throughput); got != decide.Pass {
		t.Errorf("the verdict of an old line is %q", got)
	}
}

func TestBothVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, want decide.Verdict }{
		{"", decide.Pass, decide.Pass}, {"", decide.Inconclusive, decide.Inconclusive}, {decide.Pass, decide.Pass, decide.Pass},
		{decide.Pass, decide.Inconclusive, decide.Inconclusive}, {decide.Inconclusive, decide.Fail, decide.Fail}, {decide.Fail, decide.Pass, decide.Fail},
	} {
		if got := both(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q are %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}
