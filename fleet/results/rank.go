package results

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
)

// Ranking ranks the types of machines for each model.
type Ranking struct {
	Run    string        `json:"run"`
	Models []ModelAnswer `json:"models"` // in the fleet's order
}

// ModelAnswer is the answer for one model.
type ModelAnswer struct {
	Model   string   `json:"model"`
	ByCost  bool     `json:"by_cost"` // rows are ordered by cost; else by throughput, since a price is unknown
	Rows    []Row    `json:"rows"`    // best first; those without an answer last
	Summary []string `json:"summary"` // in sentences
}

// Interval is a figure with its 95 % interval. It is about the machine that was measured.
type Interval struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// Row is the answer of one campaign.
type Row struct {
	Machine       string    `json:"machine"`
	Repeat        int       `json:"repeat"`
	Node          string    `json:"node,omitempty"`
	State         string    `json:"state"` // answer, infeasible or missing
	Configuration string    `json:"configuration,omitempty"`
	Setup         string    `json:"setup,omitempty"` // for people
	Load          string    `json:"load,omitempty"`
	Throughput    *Interval `json:"throughput,omitempty"`  // infer/s
	P99           *Interval `json:"latency_p99,omitempty"` // seconds
	Cost          *Interval `json:"cost,omitempty"`        // of a million inferences
	Disturbed     float64   `json:"disturbed"`             // share of the windows of that answer's load with a flag of the machine, 0..1
	Folder        string    `json:"folder,omitempty"`
}

// The states of a row.
const (
	StateAnswer     = "answer"
	StateInfeasible = "infeasible"
	StateMissing    = "missing"
)

// Analyzer replays the campaign in a folder, and ranks its configurations.
type Analyzer func(dir string) (analyze.Result, error)

// Rank ranks the campaigns of a list, whose folders lie below dir. describe names a configuration for
// people.
func Rank(dir string, l List, replay Analyzer, describe func(analyze.Config) string) (Ranking, error) {
	r := Ranking{Run: l.Run, Models: []ModelAnswer{}}
	for _, c := range l.Campaigns {
		row, err := rowOf(dir, c, replay, describe)
		if err != nil {
			return Ranking{}, err
		}
		i := slices.IndexFunc(r.Models, func(m ModelAnswer) bool { return m.Model == c.Model })
		if i < 0 {
			i = len(r.Models)
			r.Models = append(r.Models, ModelAnswer{Model: c.Model})
		}
		r.Models[i].Rows = append(r.Models[i].Rows, row)
	}
	for i := range r.Models {
		r.Models[i].order()
	}
	return r, nil
}

func rowOf(dir string, c Campaign, replay Analyzer, describe func(analyze.Config) string) (Row, error) {
	row := Row{Machine: c.Machine, Repeat: c.Repeat, State: StateMissing, Folder: c.Folder}
	if c.Result == nil {
		return row, nil
	}
	row.Node = c.Result.Placement.Node
	result, err := replay(filepath.Join(dir, c.Folder))
	if err != nil {
		return Row{}, fmt.Errorf("cannot analyze the campaign of %s on %s: %w", c.Model, c.Machine, err)
	}
	best, ok := result.Winner()
	if !ok || best.Best == nil {
		row.State = StateInfeasible
		return row, nil
	}
	row.State, row.Configuration, row.Setup, row.Load = StateAnswer, best.Name, describe(best), best.Best.Load.String()
	row.Throughput, row.P99 = interval(best.Best.Values, measure.Throughput), interval(best.Best.Values, measure.LatencyP99)
	row.Cost = costOf(search.Goal{Price: c.Price}, row.Throughput)
	row.Disturbed = disturbed(result)
	return row, nil
}

func interval(values map[measure.Metric]measure.Estimate, m measure.Metric) *Interval {
	e, ok := values[m]
	if !ok {
		return nil
	}
	return &Interval{e.Value, e.Lo, e.Hi}
}

// costOf returns the cost of a million inferences. The most throughput gives the least cost. It is nil
// without a price, or if the throughput may be zero.
func costOf(goal search.Goal, throughput *Interval) *Interval {
	if goal.Price <= 0 || throughput == nil || throughput.Lo <= 0 {
		return nil
	}
	return &Interval{goal.Cost(throughput.Value), goal.Cost(throughput.Hi), goal.Cost(throughput.Lo)}
}

// disturbed returns the share of a campaign's trials that the machine disturbed.
func disturbed(r analyze.Result) float64 {
	flagged, all := 0, 0
	for _, c := range r.Configs {
		for _, p := range c.Points {
			all++
			if slices.ContainsFunc(p.Flags, isOfMachine) {
				flagged++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(flagged) / float64(all)
}

func isOfMachine(f measure.Flag) bool {
	return slices.Contains([]measure.Flag{measure.FlagSteal, measure.FlagForeign, measure.FlagThrottled, measure.FlagFrequency}, f)
}

// order orders the rows and makes the sentences.
func (m *ModelAnswer) order() {
	answers := slices.DeleteFunc(slices.Clone(m.Rows), func(r Row) bool { return r.State != StateAnswer })
	m.ByCost = len(answers) > 0 && !slices.ContainsFunc(answers, func(r Row) bool { return r.Cost == nil })
	rank := func(r Row) int { return slices.Index([]string{StateAnswer, StateInfeasible, StateMissing}, r.State) }
	slices.SortStableFunc(m.Rows, func(a, b Row) int {
		if c := cmp.Compare(rank(a), rank(b)); c != 0 || a.State != StateAnswer {
			return c
		}
		if m.ByCost {
			return cmp.Compare(a.Cost.Value, b.Cost.Value)
		}
		return cmp.Compare(valueOf(b.Throughput), valueOf(a.Throughput))
	})
	m.Summary = m.sentences(len(answers))
}

// State returns the best state of the model's rows: StateInfeasible if all are that.
func (m ModelAnswer) State() string { return m.Rows[0].State }

func valueOf(i *Interval) float64 {
	if i == nil {
		return 0
	}
	return i.Value
}

// sentences says what the rows mean. With one machine of each type, an interval is about these
// machines, and says nothing of others of the type.
func (m ModelAnswer) sentences(answers int) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch {
	case answers == 0:
		say("No machine has an answer for %s.", m.Model)
	case m.ByCost:
		best := m.Rows[0]
		say("Cheapest: %s, %s of a million inferences.", best.Machine, best.Cost.text())
		seen := map[string]bool{best.Machine: true}
		for _, r := range m.Rows[1:answers] {
			if seen[r.Machine] {
				continue
			}
			seen[r.Machine] = true
			if r.Cost.Lo <= best.Cost.Hi {
				say("%s cannot be told from it: its interval is %s.", r.Machine, r.Cost.text())
				continue
			}
			say("%s costs %.3g × as much (%.3g to %.3g).", r.Machine, r.Cost.Value/best.Cost.Value, r.Cost.Lo/best.Cost.Hi, r.Cost.Hi/best.Cost.Lo)
		}
	default:
		say("Most throughput: %s. The cost needs a price of every machine (machines.NAME.price).", m.Rows[0].Machine)
	}
	for _, r := range m.Rows {
		if r.State == StateInfeasible {
			say("%s cannot keep the constraints.", r.Machine)
		}
	}
	if n := len(m.Rows) - answers; answers > 0 && slices.ContainsFunc(m.Rows, func(r Row) bool { return r.State == StateMissing }) {
		say("%d of %d campaigns have no answer yet.", n, len(m.Rows))
	}
	if answers > 0 && !slices.ContainsFunc(m.Rows, func(r Row) bool { return r.Repeat > 1 }) {
		say("One machine of each type was measured: nothing is known of others of the type (search.machines).")
	}
	return list
}

func (i Interval) text() string { return fmt.Sprintf("%.4g [%.4g, %.4g]", i.Value, i.Lo, i.Hi) }
