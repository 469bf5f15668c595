package capacity

import (
	"fmt"
	"math"
	"time"

	"tuner/capacity/autoscaler"
	"tuner/capacity/traffic"
	"tuner/internal/words"
)

// summary says the answer in a few sentences.
func summary(p *Plan) string {
	b := &p.Best
	share := fmt.Sprintf("%s of the requests within %s (%s on the worst day)", percent(b.Within), milliseconds(p.Asked.Limit), percent(b.WorstDay))
	if p.Status == Infeasible {
		return fmt.Sprintf("No fleet of %d to %d replicas answers %s of the requests within %s on every day, and %s over all days: "+
			"days that the traffic does not show miss more. The nearest is %s: %s.", p.Asked.MinReplicas, p.Asked.MaxReplicas,
			percent(p.Asked.Share), milliseconds(p.Asked.Limit), percent(planned(p.Asked.Share)), fleetText(b), share)
	}
	return fmt.Sprintf("%s: %s, %s.", fleetText(b), CostText(b), share)
}

// fleetText describes a fleet: "3 to 12 replicas of config_5 on c7i".
func fleetText(f *Fleet) string {
	return fmt.Sprintf("%s of %s on %s", f.Replicas(), f.Configuration, f.Type)
}

// Replicas describes the number of replicas: "4 replicas", "3 to 12 replicas".
func (f *Fleet) Replicas() string {
	if f.Scaling.Min == f.Scaling.Max {
		if f.Scaling.Min == 1 {
			return "1 replica"
		}
		return fmt.Sprintf("%d replicas", f.Scaling.Min)
	}
	return fmt.Sprintf("%d to %d replicas", f.Scaling.Min, f.Scaling.Max)
}

// CostText describes what a fleet costs: "cost 12.3 a day", or without a price "120.5 replica hours a
// day".
func CostText(f *Fleet) string {
	if f.Cost > 0 {
		return fmt.Sprintf("cost %.2f a day", f.Cost)
	}
	return fmt.Sprintf("%.1f replica hours a day", f.Hours)
}

// percent describes a share with the digits that tell it from 1.
func percent(share float64) string {
	if share > 0.9995 && share < 1 {
		return ">99.95 %"
	}
	return fmt.Sprintf("%.4g %%", 100*share)
}

func milliseconds(seconds float64) string { return words.Digits(seconds*1000, 4) + " ms" }

// notes says what limits the trust in a plan.
func (s *searcher) notes(chosen *attempt) (list []string) {
	t := s.q.Traffic
	if t.Length() < 24*time.Hour {
		list = append(list, fmt.Sprintf("The traffic covers %.3g hours. A day with its waves is needed for a cost per day.", t.Length().Hours()))
	}
	if t.IsDrawn {
		list = append(list, fmt.Sprintf("Requests are drawn around the rates as independent users send them. A trace of instants has its own bursts within %v.", traffic.Step))
	}
	if s.q.Startup < 0 && chosen.site.replica.Launch == 0 {
		list = append(list, fmt.Sprintf("The result has no launch time, so a pod is taken to start in %v. --startup says it better.", PodOverhead))
	}
	worst := 0.0
	for _, c := range chosen.site.replica.Checks {
		if c.Measured > 0 {
			worst = max(worst, math.Abs(c.Simulated/c.Measured-1))
		}
	}
	if worst > trusted {
		list = append(list, fmt.Sprintf("The simulation of %s misses a measured p99 by %s %%.", chosen.site.replica.Configuration, words.Digits(100*worst, 2)))
	}
	if b := chosen.set.Behavior; b != nil && b.Up.Tolerance != autoscaler.DefaultTolerance {
		list = append(list, "A tolerance in the autoscaler needs Kubernetes 1.35. --default-tolerance plans without.")
	}
	if chosen.o.shortfall > 0 {
		list = append(list, fmt.Sprintf("At the end %s requests still wait: the replicas answer less than comes.", words.Digits(chosen.o.shortfall, 3)))
	}
	if chosen.site.replica.Price == 0 {
		list = append(list, "No price is known: costs are replica hours. --price says what a replica costs per hour.")
	}
	return list
}

// trusted is the error of a simulated 99th percentile beyond which a plan says so.
const trusted = 0.2

// Spare returns the number of replicas of the chosen fleet that may be taken away at once: the others keep
// the limit at the autoscaler's target. Of n replicas at the rate t each, k may go while n t / (n − k) is at
// most the rate at which the limit is kept. n is the least number. It is one at least, since a node could
// never be drained otherwise.
func (p *Plan) Spare() int {
	s := p.Best.Scaling
	for _, c := range p.Configurations {
		if c.Configuration == p.Best.Configuration && c.Type == p.Best.Type && c.Safe > 0 && s.Target > 0 {
			return max(1, int(math.Floor(float64(s.Min)*(1-s.Target/c.Safe))))
		}
	}
	return 1
}
