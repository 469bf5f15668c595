// Package adaptation makes the table of adaptive serving from a campaign's result, and judges whether it
// pays for a traffic.
//
// It simulates each configuration at many rates, as package capacity does for a plan, and widens the
// latencies by what their measurements allow. Package adaptive has the table and the rule that a server
// follows. This package measures nothing.
package adaptation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"tuner/adaptive"
	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/internal/parallel"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// Question says which table is wanted.
type Question struct {
	Plan    capacity.Question
	Machine string            // name of the result
	Chosen  string            // name of the plan's configuration
	Moments []capacity.Moment // of the plan's fleet
	// Deployed returns the configuration of a server, by its name in the result
	Deployed func(name string) (*modelconfig.Config, error)
}

const (
	// mostOfAKind is the number of configurations with the highest throughputs, and of those with the shortest
	// latencies at their lowest load, that are considered.
	mostOfAKind = 6
	// rates is the number of rates of a table, at equal distances up to the highest capacity.
	rates = 24
	// highest is the share of a configuration's capacity up to which its queue is simulated.
	highest = 0.97
	// limitSteps is the number of limits for each factor of two, from which quantiles are interpolated.
	limitSteps = 4
	// limitFactors are the powers of two of the limit between which latencies are told apart.
	leastPower, mostPower = -8, 4
)

// option is a configuration that the server may have.
type option struct {
	c       result.Configuration
	replica replica.Replica
	table   replica.Table
	width   float64 // of the latencies, as a logarithm
}

// Table makes the table.
func Table(q Question, r result.Result) (adaptive.Table, error) {
	options, err := optionsOf(q, r)
	if err != nil {
		return adaptive.Table{}, err
	}
	t := adaptive.Table{Format: adaptive.Format, Model: r.Model, Quantile: q.Plan.Share, Static: q.Chosen}
	most := 0.0
	for _, o := range options {
		most = max(most, highest*o.replica.Capacity)
	}
	for i := range rates {
		t.Rates = append(t.Rates, capacity.Significant(most*float64(i+1)/rates))
	}
	static, err := q.Deployed(q.Chosen)
	if err != nil {
		return adaptive.Table{}, err
	}
	for _, o := range options {
		c, err := o.configuration(q, t.Rates, static)
		if err != nil {
			return adaptive.Table{}, err
		}
		t.Configurations = append(t.Configurations, c)
	}
	judge(&t, q, options)
	return t, nil
}

// optionsOf returns the configurations that serve the same model file as the chosen one, with their
// simulations.
func optionsOf(q Question, r result.Result) ([]option, error) {
	at := slices.IndexFunc(r.Configurations, func(c result.Configuration) bool { return c.Name == q.Chosen })
	if at < 0 {
		return nil, fmt.Errorf("the result has no configuration %q", q.Chosen)
	}
	chosen := candidates(r, r.Configurations[at])
	all := make([]option, len(chosen))
	errs := make([]error, len(chosen))
	parallel.For(len(chosen), func(i int) { all[i], errs[i] = optionOf(q, r, chosen[i]) })
	var options []option
	for i, o := range all {
		switch {
		case errs[i] == nil:
			options = append(options, o)
		case chosen[i].Name == q.Chosen:
			return nil, errs[i]
		}
	}
	return options, nil
}

// candidates returns the configurations to consider, the chosen one first.
func candidates(r result.Result, chosen result.Configuration) []result.Configuration {
	type entry struct {
		c              result.Configuration
		most, shortest float64
	}
	var list []entry
	for _, c := range r.Configurations {
		s, like := c.Setup, chosen.Setup
		if c.Name == chosen.Name || s.Precision != like.Precision || s.Provider != like.Provider || s.Runtime != like.Runtime || len(c.Points) == 0 {
			continue
		}
		e := entry{c: c, shortest: math.Inf(1)}
		lowest := math.Inf(1)
		for _, p := range c.Points {
			e.most = max(e.most, p.Values[measure.Throughput].Value)
			if p99 := p.Values[measure.LatencyP99].Value; p99 > 0 && p.Load.Level() < lowest {
				lowest, e.shortest = p.Load.Level(), p99
			}
		}
		list = append(list, e)
	}
	taken := map[string]bool{}
	result := []result.Configuration{chosen}
	take := func(order func(a, b entry) int) {
		slices.SortStableFunc(list, order)
		for i, e := range list {
			if i < mostOfAKind && !taken[e.c.Name] {
				taken[e.c.Name] = true
				result = append(result, e.c)
			}
		}
	}
	take(func(a, b entry) int { return cmp.Compare(b.most, a.most) })
	take(func(a, b entry) int { return cmp.Compare(a.shortest, b.shortest) })
	return result
}

func optionOf(q Question, r result.Result, c result.Configuration) (option, error) {
	x, err := replica.Of(q.Machine, r, c, q.Plan.Seed)
	if err != nil {
		return option{}, err
	}
	o := option{c: c, replica: x, width: widthOf(c, x)}
	// A server of a fleet gets a part of the traffic, whose clusters are thinned out.
	around := replica.Surroundings{Replicas: 1, Balancer: queuesim.Random, Dispersion: q.dispersion()}
	o.table = x.Table(around, limits(q.Plan.Limit.Seconds()), q.Plan.Seed)
	return o, nil
}

// dispersion returns that of the requests of one server.
func (q *Question) dispersion() float64 {
	mean := 0.0
	for _, m := range q.Moments {
		mean += float64(max(m.Ready, 1)) / float64(len(q.Moments))
	}
	return replica.Thinned(q.Plan.Traffic.Dispersion, max(mean, 1))
}

// limits returns the latencies at which shares are simulated.
func limits(around float64) (list []float64) {
	for i := leastPower * limitSteps; i <= mostPower*limitSteps; i++ {
		list = append(list, around*math.Pow(2, float64(i)/limitSteps))
	}
	return list
}

// widthOf returns the half width of the interval of a configuration's simulated latencies, as a logarithm:
// the widest measured interval, and the largest error of the simulation at a measured load.
func widthOf(c result.Configuration, x replica.Replica) float64 {
	measured, simulated := 0.0, 0.0
	for _, p := range c.Points {
		if e := p.Values[measure.LatencyP99]; e.Value > 0 && e.Lo > 0 {
			measured = max(measured, math.Log(e.Hi/e.Value), math.Log(e.Value/e.Lo))
		}
	}
	for _, k := range x.Checks {
		if k.Measured > 0 && k.Simulated > 0 {
			simulated = max(simulated, math.Abs(math.Log(k.Simulated/k.Measured)))
		}
	}
	return measured + simulated
}

// configuration makes the table's entry of an option.
func (o *option) configuration(q Question, at []float64, static *modelconfig.Config) (adaptive.Configuration, error) {
	config, err := q.Deployed(o.c.Name)
	if err != nil {
		return adaptive.Configuration{}, err
	}
	text, err := modelconfig.FormatJSON(config)
	if err != nil {
		return adaptive.Configuration{}, err
	}
	c := adaptive.Configuration{Name: o.c.Name, Setup: o.replica.Setup, Config: json.RawMessage(text)}
	if !modelconfig.SameButBatching(static, config) {
		c.Load = o.replica.Launch.Seconds()
	}
	longest := 0.0
	for _, rate := range at {
		if rate > o.table.Highest() {
			break
		}
		value, ok := replica.Quantile(q.Plan.Share, o.table.Limits, func(limit int) float64 { return o.table.Within(limit, rate) })
		if !ok {
			break
		}
		longest = max(longest, value) // more load never answers sooner
		factor := math.Exp(o.width)
		c.Latencies = append(c.Latencies, adaptive.Latency{Value: longest, Low: longest / factor, High: longest * factor})
	}
	return c, nil
}

// judge finds the best configuration that does not change, and says whether changing pays: whether the
// gain is above what the simulation is trusted for.
func judge(t *adaptive.Table, q Question, options []option) {
	static := bestStatic(t, q, options)
	t.Static = t.Configurations[static].Name
	logs, weight, changed := 0.0, 0.0, 0.0
	chosen := make([]int, len(q.Moments))
	for i, m := range q.Moments {
		rate := m.Each() / traffic.Step.Seconds()
		chosen[i] = t.Better(static, rate, rate, nil)
		if own := t.At(static, rate).Value; chosen[i] != static && !math.IsInf(own, 1) {
			logs += m.Requests * math.Log(own/t.At(chosen[i], rate).Value)
			changed += m.Requests
		}
		weight += m.Requests
	}
	t.Gain, t.GainOfAll = 1, 1
	if weight > 0 {
		t.Gain = capacity.Significant(math.Exp(logs / weight))
	}
	alone, a := quantileOfAll(q, options, func(int) int { return static })
	best, b := quantileOfAll(q, options, func(i int) int { return chosen[i] })
	if a && b && best > 0 {
		t.GainOfAll = capacity.Significant(alone / best)
	}
	t.Pays = t.Gain > 1+capacity.Agreement
	t.Summary = summary(t, changed/max(weight, 1))
}

func summary(t *adaptive.Table, changed float64) string {
	p := fmt.Sprintf("p%.4g", 100*t.Quantile)
	figures := fmt.Sprintf("For %.3g %% of the requests another configuration than %s has a certainly shorter %s. The %s of a step is %.3g × shorter in the geometric mean, "+
		"and that of all requests together %.3g ×.", 100*changed, t.Static, p, p, t.Gain, t.GainOfAll)
	if t.Pays {
		return "Changing the configuration with the load pays. " + figures
	}
	return fmt.Sprintf("Changing the configuration with the load does not pay. %s The simulation is trusted for more than %.3g %%.", figures, 100*capacity.Agreement)
}

// bestStatic returns the configuration whose quantile over all requests is the shortest, the chosen one
// where none is known.
func bestStatic(t *adaptive.Table, q Question, options []option) int {
	best := slices.IndexFunc(t.Configurations, func(c adaptive.Configuration) bool { return c.Name == q.Chosen })
	shortest, ok := quantileOfAll(q, options, func(int) int { return best })
	if !ok {
		shortest = math.Inf(1)
	}
	for i := range options {
		if x, ok := quantileOfAll(q, options, func(int) int { return i }); ok && x < shortest {
			best, shortest = i, x
		}
	}
	return best
}

// quantileOfAll returns the quantile over the requests of all moments, each with a configuration.
func quantileOfAll(q Question, options []option, chosen func(moment int) int) (float64, bool) {
	limits := options[0].table.Limits
	within := make([]float64, len(limits))
	total := 0.0
	for i, m := range q.Moments {
		o := &options[chosen(i)]
		rate := m.Each() / traffic.Step.Seconds()
		total += m.Requests
		if rate > o.table.Highest() {
			continue // beyond its capacity
		}
		for k := range limits {
			within[k] += m.Requests * o.table.Within(k, rate)
		}
	}
	if total == 0 {
		return 0, false
	}
	return replica.Quantile(q.Plan.Share, limits, func(k int) float64 { return within[k] / total })
}
