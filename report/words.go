package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// within is the constraints as the end of a phrase.
func within(goal search.Goal) string { return verdict.Words{Goal: goal}.Within() }

// missedText names the limits that configurations miss at the points that they are ranked by, the goal's own first: "p99 ≤ 50 ms, error rate ≤ 1 %".
// Where nothing satisfies the constraints, nothing keeps all of these.
func missedText(r analyze.Result) string {
	list := make([]string, len(r.Goal.Constraints)) // missed or not
	for i, c := range r.Goal.Constraints {
		list[i] = verdict.ConstraintText(c)
	}
	isMissed := map[string]bool{}
	for _, c := range r.Configs {
		if c.Best == nil {
			continue
		}
		for _, m := range c.Best.Misses {
			text := verdict.ConstraintText(m.Constraint)
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
		return verdict.Label(o.Terms[0].Metric)
	}
	parts := make([]string, len(o.Terms))
	for i, t := range o.Terms {
		parts[i] = fmt.Sprintf("%s × %g", verdict.Label(t.Metric), t.Weight)
	}
	return strings.Join(parts, ", ")
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

// shortName is a configuration's name without the model's, which all have in common: "config_3", "default".
func shortName(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return "default"
	}
	return strings.TrimPrefix(c.Name, r.Header.Model+"_")
}

// nameAndSetup prints "config_3 (2 instances × 1 thread, batch 16)".
func nameAndSetup(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return shortName(r, c)
	}
	return fmt.Sprintf("%s (%s)", shortName(r, c), c.Candidate.Describe())
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
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "ss"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
