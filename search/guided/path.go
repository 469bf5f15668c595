package guided

import (
	"math"
	"slices"

	"tuner/measure"
)

// What the path to the server takes is learned from trials that tell it.
const (
	told  = 0.1  // share of the CPU time that the path takes at least: a smaller one is lost in that of the instances
	busy  = 0.7  // of the highest request rate: trials with fewer requests share fewer wake-ups among these
	clean = 10   // one of so many trials is taken for undisturbed: threads that spin, switch or wait for memory only add to what a trial uses
	steps = 0.05 // of its logarithm, lest all be simulated anew for every small change
)

// learnPath estimates what a request takes on the path to the server (queuesim.Curve): what little disturbed trials with the highest request rates
// tell, or what an earlier campaign found as long as none does. Where that is new, what it has a part in is predicted anew.
func (g *Guided) learnPath() {
	type sight struct{ rate, path float64 }
	var sights []sight
	most := 0.0
	for _, p := range g.pools {
		if !p.isReady() {
			continue
		}
		for _, t := range p.tracks {
			if rate, path, ok := pathOf(p, t.measurement); ok {
				sights, most = append(sights, sight{rate, path}), max(most, rate)
			}
		}
	}
	var paths []float64
	for _, s := range sights {
		if s.rate >= busy*most {
			paths = append(paths, s.path)
		}
	}
	path := g.past.path
	if len(paths) > 0 {
		slices.Sort(paths)
		path = math.Exp(steps * math.Round(math.Log(paths[len(paths)/clean])/steps))
	}
	if path == g.path {
		return
	}
	g.path = path
	for _, p := range g.pools {
		if p.isReady() {
			g.predictAnew(p)
		}
	}
}

// pathOf is the request rate of windows, and the processor time in seconds that a request takes outside of the instances of a pool: what engine and clients
// used less what the instances computed, by their service times, since beside others they take longer without computing more. False where that
// cannot be told, as of a server on another machine.
func pathOf(p *pool, m measure.Measurement) (rate, path float64, ok bool) {
	used, computed, duration, requests := 0.0, 0.0, 0.0, 0
	for _, w := range m.Windows {
		if w.EngineCPU == 0 || w.ClientCPU == 0 || w.Server.Executions == 0 {
			return 0, 0, false
		}
		used += (w.EngineCPU + w.ClientCPU).Seconds()
		batch := max(int(math.Round(w.Server.MeanBatch())), 1)
		computed += float64(p.threads*w.Server.Executions) * p.curve.Time(batch, 1, p.instances)
		requests += w.Requests
		duration += w.Duration.Seconds()
	}
	if requests == 0 || used-computed < told*used {
		return 0, 0, false
	}
	return float64(requests) / duration, (used - computed) / float64(requests), true
}

// passable is the most that can pass to the server, in inferences/s.
func (g *Guided) passable() float64 {
	cores := g.settings.Space.Facts.Cores
	if g.path == 0 || cores == 0 {
		return math.Inf(1)
	}
	return float64(cores*g.clientBatch()) / g.path
}
