package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
)

// run makes a campaign of the default and some configurations with a throughput each. An interval
// has a relative half-width.
func run(name string, half float64, throughputs ...float64) Run {
	r := Run{Name: name, Kind: Campaign, Winner: "config_1", Facts: map[string]string{}}
	for i, v := range throughputs {
		c := Configuration{Name: fmt.Sprintf("config_%d", i), Key: fmt.Sprintf("instance_count=%d", i), Description: fmt.Sprintf("%d instances", i)}
		if i == 0 {
			c.Key = defaultKey
		}
		c.Points = []Point{{Load: measure.Load{Concurrency: 8, BatchSize: 1}, Values: map[measure.Metric]Figure{
			measure.Throughput: {v, v * math.Exp(-half), v * math.Exp(half)},
			measure.LatencyP99: {8 / v, 8 / v * math.Exp(-half), 8 / v * math.Exp(half)},
		}}}
		r.Configurations = append(r.Configurations, c)
	}
	return r
}

func TestARunAgainstItselfShowsNothing(t *testing.T) {
	t.Parallel()
	a := run("a", 0.01, 100, 250, 180)
	p := Of([]Run{a, a}, measure.AssumedSpread).Pairs[0]
	if len(p.Changes) != 6 {
		t.Fatalf("%d changes, want 3 configurations × 2 metrics", len(p.Changes))
	}
	for _, c := range p.Changes {
		if c.Direction != NotShown || math.Abs(c.Change.Value) > 1e-12 {
			t.Errorf("%s %s: %+v", c.Configuration, c.Metric, c)
		}
	}
	if len(p.Differences)+len(p.ConfigDiffs)+len(p.OnlyA)+len(p.OnlyB) > 0 {
		t.Errorf("a run differs from itself: %+v", p)
	}
}

func TestSwappingInvertsEveryChange(t *testing.T) {
	t.Parallel()
	a, b := run("a", 0.01, 100, 250, 180), run("b", 0.03, 101, 300, 90)
	a.withheld, b.withheld = newWithheld(0.1, -0.8, 0.2), newWithheld(0.02, 0, 0)
	there, back := Of([]Run{a, b}, 0.02).Pairs[0], Of([]Run{b, a}, 0.02).Pairs[0]
	inverse := map[Direction]Direction{Better: Worse, Worse: Better, NotShown: NotShown}
	for i, c := range there.Changes {
		d := back.Changes[i]
		// (1 + x)·(1 + y) = 1, and the ends change places
		for _, product := range []float64{(1 + c.Change.Value) * (1 + d.Change.Value), (1 + c.Change.Lo) * (1 + d.Change.Hi), (1 + c.Change.Hi) * (1 + d.Change.Lo)} {
			if math.Abs(product-1) > 1e-9 {
				t.Errorf("%s: %+v and back %+v", c.Metric, *c.Change, *d.Change)
			}
		}
		if d.Direction != inverse[c.Direction] {
			t.Errorf("%s is %s, and %s back", c.Metric, c.Direction, d.Direction)
		}
	}
}

func TestDirections(t *testing.T) {
	t.Parallel()
	// A half-width of 1 % and a spread of 2 % add up to √(2·1² + 2·3.92²) = 5.7 %: 4 % is not shown, 10 % is.
	a, b := run("a", 0.01, 100, 100, 100), run("b", 0.01, 104, 110, 90)
	got := map[string]Direction{}
	for _, c := range Of([]Run{a, b}, 0.02).Pairs[0].Changes {
		got[c.Configuration+" "+string(c.Metric)] = c.Direction
	}
	want := map[string]Direction{
		"config_0 throughput": NotShown, "config_1 throughput": Better, "config_2 throughput": Worse,
		"config_0 latency_p99": NotShown, "config_1 latency_p99": Better, "config_2 latency_p99": Worse,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Without an interval nothing is shown, however large the change.
func TestFiguresWithoutInterval(t *testing.T) {
	t.Parallel()
	p := Of([]Run{run("a", 0, 100), run("b", 0.01, 300)}, 0.02).Pairs[0]
	for _, c := range p.Changes {
		if c.Change != nil || c.Direction != NotShown {
			t.Errorf("%+v", c)
		}
	}
}

// Campaigns of one server differ by their speed and by the errors of their cells. A change is then
// shown in 5 % of the comparisons.
func TestFalseDifferences(t *testing.T) {
	t.Parallel()
	const campaigns, cells, spread, half = 4000, 5, 0.02, 0.03
	random := rand.New(rand.NewPCG(1, 2))
	simulated := func() Run {
		speed := spread * random.NormFloat64()
		throughputs := make([]float64, cells)
		for i := range throughputs {
			throughputs[i] = 100 * math.Exp(speed+half/1.96*random.NormFloat64())
		}
		return run("x", half, throughputs...)
	}
	shown, all := 0, 0
	for range campaigns {
		for _, c := range Of([]Run{simulated(), simulated()}, spread).Pairs[0].Changes {
			if c.Metric == measure.Throughput {
				all++
				if c.Direction != NotShown {
					shown++
				}
			}
		}
	}
	// The cells of a pair share the speed. So the standard error is between √(0.05·0.95/20000) and √(0.05·0.95/4000): 0.15 to 0.35 %.
	if rate := float64(shown) / float64(all); rate < 0.04 || rate > 0.06 {
		t.Errorf("%.2f %% of equal figures are said to differ", 100*rate)
	}
}

// What others took is taken out: a machine of which they took a tenth does 10 % less.
func TestWithheldTimeIsCorrected(t *testing.T) {
	t.Parallel()
	a, b := run("a", 0.01, 100), run("b", 0.01, 90)
	b.withheld = newWithheld(0.1, -1, 0.1)
	for _, c := range Of([]Run{a, b}, 0.001).Pairs[0].Changes {
		if math.Abs(c.Change.Value) > 1e-9 || c.Direction != NotShown {
			t.Errorf("%s: %+v", c.Metric, *c.Change)
		}
	}
}

// At a request rate the schedule decides how much is answered, whatever others took. Latencies grow all
// the same. Of several models each has a load of its own.
func TestThroughputAtARateIsNotCorrected(t *testing.T) {
	t.Parallel()
	mixed, err := measure.NewMix(measure.Part{Model: "encoder", RequestRate: 50, BatchSize: 1}, measure.Part{Model: "ranker", Concurrency: 4, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	open, err := measure.NewMix(measure.Part{Model: "encoder", RequestRate: 50, BatchSize: 1}, measure.Part{Model: "ranker", RequestRate: 9, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		metric      measure.Metric
		load        measure.Load
		isCorrected bool
	}{
		{measure.Throughput, measure.Load{RequestRate: 100, BatchSize: 1}, false},
		{measure.Throughput, measure.Load{Concurrency: 8, BatchSize: 1}, true},
		{measure.LatencyP99, measure.Load{RequestRate: 100, BatchSize: 1}, true},
		{"encoder.throughput", measure.Load{Scale: 2, Mix: mixed}, false},
		{"ranker.throughput", measure.Load{Scale: 2, Mix: mixed}, true},
		{"encoder.latency_avg", measure.Load{Scale: 2, Mix: mixed}, true},
		{measure.Throughput, measure.Load{Scale: 2, Mix: mixed}, true},
		{measure.Throughput, measure.Load{Scale: 2, Mix: open}, false},
	} {
		a, b := run("a", 0.01, 100), run("b", 0.01, 100)
		for _, r := range []Run{a, b} {
			r.Configurations[0].Points[0] = Point{Load: tt.load, Values: map[measure.Metric]Figure{tt.metric: {100, 99, 101}}}
		}
		b.withheld = newWithheld(0.1, -1, 0.1)
		c := Of([]Run{a, b}, 0.001).Pairs[0].Changes[0]
		if isMoved := math.Abs(c.Change.Value) > 1e-9; isMoved != tt.isCorrected {
			t.Errorf("%s at %s: %+v", tt.metric, tt.load, *c.Change)
		}
	}
}

// The order of configurations in a file is that of its ranking, and does not matter for a change.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	a, b := run("a", 0.01, 100, 250), run("b", 0.01, 140, 250)
	straight := Of([]Run{a, b}, 0.02).Pairs[0].Changes
	b.Configurations[0], b.Configurations[1] = b.Configurations[1], b.Configurations[0]
	if d := cmp.Diff(straight, Of([]Run{a, b}, 0.02).Pairs[0].Changes, cmp.AllowUnexported(Change{}, shift{})); d != "" {
		t.Error(d)
	}
}

// Factors over the default are compared at the same load, or at best loads that both runs confirmed.
// Elsewhere a search has left the configuration at another load, and the factors differ for that.
func TestGainsOfDifferentLoads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loadA, loadB               int
		isConfirmedA, isConfirmedB bool
		want                       int // rows
	}{
		{4, 4, false, false, 1}, {4, 16, false, false, 0}, {4, 16, true, false, 0}, {15, 16, true, true, 1},
	} {
		a, b := run("a", 0.01, 100, 250), run("b", 0.01, 100, 250)
		for _, side := range []struct {
			run         Run
			concurrency int
			isConfirmed bool
			gain        float64
		}{{a, c.loadA, c.isConfirmedA, 1.4}, {b, c.loadB, c.isConfirmedB, 1.9}} {
			for i := range side.run.Configurations {
				one := &side.run.Configurations[i]
				one.gain = &measure.Estimate{Value: side.gain, Lo: side.gain * 0.99, Hi: side.gain * 1.01}
				one.best, one.isConfirmed = measure.Load{Concurrency: side.concurrency, BatchSize: 1}, side.isConfirmed
			}
		}
		if got := Of([]Run{a, b}, 0.02).Pairs[0].Gains; len(got) != c.want {
			t.Errorf("%+v: %d rows: %+v", c, len(got), got)
		}
	}
}

func TestWinners(t *testing.T) {
	t.Parallel()
	a, b := run("a", 0.01, 100, 250, 180), run("b", 0.01, 100, 250, 300)
	b.Winner = "config_2"
	p := Of([]Run{a, b}, 0.02).Pairs[0]
	// 300/180 = 1.667
	want := []string{
		"The winner changed from config_1 (1 instances) in a to config_2 (2 instances) in b.",
		"throughput of config_2 at concurrency 8 is better by 66.7 %.",
		"latency_p99 of config_2 at concurrency 8 is better by 40.0 %.",
	}
	if d := cmp.Diff(want, p.Winner); d != "" {
		t.Error(d)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	got := diff("# why\nname: \"a\"\nmax_batch_size: 4\n", "name: \"a\"\nmax_batch_size: 8\ninput []\n")
	if d := cmp.Diff([]string{"-max_batch_size: 4", "+max_batch_size: 8", "+input []"}, got); d != "" {
		t.Error(d)
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range Named([]Run{{Name: "out"}, {Name: "out"}, {Name: "b"}, {Name: "out"}}) {
		got = append(got, r.Name)
	}
	if d := cmp.Diff([]string{"out", "out#2", "b", "out#3"}, got); d != "" {
		t.Error(d)
	}
}
