package posterior_test

import (
	"fmt"
	"testing"

	"tuner/measure"
	"tuner/search/posterior"
)

// BenchmarkNew learns from all events of a campaign from scratch, and after the newest event.
func BenchmarkNew(b *testing.B) {
	for _, trials := range []int{50, 100, 200} {
		m := newMachine(1)
		m.noise, m.wander = 0.03, 0.03
		events := m.campaign(trials)
		b.Run(fmt.Sprintf("anew/%d", trials), func(b *testing.B) {
			for b.Loop() {
				learned(posterior.New(m.options(), events))
			}
		})
		o := m.options()
		o.Like = posterior.New(m.options(), events[:trials-1])
		learned(o.Like)
		b.Run(fmt.Sprintf("like/%d", trials), func(b *testing.B) {
			for b.Loop() {
				learned(posterior.New(o, events))
			}
		})
	}
}

// learned asks about each metric, since a metric is learned at the first question.
func learned(p *posterior.Posterior) {
	for _, metric := range []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP99} {
		p.Noise(metric)
	}
}

// BenchmarkJoint asks for the joint distribution of many cells.
func BenchmarkJoint(b *testing.B) {
	for _, trials := range []int{50, 100, 200} {
		m := newMachine(1)
		m.noise, m.wander = 0.03, 0.03
		p := posterior.New(m.options(), m.campaign(trials))
		for _, n := range []int{100, 1500} {
			cells := m.cells(n)
			b.Run(fmt.Sprintf("%d/%d", trials, n), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					last := (i + 1) % n // the last answer is cached, so no question is asked twice
					cells[0], cells[last] = cells[last], cells[0]
					if _, ok := p.Joint(cells, measure.Throughput); !ok {
						b.Fatal("nothing is known")
					}
				}
			})
		}
	}
}

// cells lists n cells at growing loads.
func (m *machine) cells(n int) []posterior.Cell {
	var list []posterior.Cell
	for i := range n {
		load := measure.Load{Concurrency: 1 + i/len(m.members), BatchSize: 1}
		list = append(list, posterior.Cell{Candidate: m.members[i%len(m.members)], Load: load})
	}
	return list
}
