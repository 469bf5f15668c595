package landscape

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
)

// The windows of a block come in the order A B C, C B A, on their own launches, and its times add
// up.
func TestBlock(t *testing.T) {
	t.Parallel()
	m := small().make().NewMachine(1)
	seats := []search.Trial{trial(candidate("1", "1"), 1), trial(candidate("2", "4"), 16), trial(candidate("1", "1"), 99)}
	events := m.Block(search.Settings{}.Block(seats, 4).Block)
	var last time.Duration
	order := []int{0, 1, 1, 0, 0, 1, 1, 0}
	taken := make([]int, 2)
	for _, i := range order {
		w := events[i].Measurement.Windows[taken[i]]
		if taken[i]++; w.Start < last+fill || !w.Turn {
			t.Errorf("turn %d of seat %d begins at %v, after %v", taken[i], i, w.Start, last)
		}
		last = w.Start + w.Duration
	}
	sum := time.Duration(0)
	for i, e := range events {
		sum += e.Measurement.Times.Total()
		if e.Measurement.Launch != i+1 || (e.Measurement.Failure != nil) != (i == 2) || i < 2 && (e.Elapsed != sum || len(e.Measurement.Windows) != 4) {
			t.Errorf("seat %d: %+v, after %v of %v", i, e.Measurement, e.Elapsed, sum)
		}
	}
	if events[2].Elapsed < sum || m.Launches() != 3 {
		t.Errorf("%d launches, the last event after %v of %v", m.Launches(), events[2].Elapsed, sum)
	}
}

// Turns cancel the machine's drift. If nothing else differs, two seats of one configuration differ
// less than two consecutive trials.
func TestBlockCancelsDrift(t *testing.T) {
	t.Parallel()
	s := small()
	s.noise = Noise{Flicker: 0.1}
	l := s.make()
	logRatio := func(a, b search.Event) float64 {
		x, _ := a.Measurement.Value(measure.Throughput)
		y, _ := b.Measurement.Value(measure.Throughput)
		return math.Log(x / y)
	}
	var turns, apart float64
	for seed := range uint64(40) {
		seat := trial(candidate("2", "4"), 16)
		block := search.Settings{}.Block([]search.Trial{seat, seat}, 6).Block
		events := l.NewMachine(seed).Block(block)
		m := l.NewMachine(seed)
		a, b := m.Measure(block[0].Alone()), m.Measure(block[1].Alone())
		turns, apart = turns+math.Pow(logRatio(events[0], events[1]), 2), apart+math.Pow(logRatio(a, b), 2)
	}
	if turns > apart/3 {
		t.Errorf("in turns they differ by %.2f %%, apart by %.2f %%", 100*math.Sqrt(turns/40), 100*math.Sqrt(apart/40))
	}
}

// A campaign whose finals are blocks finds the best like any other, and reports as much about it.
func TestCampaignInTurns(t *testing.T) {
	t.Parallel()
	y := small()
	y.noise = noiseOf(0.02)
	l := y.make()
	limit := l.Limits()[2]
	settings := l.Settings(limit, 3*time.Minute, 1)
	settings.Turns = true
	strategy, err := plan.New("random", settings)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[int]int{}
	o := l.Run(strategy, limit, 1, func(e search.Event, _ string, _ float64) { blocks[e.Trial.Block]++ })
	if o.Regret[Long] != 0 || o.False[Long] || o.Elapsed > 3*time.Minute+time.Second || !o.Value.Stated || !o.Gain.Stated || blocks[1] < 2 || blocks[4] < 2 {
		t.Errorf("outcome is %+v, with blocks %v", o, blocks)
	}
}
