package posterior_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// machine is a simulated campaign. Its cells have true throughputs, and predictions that miss them
// as in the recordings. Its speed drifts over seconds and minutes. It has bursts, and a neighbour
// that takes CPU time.
type machine struct {
	random  *rand.Rand
	truths  map[string]float64 // logarithm, by candidate and load
	priors  map[string]float64
	noise   float64 // deviation of a trial
	wander  float64 // deviation of the speed, over seconds and over minutes
	bursts  float64 // share of the trials that a burst slows down by a third
	takes   float64 // CPU share of a neighbour while it runs
	fast    float64
	slow    float64
	now     float64
	launch  int
	process float64 // deviation of an engine process from the others
	speeds  float64 // sum over trials
	trials  int
	loads   []int
	members []search.Candidate
}

func newMachine(seed uint64) *machine {
	r := rand.New(rand.NewPCG(seed, 3))
	m := &machine{random: r, truths: map[string]float64{}, priors: map[string]float64{}, loads: []int{1, 2, 4, 8, 16, 32}}
	// varies from recording to recording
	size := func(usual float64) float64 { return usual * math.Exp(0.5*r.NormFloat64()) }
	bias, shared, pools, smooth, cell := 0.3*r.NormFloat64(), surface(r, size(0.08)), size(0.16), size(0.1), size(0.03)
	for pool := range 4 {
		own, surface, cells := pools*r.NormFloat64(), surface(r, smooth), map[[2]int]float64{}
		for batch := 1; batch <= 8; batch *= 2 {
			c := search.Candidate{}.With("instance_count", search.IntValue(1+pool)).With("max_batch_size", search.IntValue(batch))
			m.members = append(m.members, c)
			for _, n := range m.loads {
				size := min(batch, n) // no more are in flight: batch sizes beyond that are one server
				server := [2]int{n, size}
				if _, known := cells[server]; !known {
					cells[server] = cell * r.NormFloat64()
				}
				prior := math.Log(10000*float64(1+pool)) + math.Log(1-math.Exp(-float64(n)/float64(2*size))) + 0.1*math.Log(float64(size))
				m.priors[key(c, n)] = prior
				m.truths[key(c, n)] = prior + bias + shared(n, size) + own + surface(n, size) + cells[server]
			}
		}
	}
	return m
}

// surface returns a smooth random function of load and batch on log scale, with a given standard
// deviation. It is a sum of waves whose covariance is exp(−½ Σ (difference/reach)²) (Rahimi and
// Recht, Random Features for Large-Scale Kernel Machines, 2007).
func surface(r *rand.Rand, deviation float64) func(n, batch int) float64 {
	const waves = 50
	var list [waves][3]float64
	for i := range list {
		list[i] = [3]float64{r.NormFloat64() / 1.2, r.NormFloat64() / 0.7, 2 * math.Pi * r.Float64()}
	}
	return func(n, batch int) float64 {
		sum := 0.0
		for _, w := range list {
			sum += math.Cos(w[0]*math.Log(float64(n)) + w[1]*math.Log(float64(batch)) + w[2])
		}
		return deviation * math.Sqrt(2.0/waves) * sum
	}
}

func key(c search.Candidate, n int) string { return fmt.Sprint(c.Key(), " ", n) }

// Log makes the machine the prior of a posterior.
func (m *machine) Log(c search.Candidate, l measure.Load, metric measure.Metric) (float64, bool) {
	p, ok := m.priors[key(c, l.Concurrency)]
	return p, ok && metric == measure.Throughput
}

// trial measures a cell for a second.
func (m *machine) trial(c search.Candidate, n, launch int) search.Event {
	gap := 2.0
	m.now += gap
	step := func(x *float64, tau float64) {
		keep := math.Exp(-gap / tau)
		*x = keep**x + m.wander*math.Sqrt(1-keep*keep)*m.random.NormFloat64()
	}
	step(&m.fast, 5)
	step(&m.slow, 60)
	m.speeds, m.trials = m.speeds+m.fast+m.slow, m.trials+1
	if launch != m.launch {
		m.launch, m.process = launch, 0.01*m.random.NormFloat64()
	}
	log := m.truths[key(c, n)] + m.fast + m.slow + m.process + m.noise*m.random.NormFloat64()
	if m.random.Float64() < m.bursts {
		log -= 0.35
	}
	foreign := 0.0
	if m.takes > 0 && m.random.Float64() < 0.5 {
		foreign = m.takes * m.random.Float64()
		log += math.Log1p(-foreign)
	}
	requests := int(math.Round(math.Exp(log)))
	w := measure.Window{
		Start: time.Duration(m.now * float64(time.Second)), Duration: time.Second, Requests: requests, Inferences: requests,
		Foreign: foreign, EngineCPU: 2 * time.Second,
	}
	return search.Event{
		Trial:       search.Trial{Candidate: c, Load: measure.Load{Concurrency: n, BatchSize: 1}, Phase: search.PhaseSearch},
		Measurement: measure.Measurement{Windows: []measure.Window{w}, Launch: launch},
		Elapsed:     time.Duration((m.now + 1) * float64(time.Second)),
	}
}

// campaign measures some cells, some of them often.
func (m *machine) campaign(trials int) []search.Event {
	var events []search.Event
	favourite := m.members[m.random.IntN(len(m.members))]
	for i := range trials {
		c := m.members[m.random.IntN(len(m.members)*2/3)]
		if i%3 == 0 {
			c = favourite
		}
		events = append(events, m.trial(c, m.loads[m.random.IntN(len(m.loads))], i/4))
	}
	return events
}

func (m *machine) options() posterior.Options {
	return posterior.Options{
		Space: search.Space{Facts: search.Facts{Cores: 2, Batching: true, Base: map[string]search.Value{search.KnobMaxQueueDelay: search.DurationValue(0)}}, Knobs: []search.Knob{}},
		Goal:  search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}},
		Prior: m,
	}
}

// The 95 % intervals of measured cells contain the truth on the campaign's average machine. The
// errors of unmeasured cells are as large as stated. The machine is quiet, drifts, has bursts, or
// has a neighbour.
func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                         string
		noise, wander, bursts, takes float64
	}{
		{"quiet", 0.02, 0.01, 0, 0},
		{"drift", 0.03, 0.07, 0, 0},
		{"bursts", 0.02, 0.03, 0.08, 0},
		{"neighbour", 0.02, 0.02, 0, 0.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			within, all, squares, unmeasured := 0, 0, 0.0, 0
			for seed := range uint64(40) {
				m := newMachine(seed)
				m.noise, m.wander, m.bursts, m.takes = c.noise, c.wander, c.bursts, c.takes
				events := m.campaign(60)
				p := posterior.New(m.options(), events)
				level := m.speeds / float64(m.trials)
				if c.takes > 0 {
					level -= meanWithheld(events)
				}
				for _, candidate := range m.members {
					for _, n := range m.loads {
						cell := posterior.Cell{Candidate: candidate, Load: measure.Load{Concurrency: n, BatchSize: 1}}
						x, _ := p.At(cell, measure.Throughput)
						z := (m.truths[key(candidate, n)] + level - x.Mean) / x.Deviation
						if isMeasured(p, cell) {
							all++
							if math.Abs(z) < 1.96 {
								within++
							}
						} else {
							squares, unmeasured = squares+z*z, unmeasured+1
						}
					}
				}
			}
			share, rms := float64(within)/float64(all), math.Sqrt(squares/float64(unmeasured))
			t.Logf("%s: %.1f %% of %d intervals hold, rms of z of %d unmeasured cells %.2f", c.name, 100*share, all, unmeasured, rms)
			if share < 0.93 || share > 0.97 {
				t.Errorf("%.1f %% of the intervals hold the truth, want 93 to 97 %%", 100*share)
			}
			if rms < 0.85 || rms > 1.15 {
				t.Errorf("the errors of unmeasured cells are %.2f of the stated ones, want 1", rms)
			}
		})
	}
}

func meanWithheld(events []search.Event) float64 {
	sum := 0.0
	for _, e := range events {
		sum += e.Measurement.Withheld(2)
	}
	return sum / float64(len(events))
}

func isMeasured(p *posterior.Posterior, c posterior.Cell) bool {
	return slices.ContainsFunc(p.Measured(), func(m posterior.Measured) bool {
		return m.Candidate.Key() == c.Candidate.Key() && m.Load == c.Load
	})
}

// Configurations that are the same server have one estimate. Without a queue delay, a maximum batch
// size above the requests in flight never fills.
func TestEqualServersAreOne(t *testing.T) {
	t.Parallel()
	m := newMachine(1)
	m.noise = 0.05
	four := search.Candidate{}.With("instance_count", "1").With("max_batch_size", "4")
	cell := func(c search.Candidate, n int) posterior.Cell {
		return posterior.Cell{Candidate: c, Load: measure.Load{Concurrency: n, BatchSize: 1}}
	}
	o := m.options()
	o.Prior = nil // the prior distinguishes them
	p := posterior.New(o, m.campaign(40))
	j, _ := p.Joint([]posterior.Cell{cell(four, 2), cell(four.With("max_batch_size", "8"), 2), cell(four.With("max_batch_size", "8"), 8)}, measure.Throughput)
	if d := j.Difference(0, 1); math.Abs(d.Mean) > 1e-9 || d.Deviation > 1e-6 {
		t.Errorf("batch 4 and 8 at two in flight differ by %v, want nothing", d)
	}
	if d := j.Difference(0, 2); d.Deviation < 1e-3 {
		t.Errorf("two loads differ by %v, want an uncertain difference", d)
	}
}

// The posterior does not depend on the order of the events, and half of the events leave more
// uncertainty.
func TestOrderAndAmount(t *testing.T) {
	t.Parallel()
	m := newMachine(5)
	m.noise, m.wander = 0.03, 0.03
	events := m.campaign(60)
	shuffled := slices.Clone(events)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	all, other, half := posterior.New(m.options(), events), posterior.New(m.options(), shuffled), posterior.New(m.options(), events[:30])
	wider, narrower := 0, 0
	for _, c := range half.Measured() {
		a, _ := all.At(c.Cell, measure.Throughput)
		b, _ := other.At(c.Cell, measure.Throughput)
		h, _ := half.At(c.Cell, measure.Throughput)
		if math.Abs(a.Mean-b.Mean) > 1e-6 || math.Abs(a.Deviation-b.Deviation) > 1e-6 {
			t.Errorf("%v at %v: %v, in another order %v", c.Candidate, c.Load, a, b)
		}
		if h.Deviation > a.Deviation {
			wider++
		} else {
			narrower++
		}
	}
	if wider < 4*narrower {
		t.Errorf("with half of the trials %d intervals are wider and %d narrower", wider, narrower)
	}
}

// A posterior that starts from one of fewer events is nearly equal to one from all events at once.
func TestLikeBefore(t *testing.T) {
	t.Parallel()
	m := newMachine(6)
	m.noise, m.wander = 0.03, 0.03
	events := m.campaign(60)
	o := m.options()
	o.Like = posterior.New(o, events[:52])
	quick, full := posterior.New(o, events), posterior.New(m.options(), events)
	for _, c := range full.Measured() {
		a, _ := quick.At(c.Cell, measure.Throughput)
		b, _ := full.At(c.Cell, measure.Throughput)
		if math.Abs(a.Mean-b.Mean) > b.Deviation || a.Deviation > 2*b.Deviation || b.Deviation > 2*a.Deviation {
			t.Errorf("%v at %v: %v, want about %v", c.Candidate, c.Load, a, b)
		}
	}
}
