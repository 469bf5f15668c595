package figures

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// Within prints the constraints as the end of a phrase: " within p99 ≤ 50 ms".
func Within(goal search.Goal) string { return verdict.Words{Goal: goal}.Within() }

// MissedText names the limits that configurations miss at the loads that rank them: "p99 ≤ 50 ms,
// error rate ≤ 1 %". The goal's limits come first. Where the nearest misses none by itself, it names all of the goal's:
// they are not kept together.
func MissedText(r analyze.Result) string {
	list := make([]string, len(r.Goal.Constraints)) // all limits, missed or kept
	for i, c := range r.Goal.Constraints {
		list[i] = verdict.ConstraintText(c)
	}
	if nearest := First(r).Best; nearest != nil && len(nearest.Misses) == 0 {
		return strings.Join(list, ", ")
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

// ObjectiveText names the objective: "throughput", or "throughput × 10, p99 × 5".
func ObjectiveText(o search.Objective) string {
	if len(o.Terms) == 1 {
		return verdict.Label(o.Terms[0].Metric)
	}
	parts := make([]string, len(o.Terms))
	for i, t := range o.Terms {
		parts[i] = fmt.Sprintf("%s × %g", verdict.Label(t.Metric), t.Weight)
	}
	return strings.Join(parts, ", ")
}

// unmeasured explains why there are no figures to rank.
func unmeasured(r analyze.Result) string {
	switch {
	case r.Trials == 0:
		return "Nothing was measured: no trial was made."
	case r.Failed == r.Trials:
		return "Nothing was measured: every trial failed."
	case r.At != nil: // only some of a campaign's configurations are reported
		return fmt.Sprintf("None of these configurations has figures at %s.", spec.At{Load: *r.At})
	}
	return "None of these configurations has figures."
}

// inBestLoads describes the loads of a mean by their number.
func inBestLoads(n int) string {
	switch n {
	case 1:
		return "at its best load"
	case 2:
		return "on average over its two best loads"
	}
	return "on average over its three best loads"
}

// ObjectiveValues prints a configuration's values of the objective's metrics at its best load.
func ObjectiveValues(goal search.Goal, c analyze.Config) string {
	var parts []string
	for _, t := range goal.Objective.Terms {
		if e, ok := c.Best.Values[t.Metric]; ok {
			parts = append(parts, t.Metric.Format(e.Value))
		}
	}
	return strings.Join(parts, ", ")
}

// ShortName returns a configuration's name without the model's, which all share: "config_3",
// "default".
func ShortName(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return "default"
	}
	return strings.TrimPrefix(c.Name, r.Header.Model+"_")
}

// NameAndSetup prints "config_3 (2 instances × 1 thread, batch 16)".
func NameAndSetup(r analyze.Result, c analyze.Config) string {
	if c.Candidate.IsDefault() {
		return ShortName(r, c)
	}
	return fmt.Sprintf("%s (%s)", ShortName(r, c), settingsText(r, c.Candidate))
}

// settingsText names a candidate's settings. Of several models it names each, also those in their default
// configuration.
func settingsText(r analyze.Result, c search.Candidate) string {
	if len(r.Served()) == 0 {
		return c.Describe()
	}
	var parts []string
	if server := c.Of(""); !server.IsDefault() {
		parts = append(parts, server.Describe())
	}
	for _, m := range r.Served() {
		if !m.Calls {
			parts = append(parts, m.Header.Model+" "+c.Of(m.Header.Model).Describe())
		}
	}
	return strings.Join(parts, "; ")
}

// MachineText names the machine from the facts in the journal.
func MachineText(facts json.RawMessage) string {
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
		return "unknown processor" // the facts are only for people, so an error here does no harm
	}
	return fmt.Sprintf("%s, %s, %.0f GB", m.CPU.Model, words.Count(m.CPU.Logical, "core"), m.Memory.Total/1e9)
}

// Effort describes the basis of the result: "12 configurations, 64 measurements (128 windows) in
// 3m2s".
func Effort(r analyze.Result) string {
	if r.Recorded != "" {
		return fmt.Sprintf("%s, %s, read from %s", words.Count(r.Tried, "configuration"), words.Count(r.Trials, "measurement"), r.Recorded)
	}
	text := fmt.Sprintf("%s, %s (%s)", words.Count(r.Tried, "configuration"), words.Count(r.Trials-r.Failed, "measurement"), words.Count(r.Windows, "window"))
	if r.ServiceTrials > 0 {
		text += " and " + words.Count(r.ServiceTrials, "service curve")
	}
	text += fmt.Sprintf(" in %s", r.Account.Elapsed.Round(time.Second))
	if n := r.Failed; n > 0 {
		text += fmt.Sprintf("; %d of %s failed", n, words.Count(r.Trials, "trial"))
	}
	if r.Ending.Interrupted {
		text += "; interrupted"
	}
	return text
}

// AccountText describes how the campaign's time was spent.
func AccountText(a analyze.Account) string {
	var parts []string
	for _, p := range AccountParts(a) {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", p.Name, 100*a.Share(p.Time)))
	}
	return strings.Join(parts, " · ")
}

// AccountPart is one line of the account.
type AccountPart struct {
	Name string
	Time time.Duration
}

func AccountParts(a analyze.Account) []AccountPart {
	return []AccountPart{
		{"load windows", a.Windows}, {"launches", a.Launches}, {"reconfiguration", a.Reconfigurations},
		{"warm-up", a.WarmUps}, {"decisions", a.Decisions},
	}
}

func Capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// First returns the best configuration, or the nearest to the constraints. It is empty if none was
// tried.
func First(r analyze.Result) analyze.Config {
	if len(r.Configs) == 0 {
		return analyze.Config{}
	}
	return r.Configs[0]
}

// SetupText describes a setup: "2 instances × 1 thread, batch 16".
func SetupText(s analyze.Setup) string {
	if s.Instances == 0 {
		return "settings unknown"
	}
	text := words.Count(s.Instances, "instance")
	switch {
	case s.IntraOpThreads == 0:
		text += " × all cores"
	case s.IntraOpThreads > 0:
		text += " × " + words.Count(s.IntraOpThreads, "thread")
	}
	switch {
	case s.MaxBatchSize < 0:
		return text
	case s.MaxBatchSize == 0:
		return text + ", no batching"
	}
	return fmt.Sprintf("%s, batch %d", text, s.MaxBatchSize)
}
