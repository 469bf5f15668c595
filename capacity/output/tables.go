package output

import (
	"fmt"
	"math"
	"strings"
	"time"

	"tuner/capacity"
	"tuner/internal/terminal"
	"tuner/internal/words"
)

// head is the answer, and how it scales.
func head(p capacity.Plan) []string {
	s := p.Best.Scaling
	lines := []string{p.Summary}
	if s.Min == s.Max {
		lines = append(lines, fmt.Sprintf("A fixed number: %s. A pod starts in %s.", p.Best.Replicas(), duration(s.Startup)))
	} else {
		lines = append(lines, fmt.Sprintf("%s: %d to %d replicas, %s requests/s per replica as a mean over %s, tolerance %.3g %%, scales down after %s. A pod starts in %s.",
			scalerName(s.Scaler), s.Min, s.Max, words.Digits(s.Target, 4), duration(s.Window), 100*s.Tolerance, duration(s.Down), duration(s.Startup)))
	}
	a := p.Asked
	return append(lines, fmt.Sprintf("Traffic: %s: %s requests/s on average, %s at the peak. Balancer: %s.", a.Traffic, words.Digits(a.Mean, 4), words.Digits(a.Peak, 4), a.Balancer))
}

func scalerName(s capacity.Scaler) string {
	if s == capacity.KEDA {
		return "KEDA"
	}
	return "HorizontalPodAutoscaler"
}

func duration(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).String()
	if strings.HasSuffix(text, "m0s") {
		return strings.TrimSuffix(text, "0s")
	}
	return text
}

// fleets compares the chosen fleet with others.
func fleets(p capacity.Plan) table {
	cost := "Cost/day"
	if p.Best.Cost == 0 {
		cost = "Hours/day"
	}
	t := table{Columns: []terminal.Column{
		{Title: "Fleet"}, {Title: "Config"}, {Title: "Replicas", Right: true}, {Title: cost, Right: true}, {Title: "Of chosen", Right: true},
		{Title: "Within", Right: true}, {Title: "Worst day", Right: true}, {Title: "p99 ms", Right: true},
	}}
	add := func(f capacity.Fleet) {
		value, chosen := f.Cost, p.Best.Cost
		if chosen == 0 {
			value, chosen = f.Hours, p.Best.Hours
		}
		replicas := fmt.Sprintf("%d–%d", f.Scaling.Min, f.Scaling.Max)
		if f.Scaling.Min == f.Scaling.Max {
			replicas = fmt.Sprint(f.Scaling.Min)
		}
		t.Rows = append(t.Rows, []string{
			f.About, f.Configuration, replicas, words.Digits(value, 4), fmt.Sprintf("%.2f ×", value/chosen),
			percent(f.Within), percent(f.WorstDay), fmt.Sprintf("%.3g", 1000*f.P99),
		})
	}
	add(p.Best)
	for _, f := range p.Alternatives {
		add(f)
	}
	for _, f := range []*capacity.Fleet{p.Usual, p.UsualDefault, &p.Clairvoyant} {
		if f != nil {
			add(*f)
		}
	}
	return t
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// candidates lists the configurations that were considered.
func candidates(p capacity.Plan) table {
	t := table{Columns: []terminal.Column{
		{Title: "Machine"}, {Title: "Config"}, {Title: "Setup"}, {Title: "Price/h", Right: true}, {Title: "Capacity/s", Right: true},
		{Title: "Within limit/s", Right: true}, {Title: "Least/day", Right: true}, {Title: "Tried", Right: true},
	}}
	for _, c := range p.Configurations {
		t.Rows = append(t.Rows, []string{
			c.Type, c.Configuration, c.Setup, number(c.Price), number(c.Capacity), number(c.Safe), number(c.LeastCost), fmt.Sprint(c.Tried),
		})
	}
	return t
}

// number is empty for an unknown number.
func number(x float64) string {
	if x == 0 {
		return ""
	}
	return words.Digits(x, 4)
}

// checks compares the simulation with what was measured.
func checks(p capacity.Plan) table {
	t := table{Columns: []terminal.Column{
		{Title: "Machine"}, {Title: "Config"}, {Title: "Load"}, {Title: "Measured p99 ms", Right: true}, {Title: "Simulated p99 ms", Right: true},
	}}
	for _, c := range p.Configurations {
		for _, k := range c.Checks {
			t.Rows = append(t.Rows, []string{c.Type, c.Configuration, k.Load.String(), number(1000 * k.Measured), number(1000 * k.Simulated)})
		}
	}
	return t
}

// explanation says how the plan was found, and what it assumes.
func explanation(p capacity.Plan) []string {
	a := p.Asked
	return []string{
		fmt.Sprintf("The traffic is simulated in steps of %s, in which the autoscaler looks once. Within a step, requests have the latencies of a steady state, "+
			"which an event simulation of one server predicts at its rate. Requests beyond the capacity wait, and are carried over.", duration(a.Step)),
		"Capacity is the highest rate of a replica. Within limit is the rate at which the asked share keeps the limit. Least is what a clairvoyant would cost.",
		fmt.Sprintf("A setting counts if %.4g %% of the requests keep %.4g ms, with a quarter of the allowed misses to spare for days that it has not seen. "+
			"Of those, the cheapest is chosen.", 100*a.Share, 1000*a.Limit),
		fmt.Sprintf("The requests of a second have %.3g × the variance of independent users.", a.Dispersion),
		"The metric is the rate of answered requests. It lags by one scrape of 15 s, and cannot exceed the capacity of the pods that are ready.",
		"A pod costs from the wish for it to its removal. Its last seconds, and nodes that the cluster has to start, are not simulated.",
	}
}

// verification says what was replayed, and what it means; nil without a replay.
func verification(p capacity.Plan) (lines []string) {
	v := p.Verification
	if v == nil {
		return nil
	}
	lines = append(lines, fmt.Sprintf("Replay on %d × %s: %s of the worst hour, from %s after the beginning of the traffic. A replica of the plan gets %s requests/s there, a server here got %s.",
		v.Engines, v.Server, duration(v.Length), duration(v.Begin), words.Digits(v.PlannedRate, 4), words.Digits(v.Rate, 4)))
	switch {
	case v.InTurn:
		lines = append(lines, fmt.Sprintf("This machine has not the cores of all servers. So each got its requests in its turn, on all %s cores.", words.Digits(v.Cores, 4)))
	case v.Sharing > 0:
		lines = append(lines, fmt.Sprintf("The servers here share %s cores. All together take %.2f × as long as sharing the cores costs.", words.Digits(v.Cores, 4), v.Sharing))
	}
	if math.Abs(v.Capacity-1) > capacity.Agreement/2 {
		lines = append(lines, fmt.Sprintf("They answer %.2f × as many requests as replicas of the plan. So the rates are multiplied by that, and the limit is divided by it: %.4g ms.",
			v.Capacity, 1000*v.Limit))
	}
	if v.Failed > 0 {
		lines = append(lines, fmt.Sprintf("%d of the %d requests had no answer.", v.Failed, v.Requests))
	}
	if share := float64(v.Late) / float64(max(v.Requests, 1)); share > mostLate {
		lines = append(lines, fmt.Sprintf("%s of the requests were sent more than 1 ms late, since the clients share the machine. The simulation has them as late as that.", percent(share)))
	}
	if v.SenderCounts() {
		lines = append(lines, fmt.Sprintf("Sending the requests took %.2g cores beyond what clients of the campaign take. A replica shares its machine with no sender: without it the simulated p99 is %.4g ms.",
			v.Sender, 1000*v.WithoutSender))
	}
	if shorter, longer := 1-v.P99Range[0]/v.Measured.P99, v.P99Range[1]/v.Measured.P99-1; max(shorter, longer) > capacity.Agreement {
		lines = append(lines, fmt.Sprintf("By chance alone the measured p99 may be %.0f %% shorter or %.0f %% longer: more than the %.0f %% of the comparison. A longer replay knows it better.",
			100*shorter, 100*longer, 100*capacity.Agreement))
	}
	ratio := v.Measured.P99 / v.Simulated.P99
	switch v.Outcome {
	case capacity.Confirmed:
		lines = append(lines, fmt.Sprintf("The replay confirms the plan: the measured p99 is %.2f × the simulated one.", ratio))
	case capacity.Careful:
		lines = append(lines, fmt.Sprintf("The plan is careful: the measured p99 is %.2f × the simulated one.", ratio))
	case capacity.Unclear:
		lines = append(lines, fmt.Sprintf("The replay says nothing about the plan, since its sender takes too much of this machine: the measured p99 is %.2f × the simulated one.", ratio))
	default:
		lines = append(lines, fmt.Sprintf("The replay refutes the plan: the measured p99 is %.2f × the simulated one.", ratio))
	}
	return lines
}

// mostLate is the share of late requests above which a replay says so.
const mostLate = 0.01

// replayed compares a replay with its simulation.
func replayed(v *capacity.Verification) table {
	t := table{Columns: []terminal.Column{
		{Title: "Replay"}, {Title: "Requests", Right: true}, {Title: "p50 ms", Right: true}, {Title: "p99 ms", Right: true}, {Title: "Within", Right: true},
	}}
	add := func(name string, l capacity.Latencies, p99 string) {
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(v.Requests), words.Digits(1000*l.P50, 4), p99, percent(l.Within)})
	}
	add("simulated", v.Simulated, words.Digits(1000*v.Simulated.P99, 4))
	add("measured", v.Measured, fmt.Sprintf("%s [%s, %s]", words.Digits(1000*v.Measured.P99, 4), words.Digits(1000*v.P99Range[0], 4), words.Digits(1000*v.P99Range[1], 4)))
	return t
}
