package landscape

import "math/rand/v2"

// bursts come and go at random: exponential times, of the means busyTime and idleTime.
type bursts struct {
	random *rand.Rand
	busy   bool
	left   float64 // s until it changes
}

// newBursts begins idle.
func newBursts(random *rand.Rand) bursts {
	return bursts{random: random, left: idleTime * random.ExpFloat64()}
}

// step goes on by one grain, and reports whether there is a burst.
func (b *bursts) step() bool {
	if b.left -= grain; b.left <= 0 {
		b.busy = !b.busy
		b.left = idleTime * b.random.ExpFloat64()
		if b.busy {
			b.left *= busyTime / idleTime
		}
	}
	return b.busy
}

// neighbour is another process of the replayed machine, such as a compiler: in bursts it
// takes a share of the cores. It slows what wants more of them than it leaves. It is in
// no truth, since the model is served when the neighbour is gone.
type neighbour struct {
	share  float64 // of the cores' time that a burst takes, 0..1; 0: there is none
	bursts bursts
	busy   []bool // for each grain
}

func newNeighbour(share float64, seed uint64) neighbour {
	return neighbour{share: share, bursts: newBursts(rand.New(rand.NewPCG(seed, 0x6e6f697365)))}
}

// taken is the share of the cores' time that it takes between two grains, both included.
func (n *neighbour) taken(first, last int) float64 {
	if n.share == 0 {
		return 0
	}
	for len(n.busy) <= last {
		n.busy = append(n.busy, n.bursts.step())
	}
	busy := 0
	for _, b := range n.busy[first : last+1] {
		if b {
			busy++
		}
	}
	return n.share * float64(busy) / float64(last-first+1)
}

// slowed is the factor on the speed of what would use so many of the machine's cores,
// where a share of these is taken: 1 as long as the rest suffices.
func slowed(used float64, cores int, taken float64) float64 {
	if used <= 0 || cores <= 0 || taken <= 0 {
		return 1
	}
	return min(1, (1-taken)*float64(cores)/min(used, float64(cores)))
}

// WithNeighbour is the landscape on machines with a neighbour that takes a share of the
// cores, 0..1, for 20 s of every 80 s in the mean. Where the number of cores is not
// known, or what the engine uses of them, as on a GPU, it has no effect on the engine.
func (l *Landscape) WithNeighbour(share float64) *Landscape {
	disturbed := *l
	disturbed.neighbour = share
	return &disturbed
}
