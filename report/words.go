package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// metricLabel is a metric's short name for people.
func metricLabel(m measure.Metric) string {
	switch m {
	case measure.LatencyAvg:
		return "mean latency"
	case measure.QueueTime:
		return "queue time"
	case measure.CPU:
		return "CPU use"
	case measure.GPUMemory:
		return "GPU memory"
	case measure.GPUUtilization:
		return "GPU utilization"
	case measure.GPUPower:
		return "GPU power"
	case measure.Energy:
		return "energy per inference"
	}
	if _, ok := m.Quantile(); ok {
		return strings.TrimPrefix(string(m), "latency_")
	}
	return strings.ReplaceAll(string(m), "_", " ")
}

// constraintText prints a constraint: "p99 ≤ 50 ms". One without bounds is what the objective asks for (search.Goal.Unscored).
func constraintText(c search.Constraint) string {
	if c.Min == nil && c.Max == nil {
		return metricLabel(c.Metric) + " > 0"
	}
	var parts []string
	if c.Min != nil {
		parts = append(parts, fmt.Sprintf("%s ≥ %s", metricLabel(c.Metric), limitText(c.Metric, *c.Min)))
	}
	if c.Max != nil {
		parts = append(parts, fmt.Sprintf("%s ≤ %s", metricLabel(c.Metric), limitText(c.Metric, *c.Max)))
	}
	return strings.Join(parts, " and ")
}

// limitText prints a bound as the user would write it, without digits that say nothing: "50 ms", "7.5 ms", "2147 MB".
func limitText(m measure.Metric, value float64) string {
	info, _ := m.Info()
	switch info.Unit {
	case measure.Seconds:
		if value < 1e-3 {
			return fmt.Sprintf("%.4g µs", value*1e6)
		}
		return fmt.Sprintf("%.6g ms", value*1e3)
	case measure.InferPerSecond:
		return fmt.Sprintf("%.6g infer/s", value)
	case measure.Share:
		return fmt.Sprintf("%.6g %%", value*100)
	case measure.Watts:
		return fmt.Sprintf("%.6g W", value)
	case measure.PerMillion:
		return fmt.Sprintf("%.6g per million", value)
	}
	return m.Format(value)
}

// constraintsText prints all constraints: "p99 ≤ 50 ms, memory ≤ 2147 MB"; "" when there are none.
func constraintsText(goal search.Goal) string {
	parts := make([]string, len(goal.Constraints))
	for i, c := range goal.Constraints {
		parts[i] = constraintText(c)
	}
	return strings.Join(parts, ", ")
}

// within is the constraints as the end of a phrase: " within p99 ≤ 50 ms", or " with throughput ≥ 100 infer/s".
func within(goal search.Goal) string {
	word := " within "
	for _, c := range goal.Constraints {
		if c.Min != nil {
			word = " with "
		}
	}
	if len(goal.Constraints) == 0 {
		return ""
	}
	return word + constraintsText(goal)
}

// missedText names the limits that configurations miss at the points that they are ranked by, the goal's own first: "p99 ≤ 50 ms, error rate ≤ 1 %".
// Where nothing satisfies the constraints, nothing keeps all of these.
func missedText(r analyze.Result) string {
	list := make([]string, len(r.Goal.Constraints)) // missed or not
	for i, c := range r.Goal.Constraints {
		list[i] = constraintText(c)
	}
	isMissed := map[string]bool{}
	for _, c := range r.Configs {
		if c.Best == nil {
			continue
		}
		for _, m := range c.Best.Misses {
			text := constraintText(m.Constraint)
			isMissed[text] = true
			if !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return strings.Join(slices.DeleteFunc(list, func(text string) bool { return !isMissed[text] }), ", ")
}

// objectiveText names the objective: "throughput", or "throughput × 10, p99 × 5".
func objectiveText(o search.Objective) string {
	if len(o.Terms) == 1 {
		return metricLabel(o.Terms[0].Metric)
	}
	parts := make([]string, len(o.Terms))
	for i, t := range o.Terms {
		parts[i] = fmt.Sprintf("%s × %g", metricLabel(t.Metric), t.Weight)
	}
	return strings.Join(parts, ", ")
}

// headline is the report's first sentence: what was found, and how sure that is.
func headline(r analyze.Result) string {
	if nearest, ok := r.Nearest(); ok {
		text := fmt.Sprintf("Nothing satisfies %s. The nearest is %s at %s: %s. %s",
			missedText(r), nameAndSetup(nearest), nearest.Best.Load, missesText(nearest.Best.Misses), r.Tradeoffs())
		return strings.TrimSpace(text)
	}
	best, ok := r.Winner()
	switch {
	case !ok:
		return unmeasured(r)
	case best.Candidate.IsDefault():
		return fmt.Sprintf("The default configuration is the best that was found%s: %s at %s.",
			within(r.Goal), figures(r.Goal, best), best.Best.Load)
	case best.Gain == nil:
		return fmt.Sprintf("The best%s is %s: %s at %s. %s", within(r.Goal), nameAndSetup(best), figures(r.Goal, best),
			best.Best.Load, defaultMiss(r, *best.Best))
	}
	base := r.Default()
	lo, hi := factor(r.Goal, best.Gain.Lo), factor(r.Goal, best.Gain.Hi)
	compared := fmt.Sprintf("%s at %s against %s at %s", figures(r.Goal, best), best.Best.Load, figures(r.Goal, base), base.Best.Load)
	if r.Rank == spec.RankTop3Mean {
		mean := func(c analyze.Config) string { return measure.Throughput.Format(math.Exp(c.Score.Value)) }
		compared = fmt.Sprintf("%s against %s, each %s", mean(best), mean(base), inBestLoads(best.MeanOf))
	}
	interval := ""
	if lo != hi {
		interval = fmt.Sprintf(" [%.2f, %.2f]", min(lo, hi), max(lo, hi))
	}
	text := fmt.Sprintf("%s%s%s: %s.", gainText(r.Goal, best.Gain.Value), interval, within(r.Goal), compared)
	if best.Gain.Lo <= 1 {
		text += " The interval holds 1: it is not shown to be better than the default."
	}
	return text
}

// unmeasured says why there are no figures to rank.
func unmeasured(r analyze.Result) string {
	switch {
	case r.Trials == 0:
		return "Nothing was measured: no trial was made."
	case r.Failed == r.Trials:
		return "Nothing was measured: every trial failed."
	case r.At != nil: // of a campaign of which only some configurations are reported
		return fmt.Sprintf("None of these configurations has figures at %s.", spec.At{Load: *r.At})
	}
	return "None of these configurations has figures."
}

// inBestLoads says of how many loads a mean is.
func inBestLoads(n int) string {
	switch n {
	case 1:
		return "at its best load"
	case 2:
		return "in the mean of its two best loads"
	}
	return "in the mean of its three best loads"
}

// defaultMiss says why there is no gain over the default.
func defaultMiss(r analyze.Result, best analyze.Point) string {
	base := r.Default()
	switch {
	case base.Best == nil && len(base.Points) > 0:
		return "The default was not measured at this load."
	case base.Best == nil:
		return "The default was not measured."
	case !r.AreComparable(*base.Best, best):
		return "The default was measured on another server."
	case base.Satisfies():
		return "The default was measured at too few loads for a mean."
	}
	return fmt.Sprintf("The default does not satisfy the constraints: nearest at %s, %s.", base.Best.Load, missesText(base.Best.Misses))
}

// gainText says what a gain is a factor of: "1.84 × the default's throughput", "0.62 × the default's p99".
func gainText(goal search.Goal, gain float64) string {
	terms := goal.Objective.Terms
	if len(terms) != 1 {
		return fmt.Sprintf("%.2f × better than the default in %s", gain, objectiveText(goal.Objective))
	}
	return fmt.Sprintf("%.2f × the default's %s", factor(goal, gain), metricLabel(terms[0].Metric))
}

// factor turns a gain into the ratio of the objective's own values: below 1 for a single metric of which less is better.
func factor(goal search.Goal, gain float64) float64 {
	terms := goal.Objective.Terms
	if len(terms) != 1 {
		return gain
	}
	if info, _ := terms[0].Metric.Info(); info.HigherBetter {
		return gain
	}
	return 1 / gain
}

// figures prints a configuration's values of the objective's metrics at its best load.
func figures(goal search.Goal, c analyze.Config) string {
	var parts []string
	for _, t := range goal.Objective.Terms {
		if e, ok := c.Best.Values[t.Metric]; ok {
			parts = append(parts, t.Metric.Format(e.Value))
		}
	}
	return strings.Join(parts, ", ")
}

// nameAndSetup prints "minilm_config_3 (2 instances × 1 thread, batch 16)".
func nameAndSetup(c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, c.Candidate.Describe())
}

// missesText says by how much each constraint is missed.
func missesText(misses []search.Miss) string {
	parts := make([]string, len(misses))
	for i, m := range misses {
		parts[i] = m.String()
	}
	return strings.Join(parts, "; ")
}

// confirmation says whether the figures of a configuration that was measured stand on more than the search.
func confirmation(r analyze.Result, c analyze.Config) string {
	if r.Recorded != "" {
		return "Another program's figures, without intervals: how sure they are is not known."
	}
	switch p := *c.Best; {
	case p.Confirmed && r.Header.ReloadsFinals():
		return fmt.Sprintf("Confirmed with the model loaded anew %s; the remote server itself was not restarted.", count(p.Launches, "time"))
	case p.Confirmed:
		return fmt.Sprintf("Confirmed on %s.", count(p.Launches, "fresh engine launch"))
	case c.FailedFinals:
		return "Not confirmed, since its finals failed: the figures are the search's own, and it may not serve."
	}
	return "Not confirmed on fresh engine launches: the figures are the search's own, and may flatter."
}

// machineText names the machine from the facts in the journal, as far as they tell.
func machineText(facts json.RawMessage) string {
	var m struct {
		CPU struct {
			Model   string `json:"model"`
			Logical int    `json:"logical"`
		} `json:"cpu"`
		Memory struct {
			Total float64 `json:"total"`
		} `json:"memory"`
	}
	if err := json.Unmarshal(facts, &m); err != nil || m.CPU.Model == "" {
		return "unknown processor" // the facts are for people only: nothing depends on them
	}
	return fmt.Sprintf("%s, %s, %.0f GB", m.CPU.Model, count(m.CPU.Logical, "core"), m.Memory.Total/1e9)
}

// effort says what the result rests on: "12 configurations, 64 measurements (128 windows) in 3m2s".
func effort(r analyze.Result) string {
	if r.Recorded != "" {
		return fmt.Sprintf("%s, %s, read from %s", count(r.Tried, "configuration"), count(r.Trials, "measurement"), r.Recorded)
	}
	text := fmt.Sprintf("%s, %s (%s)", count(r.Tried, "configuration"), count(r.Trials-r.Failed, "measurement"), count(r.Windows, "window"))
	if r.ServiceTrials > 0 {
		text += " and " + count(r.ServiceTrials, "service curve")
	}
	text += fmt.Sprintf(" in %s", r.Account.Elapsed.Round(time.Second))
	if n := r.Failed; n > 0 {
		text += fmt.Sprintf("; %d of %s failed", n, count(r.Trials, "trial"))
	}
	if r.Ending.Interrupted {
		text += "; interrupted"
	}
	return text
}

// accountText says where the time went.
func accountText(a analyze.Account) string {
	var parts []string
	for _, p := range accountParts(a) {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", p.name, 100*a.Share(p.time)))
	}
	return strings.Join(parts, " · ")
}

// accountPart is one line of the account.
type accountPart struct {
	name string
	time time.Duration
}

func accountParts(a analyze.Account) []accountPart {
	return []accountPart{
		{"load windows", a.Windows}, {"launches", a.Launches}, {"reconfiguration", a.Reconfigurations},
		{"warm-up", a.WarmUps}, {"decisions", a.Decisions},
	}
}

// count prints a number with its noun in the right form.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
