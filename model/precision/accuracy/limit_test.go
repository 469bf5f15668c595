package accuracy_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

func bound(v float64) *float64 { return &v }

// Every metric judges by its own figure of the worst output.
func TestCheckMetrics(t *testing.T) {
	t.Parallel()
	good := accuracy.Figures{CosineMean: 0.99, MaxAbs: 1, MeanAbs: 2, MaxRel: 3, MeanRel: 4, Top1: 0.9, Top5: 0.8, Neighbour: 0.7}
	bad := accuracy.Figures{CosineMean: 0.98, MaxAbs: 10, MeanAbs: 20, MaxRel: 30, MeanRel: 40, Top1: 0.5, Top5: 0.4, Neighbour: 0.3}
	report := accuracy.Report{
		Outputs: map[string]accuracy.Figures{"bad": bad, "good": good, "void": {CosineMean: nan, MaxAbs: nan, MeanAbs: nan, MaxRel: nan, MeanRel: nan, Top1: nan, Top5: nan, Neighbour: nan}},
		Labels:  &accuracy.LabelFigures{Output: "good", Reference: 0.75, Variant: 0.5},
		Command: bound(-3),
	}
	worst := map[string]float64{"cosine": 0.98, "max_abs_error": 10, "mean_abs_error": 20, "max_rel_error": 30, "mean_rel_error": 40,
		"top1_agreement": 0.5, "top5_agreement": 0.4, "neighbour_agreement": 0.3, "top1_accuracy_loss": 0.25, "command": -3}
	for _, metric := range accuracy.Metrics() {
		want, ok := worst[metric]
		if !ok {
			t.Fatalf("%s is not tested", metric)
		}
		kept := accuracy.Limit{Metric: metric, Command: "score"}
		missed := kept
		if metric != "command" {
			kept.Command, missed.Command = "", ""
		}
		if strings.HasSuffix(metric, "error") || strings.HasSuffix(metric, "loss") {
			kept.Max, missed.Max = bound(want), bound(want-0.01)
		} else {
			kept.Min, missed.Min = bound(want), bound(want+0.01)
		}
		for _, l := range []accuracy.Limit{kept, missed} {
			if err := l.Validate(); err != nil {
				t.Errorf("%s: %v", metric, err)
			}
		}
		if value, miss := kept.Check(report); value != want || miss != "" {
			t.Errorf("%s: %v, %q; want %v", metric, value, miss, want)
		}
		if value, miss := missed.Check(report); value != want || !strings.HasPrefix(miss, metric+" is ") {
			t.Errorf("%s: %v, %q; want %v and a miss", metric, value, miss, want)
		}
	}
	_, miss := accuracy.Limit{Metric: "cosine", Min: bound(0.99)}.Check(report)
	if want := `cosine is 0.98, less than 0.99 (output "bad")`; miss != want {
		t.Errorf("%q, want %q", miss, want)
	}
	_, miss = accuracy.Limit{Metric: "command", Max: bound(-4)}.Check(report)
	if want := "command is -3, more than -4"; miss != want {
		t.Errorf("%q, want %q", miss, want)
	}
}

// An unknown figure counts as a miss.
func TestCheckWithoutFigure(t *testing.T) {
	t.Parallel()
	check := func(l accuracy.Limit, r accuracy.Report, want string) {
		value, miss := l.Check(r)
		if !math.IsNaN(value) || miss != want {
			t.Errorf("%v: %v, %q, want %q", l.Metric, value, miss, want)
		}
	}
	void := accuracy.Report{Outputs: map[string]accuracy.Figures{"y": {CosineMean: nan}}}
	check(accuracy.Limit{Metric: "cosine", Min: bound(0)}, void, "no output has the shape that cosine needs")
	check(accuracy.Limit{Metric: "top1_accuracy_loss", Max: bound(1)}, void, "there are no labels to find top1_accuracy_loss")
	check(accuracy.Limit{Metric: "command", Min: bound(0)}, void, "the command has not been run")
	void.Command = &nan
	check(accuracy.Limit{Metric: "command", Min: bound(0)}, void, "command is not a number")
}

func TestLimitText(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]accuracy.Limit{
		"cosine ≥ 0.99":         {Metric: "cosine", Min: bound(0.99)},
		"mean abs error ≤ 0.01": {Metric: "mean_abs_error", Max: bound(0.01)},
		"`python score.py` ≥ 1 and `python score.py` ≤ 2": {Metric: "command", Command: "python score.py", Min: bound(1), Max: bound(2)},
	} {
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	refuse := func(l accuracy.Limit, want ...string) {
		err := l.Validate()
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %v, want %q", l, err, part)
			}
		}
	}
	refuse(accuracy.Limit{Metric: "cosinus", Min: bound(0)}, `"cosinus" is unknown; allowed are ["cosine"`)
	refuse(accuracy.Limit{Metric: "cosine"}, "needs a bound")
	refuse(accuracy.Limit{Metric: "cosine", Max: bound(1)}, `more of "cosine" is better`)
	refuse(accuracy.Limit{Metric: "top1_accuracy_loss", Min: bound(1)}, `less of "top1_accuracy_loss" is better`)
	refuse(accuracy.Limit{Metric: "command", Min: bound(1)}, "needs the command to run")
	refuse(accuracy.Limit{Metric: "cosine", Min: bound(1), Command: "score"}, "use the metric command")
	refuse(accuracy.Limit{Metric: "cosine", Min: &nan}, "not a number")
	refuse(accuracy.Limit{Metric: "command", Command: "score", Min: bound(2), Max: bound(1)}, "min is greater than max")
	refuse(accuracy.Limit{Metric: "max_abs_error", Min: bound(math.Inf(1)), Command: "score"}, "less of", "use the metric command", "not a number")
	refuse(accuracy.Limit{Metric: "cosine", Min: bound(99)}, `"cosine" is at most 1: write 0.99 for 99 %`)
	refuse(accuracy.Limit{Metric: "mean_rel_error", Max: bound(-0.1)}, `"mean_rel_error" is at least 0`)
	for _, l := range []accuracy.Limit{{Metric: "command", Command: "score", Min: bound(1), Max: bound(2)}, {Metric: "top1_agreement", Min: bound(1)},
		{Metric: "max_abs_error", Max: bound(0)}, {Metric: "top1_accuracy_loss", Max: bound(-0.01)}} {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// Rounding never makes a limit missed that is met exactly.
func TestCheckMetExactly(t *testing.T) {
	t.Parallel()
	check := func(l accuracy.Limit, a, b inputs.Tensor, labels []int64) {
		t.Helper()
		r, err := accuracy.Compare(one(a), one(b), labels)
		if err != nil {
			t.Fatal(err)
		}
		if value, miss := l.Check(r); miss != "" {
			t.Errorf("%v: %v, %q", l, value, miss)
		}
	}
	row := tensor(onnx.Float, []int64{1, 2}, 1, 1) // 2/√2/√2 is less than 1 in double precision
	check(accuracy.Limit{Metric: "cosine", Min: bound(1)}, row, row, nil)
	// Three of each row's five largest are the same. In double precision, ten times 3/5 is less
	// than 6.
	best := tensor(onnx.Float, []int64{10, 7}, slices.Repeat([]float64{7, 6, 5, 4, 3, 2, 1}, 10)...)
	others := tensor(onnx.Float, []int64{10, 7}, slices.Repeat([]float64{7, 6, 5, 1, 2, 4, 3}, 10)...)
	check(accuracy.Limit{Metric: "top5_agreement", Min: bound(0.6)}, best, others, nil)
	// The original is correct in 95 rows of 100, the variant in 94. In double precision, 0.95 -
	// 0.94 is more than 0.01.
	right := func(n int) inputs.Tensor {
		return tensor(onnx.Int64, []int64{100}, append(make([]float64, n), slices.Repeat([]float64{1}, 100-n)...)...)
	}
	check(accuracy.Limit{Metric: "top1_accuracy_loss", Max: bound(0.01)}, right(95), right(94), make([]int64, 100))
}

// A limit that applies to no output is reported, with metrics that apply. One output is enough.
func TestCheckReference(t *testing.T) {
	t.Parallel()
	single, whole := one(tensor(onnx.Float, []int64{2, 1}, 1, 2)), one(tensor(onnx.Int64, []int64{2}, 1, 2))
	both := accuracy.Outputs{{"n": whole[0]["y"], "y": tensor(onnx.Float, []int64{2, 2}, 1, 2, 3, 4)}}
	cosine := accuracy.Limit{Metric: "cosine", Min: bound(0.99)}
	for name, c := range map[string]struct {
		limit     accuracy.Limit
		reference accuracy.Outputs
		labels    []int64
		want      string // "": no error
	}{
		"one element per row": {cosine, single, nil, "max_abs_error, mean_abs_error, max_rel_error, mean_rel_error, command"},
		"whole numbers":       {cosine, whole, nil, "top1_agreement, command"},
		"labels":              {cosine, whole, []int64{1, 2}, "top1_agreement, top1_accuracy_loss, command"},
		"one of two outputs":  {cosine, both, nil, ""},
		"a command":           {accuracy.Limit{Metric: "command", Command: "score", Min: bound(0)}, single, nil, ""},
		"what it has":         {accuracy.Limit{Metric: "top1_agreement", Min: bound(1)}, whole, nil, ""},
	} {
		err := c.limit.CheckReference(c.reference, c.labels)
		if c.want != "" {
			c.want = "no output has the metric of the limit cosine ≥ 0.99; set a limit on one of " + c.want
		}
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Only properties of the original exclude an output from judgement.
func TestUnjudged(t *testing.T) {
	t.Parallel()
	r := accuracy.Report{Outputs: map[string]accuracy.Figures{"lacks": {CosineMean: nan}, "has": {CosineMean: 0.5}, "lost": {CosineMean: nan, NonFinite: 2}}}
	if got := (accuracy.Limit{Metric: "cosine"}).Unjudged(r); !slices.Equal(got, []string{"lacks"}) {
		t.Errorf("cosine: %q", got)
	}
	if got := (accuracy.Limit{Metric: "command"}).Unjudged(r); len(got) != 0 {
		t.Errorf("command: %q", got)
	}
}
