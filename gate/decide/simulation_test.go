package decide

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tuner/stats"
)

// tableRuns is for the table in docs/benchmarks.md: go test ./gate/decide -run Promise -v -gate.runs 20000
var tableRuns = flag.Int("gate.runs", 0, "simulated gates in each cell of the table; 0: 2,000 in those cells that are judged")

// A machine as CI has it. All effects are on the logarithm of the throughput. noise is the size s of docs/design/gate.md: drift and windows
// vary by 0.6·s. What differs from one day or machine to the next is the same for both sides of a pair and is left out.
type machine struct {
	random *rand.Rand
	noise  float64
	bursts bool

	drift    float64
	burning  bool    // the neighbour is busy
	remains  float64 // seconds until it is not, or is
	launches [2]float64
}

// The parts of the noise, and how long a pair takes.
const (
	driftShare    = 0.6 // of noise: standard deviation of a slow drift (Ornstein–Uhlenbeck)
	driftTime     = 120 // s, its time constant
	windowShare   = 0.6 // of noise: standard deviation of windowSeconds of windows
	windowSeconds = 5.0
	launchNoise   = 0.01 // standard deviation of what a launch brings
	spikes        = 0.03 // share of the windows that are slowed by 10 to 40 %
	burstLoss     = 0.25 // of the throughput, while a neighbour is busy
	burstTime     = 20.0 // s, mean
	quietTime     = 60.0 // s, mean
	launchTime    = 5.0  // s, of both sides
	windowLength  = 0.5  // s
	windowGap     = 0.4  // s, the warm-up before it and the answers behind it
)

func newMachine(random *rand.Rand, noise float64, bursts bool) *machine {
	m := &machine{random: random, noise: noise, bursts: bursts}
	m.drift = driftShare * noise * random.NormFloat64()
	m.remains = quietTime * random.ExpFloat64()
	return m
}

// pass lets time go by, and returns the share of it in which the neighbour was busy.
func (m *machine) pass(seconds float64) float64 {
	keeps := math.Exp(-seconds / driftTime)
	m.drift = keeps*m.drift + driftShare*m.noise*math.Sqrt(1-keeps*keeps)*m.random.NormFloat64()
	if !m.bursts {
		return 0
	}
	busy, left := 0.0, seconds
	for left > 0 {
		step := min(left, m.remains)
		if m.burning {
			busy += step
		}
		left -= step
		if m.remains -= step; m.remains <= 0 {
			m.burning = !m.burning
			m.remains = quietTime * m.random.ExpFloat64()
			if m.burning {
				m.remains = burstTime * m.random.ExpFloat64()
			}
		}
	}
	return busy / seconds
}

// window is the logarithm of the throughput of a side in a window.
func (m *machine) window(side int) float64 {
	m.pass(windowGap)
	busy := m.pass(windowLength)
	log := m.drift + m.launches[side] + windowShare*m.noise*math.Sqrt(windowSeconds/windowLength)*m.random.NormFloat64() + math.Log(1-burstLoss*busy)
	if m.random.Float64() < spikes {
		log += math.Log(1 - 0.1 - 0.3*m.random.Float64())
	}
	return log
}

// pair is how many times worse, as a logarithm, a candidate is found that loses this share of the throughput. The sides take turns, and the
// first turn, too.
func (m *machine) pair(number int, loses float64) float64 {
	m.pass(launchTime)
	m.launches = [2]float64{launchNoise * m.random.NormFloat64(), launchNoise*m.random.NormFloat64() + math.Log(1-loses)}
	logs := make([]float64, WindowsPerPair)
	for i := range logs {
		first := (number + i) % 2
		a := m.window(first)
		b := m.window(1 - first)
		if logs[i] = a - b; first == 1 {
			logs[i] = b - a
		}
	}
	return Middle(logs)
}

// cell is a row of the table.
type cell struct {
	noise, loses float64
	bursts       bool
}

// shares runs gates and returns the shares of their verdicts, and the median number of pairs.
func (c cell) shares(plan Plan, runs int) (shares map[Verdict]float64, pairs float64) {
	random := rand.New(rand.NewPCG(uint64(1e6*c.noise), uint64(1e6*c.loses)))
	shares = map[Verdict]float64{}
	took := make([]float64, runs)
	for r := range runs {
		m := newMachine(random, c.noise, c.bursts)
		g := New(plan, []Criterion{{Tolerated: -math.Log(1 - 0.02)}})
		for n := 0; !g.Tell([]float64{m.pair(n, c.loses)}); n++ {
		}
		shares[g.Verdict()] += 1 / float64(runs)
		took[r] = float64(g.Pairs())
	}
	return shares, stats.Median(took)
}

func (c cell) String() string {
	bursts := "no"
	if c.bursts {
		bursts = "yes"
	}
	return fmt.Sprintf("| %.0f %% | %s | %.1f %% |", 100*c.noise, bursts, 100*c.loses)
}

// The promise of a gate with a margin of 2 % (docs/design/gate.md, and the table in docs/benchmarks.md): what loses 0.5 % of the throughput or
// nothing fails in at most 0.5 % of the runs, what loses 5 % in at least 99 % where the noise is 5 % or less; whatever the bursts of a
// neighbour. A pass of what loses more than is tolerated is as rare as its level says.
func TestPromise(t *testing.T) {
	t.Parallel()
	plan := newPlan(t, 60, 1)
	var cells []cell
	for _, noise := range []float64{0.02, 0.05, 0.1} {
		for _, bursts := range []bool{false, true} {
			for _, loses := range []float64{0, 0.005, 0.02, 0.03, 0.05} {
				cells = append(cells, cell{noise, loses, bursts})
			}
		}
	}
	for _, c := range cells {
		isJudged := c.loses == 0.005 || c.loses == 0.05 && c.noise <= 0.05 || c.loses == 0.02 && c.noise == 0.05
		runs := *tableRuns
		if runs == 0 && isJudged {
			runs = 2000
		}
		if runs == 0 {
			continue
		}
		shares, pairs := c.shares(plan, runs)
		t.Logf("%s %.2f %% | %.2f %% | %.2f %% | %.0f |", c, 100*shares[Fail], 100*shares[Pass], 100*shares[Inconclusive], pairs)
		switch {
		case c.loses <= 0.005 && shares[Fail] > 0.005:
			t.Errorf("%s fails in %.2f %%, want 0.5 %% at most", c, 100*shares[Fail])
		case c.loses == 0.05 && c.noise <= 0.05 && shares[Fail] < 0.99:
			t.Errorf("%s fails in %.2f %%, want 99 %% at least", c, 100*shares[Fail])
		case c.loses == 0.02 && max(shares[Fail], shares[Pass]) > 1.5*errorRate:
			t.Errorf("%s fails in %.2f %% and passes in %.2f %%, want about %.1f %% of each at most", c, 100*shares[Fail], 100*shares[Pass], 100*errorRate)
		}
	}
}

// A sixth of the windows at either end does not count; a single value stands for itself.
func TestMiddle(t *testing.T) {
	t.Parallel()
	if got := Middle([]float64{1, 100, 3, 4, 2, 3}); got != 3 {
		t.Errorf("the middle of 1, 2, 3, 3, 4 and 100 is %g, want 3", got)
	}
	if got := Middle([]float64{7}); got != 7 {
		t.Errorf("the middle of 7 is %g", got)
	}
}
