package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"tuner/analyze"
	"tuner/measure/stats"
)

// Type is the answer for a type of machine: what its campaigns say together. A machine counts once,
// however many windows it had.
type Type struct {
	Machine       string `json:"machine"`
	State         string `json:"state"`              // answer, ended, infeasible or missing
	Hopeless      string `json:"hopeless,omitempty"` // why its campaigns were ended early
	Machines      int    `json:"machines"`           // on which the configuration was measured and keeps the constraints
	Campaigns     int    `json:"campaigns"`
	Configuration string `json:"configuration,omitempty"` // its name in the first campaign
	Setup         string `json:"setup,omitempty"`         // for people
	// over machines: the geometric mean with its 95 % interval, from the differences between machines.
	// With one machine it is that machine's interval
	Throughput *Interval `json:"throughput,omitempty"` // infer/s
	// Gain: factor of the throughput to the default's, over machines, from the factor on each. What a
	// machine does to both cancels. Absent for the default
	Gain *Interval `json:"gain,omitempty"`
	Cost *Interval `json:"cost,omitempty"` // of a million inferences
	// Next: cost on a machine of the type that was not measured, a 95 % interval; absent with one machine
	Next *Interval `json:"next,omitempty"`
	// Worst: cost on the worst of the measured machines. A further machine is worse with a probability
	// of 1/(machines + 1)
	Worst float64 `json:"worst,omitempty"`
	// Winners: the configurations that won on each machine, for people, if they differ
	Winners []string `json:"winners,omitempty"`
	// ToBest: factor of the cost to that of the best type, with its 95 % interval; absent for the best
	ToBest *Interval `json:"to_best,omitempty"`
	Tied   bool      `json:"tied,omitempty"` // cannot be told from the best

	configs []overMachines
	logs    []float64 // of the configuration's throughputs, one for each machine
	hourly  float64
}

// campaign is a campaign with its analysis.
type campaign struct {
	Row
	result *analyze.Result
	hourly float64 // price of an hour of the pod; 0: unknown
}

// typesOf joins the campaigns of each type of machine, in their order.
func typesOf(list []campaign, describe func(analyze.Config) string) []Type {
	var types []Type
	for len(list) > 0 {
		machine := list[0].Machine
		own := slices.DeleteFunc(slices.Clone(list), func(c campaign) bool { return c.Machine != machine })
		list = slices.DeleteFunc(slices.Clone(list), func(c campaign) bool { return c.Machine == machine })
		types = append(types, typeOf(own, describe))
	}
	return types
}

// typeOf joins the campaigns of one type. The configuration is the one with the highest mean of the
// log throughput over machines, among those that keep the constraints on most of them.
func typeOf(own []campaign, describe func(analyze.Config) string) Type {
	x := Type{Machine: own[0].Machine, State: own[0].State, Campaigns: len(own), hourly: own[0].hourly}
	answered := slices.DeleteFunc(slices.Clone(own), func(c campaign) bool { return c.State != StateAnswer })
	if len(answered) == 0 {
		for _, c := range own {
			if slices.Index(states(), c.State) <= slices.Index(states(), x.State) {
				x.State, x.Hopeless = c.State, c.Hopeless
			}
		}
		return x
	}
	x.State = StateAnswer
	x.configs = configsOf(answered)
	chosen, measured := x.configs[0].config, x.configs[0].logs
	x.Configuration, x.Setup, x.Machines, x.logs = chosen.Name, describe(chosen), len(measured), measured
	winners := map[string]bool{}
	for _, c := range answered {
		if !winners[c.Setup] {
			winners[c.Setup] = true
			x.Winners = append(x.Winners, c.Setup)
		}
	}
	if len(x.Winners) == 1 {
		x.Winners = nil
	}
	if len(measured) == 1 {
		i := slices.IndexFunc(answered, func(c campaign) bool { return best(c, chosen) != nil })
		x.Throughput = best(answered[i], chosen)
	} else {
		e := stats.Mean(measured)
		x.Throughput = &Interval{math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)}
	}
	x.Gain = gainOf(answered, chosen)
	return x.priced()
}

// gainOf returns the factor of a configuration's throughput to the default's, over the machines on which both
// keep the constraints: mean ± t(k−1) · s/√k of the logs of their factors. With one machine it is the
// campaign's own, which is about the objective.
func gainOf(answered []campaign, chosen analyze.Config) *Interval {
	if chosen.Candidate.IsDefault() {
		return nil
	}
	var logs []float64
	var own *Interval
	for _, c := range answered {
		with, without := best(c, chosen), best(c, analyze.Config{})
		if with == nil || without == nil {
			continue
		}
		logs = append(logs, math.Log(with.Value/without.Value))
		for _, config := range c.result.Configs {
			if g := config.Gain; g != nil && isThroughput(c.result.Goal) && config.Candidate.Key() == chosen.Candidate.Key() {
				own = &Interval{g.Value, g.Lo, g.Hi}
			}
		}
	}
	if len(logs) < 2 {
		return own
	}
	e := stats.Mean(logs)
	return &Interval{math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)}
}

// overMachines is a configuration with the logs of its throughputs, one for each machine on which it keeps
// the constraints.
type overMachines struct {
	config analyze.Config
	logs   []float64
}

// configsOf returns the configurations of a type, the best first: those that keep the constraints on the
// most machines, by the mean of their logs.
func configsOf(answered []campaign) []overMachines {
	var list []overMachines
	seen := map[string]bool{}
	for _, c := range answered {
		for _, config := range c.result.Configs {
			if seen[config.Candidate.Key()] {
				continue
			}
			seen[config.Candidate.Key()] = true
			x := overMachines{config: config}
			for _, other := range answered {
				if i := best(other, config); i != nil {
					x.logs = append(x.logs, math.Log(i.Value))
				}
			}
			if len(x.logs) > 0 {
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b overMachines) int {
		return cmp.Or(cmp.Compare(len(b.logs), len(a.logs)), cmp.Compare(mean(b.logs), mean(a.logs)))
	})
	return list
}

// mean returns the mean of some values, at least one.
func mean(list []float64) float64 { return stat.Mean(list, nil) }

// best returns the throughput of a configuration in a campaign, at the load that is best there. It is
// nil unless the configuration keeps the constraints there.
func best(c campaign, of analyze.Config) *Interval {
	for i, config := range c.result.Configs {
		isSame := config.Candidate.Key() == of.Candidate.Key()
		if winner, ok := c.result.Winner(); isSame && config.Best != nil && (config.Satisfies() && !config.CurveOnly && !config.FailedFinals || ok && i == 0 && winner.Name == config.Name) {
			return throughputOf(config)
		}
	}
	return nil
}

// priced returns the type with its costs.
func (x Type) priced() Type {
	x.Cost = costOf(x.hourly, x.Throughput)
	if x.Cost == nil || len(x.logs) < 2 {
		return x
	}
	if e, ok := stats.Next(x.logs); ok {
		x.Next = costOf(x.hourly, &Interval{math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)})
	}
	x.Worst = costAt(x.hourly, math.Exp(slices.Min(x.logs)))
	return x
}

// arePriced reports whether all answers have a cost. A type's configuration need not be the winner of a campaign, so
// its throughput may be too noisy for a cost where the winners' are not.
func arePriced(types []Type) bool {
	return !slices.ContainsFunc(types, func(x Type) bool { return x.State == StateAnswer && x.Cost == nil })
}

// compareToBest orders the types, the cheapest first, and compares each with the first one.
func compareToBest(types []Type, byCost bool) {
	rank := func(x Type) int { return slices.Index(states(), x.State) }
	slices.SortStableFunc(types, func(a, b Type) int {
		if c := cmp.Compare(rank(a), rank(b)); c != 0 || a.State != StateAnswer {
			return c
		}
		if byCost {
			return cmp.Compare(a.Cost.Value, b.Cost.Value)
		}
		return cmp.Compare(valueOf(b.Throughput), valueOf(a.Throughput))
	})
	if !byCost {
		return
	}
	for i := range types {
		if x := &types[i]; i > 0 && x.State == StateAnswer {
			x.ToBest = ratio(*x, types[0])
			x.Tied = x.ToBest.Lo <= 1
		}
	}
}

// ratio returns the factor between the costs of two types. With two machines of each it is Welch's, over
// machines. Otherwise it is the widest that the two intervals allow, and is about these machines.
func ratio(x, best Type) *Interval {
	price := math.Log(x.hourly / best.hourly)
	if e, ok := stats.Difference(best.logs, x.logs); ok { // the more throughput, the less cost
		return &Interval{math.Exp(e.Value + price), math.Exp(e.Lo + price), math.Exp(e.Hi + price)}
	}
	return &Interval{x.Cost.Value / best.Cost.Value, x.Cost.Lo / best.Cost.Hi, x.Cost.Hi / best.Cost.Lo}
}

// sentences says what the types mean.
func sentences(model string, types []Type, byCost bool) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	first := types[0]
	switch {
	case first.State != StateAnswer:
		say("No machine has an answer for %s.", model)
	case byCost:
		say("Cheapest: %s, %s of a million inferences.", first.Machine, first.Cost.text())
		for _, x := range types[1:] {
			switch {
			case x.State != StateAnswer:
			case x.Tied:
				say("%s cannot be told from it: it costs %s × as much.", x.Machine, x.ToBest.text())
			default:
				say("%s costs %.3g × as much (%.3g to %.3g).", x.Machine, x.ToBest.Value, x.ToBest.Lo, x.ToBest.Hi)
			}
		}
	default:
		say("Most throughput: %s. The cost needs a price of every machine (machines.NAME.price).", first.Machine)
	}
	for _, x := range types {
		list = append(list, x.remarks()...)
	}
	return list
}

// remarks makes the sentences about a type beside its cost.
func (x Type) remarks() []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch x.State {
	case StateInfeasible:
		say("%s cannot keep the constraints.", x.Machine)
	case StateEnded:
		say("%s was ended early: %s.", x.Machine, x.Hopeless)
	}
	if x.State != StateAnswer {
		return list
	}
	if x.Gain != nil && x.Gain.Lo <= 1 {
		say("%s: its configuration cannot be told from the default: %s × its throughput.", x.Machine, x.Gain.text())
	}
	if x.Next != nil {
		say("Another machine of type %s will cost %.4g to %.4g. The worst of the %d measured costs %.4g, and another one is worse with a probability of 1/%d.",
			x.Machine, x.Next.Lo, x.Next.Hi, x.Machines, x.Worst, x.Machines+1)
	}
	if x.Machines < x.Campaigns {
		say("%s: the configuration has a figure within the constraints on %d of %d machines.", x.Machine, x.Machines, x.Campaigns)
	}
	if len(x.Winners) > 0 {
		say("%s: the machines do not agree on the best configuration: %s.", x.Machine, strings.Join(x.Winners, "; "))
	}
	return list
}
