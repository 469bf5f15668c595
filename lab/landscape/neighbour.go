package landscape

import "math/rand/v2"

// bursts come and go at random, with exponential times of means busyTime and idleTime.
type bursts struct {
	random *rand.Rand
	busy   bool
	left   float64 // s until the state changes
}

// newBursts starts idle.
func newBursts(random *rand.Rand) bursts {
	return bursts{random: random, left: idleTime * random.ExpFloat64()}
}

// step advances by one grain, and reports whether a burst is active.
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

// neighbour is another process of the replayed machine, such as a compiler. In bursts it takes a
// share of the cores. It slows processes that need more cores than it leaves. No truth includes it,
// since the model is served without the neighbour.
type neighbour struct {
	share  float64 // share of the cores' time that a burst takes, 0..1; 0: no neighbour
	bursts bursts
	busy   []bool // by grain
}

func newNeighbour(share float64, seed uint64) neighbour {
	return neighbour{share: share, bursts: newBursts(rand.New(rand.NewPCG(seed, 0x6e6f697365)))}
}

// taken returns the share of the cores' time that it takes between two grains, both included.
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

// slowed returns the factor on the speed of a process that uses `used` of the cores while others
// take a share. It is 1 if the rest suffices.
func slowed(used float64, cores int, taken float64) float64 {
	if used <= 0 || cores <= 0 || taken <= 0 {
		return 1
	}
	return min(1, (1-taken)*float64(cores)/min(used, float64(cores)))
}

// WithNeighbour returns the landscape on machines with a neighbour that takes a share of the cores,
// 0..1. It does so for 20 s of every 80 s in the mean. It does not affect the engine if the number
// of cores, or the engine's use of them, is unknown, as on a GPU.
func (l *Landscape) WithNeighbour(share float64) *Landscape {
	disturbed := *l
	disturbed.neighbour = share
	return &disturbed
}
