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
	ByCost  bool     `json:"by_cost"` // types and rows are ordered by cost; else by throughput, since a cost is unknown
	Types   []Type   `json:"types"`   // of machines, best first; those without an answer last
	Rows    []Row    `json:"rows"`    // campaigns, best first; those without an answer last
	Summary []string `json:"summary"` // in sentences
}

// Interval is a figure with its 95 % interval. In a Row it is about the machine that was measured.
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
	State         string    `json:"state"`              // answer, ended, infeasible or missing
	Hopeless      string    `json:"hopeless,omitempty"` // why it was ended early
	Configuration string    `json:"configuration,omitempty"`
	Setup         string    `json:"setup,omitempty"` // for people
	Load          string    `json:"load,omitempty"`
	Throughput    *Interval `json:"throughput,omitempty"`  // infer/s
	P99           *Interval `json:"latency_p99,omitempty"` // seconds
	Cost          *Interval `json:"cost,omitempty"`        // of a million inferences
	Disturbed     float64   `json:"disturbed"`             // share of the campaign's windows with a flag of the machine, 0..1
	Folder        string    `json:"folder,omitempty"`
}

// The states of a row.
const (
	StateAnswer     = "answer"
	StateEnded      = "ended" // early, since the type costs too much
	StateInfeasible = "infeasible"
	StateMissing    = "missing"
)

// states are in the order of the rows.
func states() []string { return []string{StateAnswer, StateEnded, StateInfeasible, StateMissing} }

// Analyzer replays the campaign in a folder, and ranks its configurations.
type Analyzer func(dir string) (analyze.Result, error)

// Rank ranks the campaigns of a list, whose folders lie below dir. describe names a configuration for
// people.
func Rank(dir string, l List, replay Analyzer, describe func(analyze.Config) string) (Ranking, error) {
	r := Ranking{Run: l.Run, Models: []ModelAnswer{}}
	var models []string
	campaigns := map[string][]campaign{}
	for _, c := range l.Campaigns {
		x, err := read(dir, c, replay, describe)
		if err != nil {
			return Ranking{}, err
		}
		if campaigns[c.Model] == nil {
			models = append(models, c.Model)
		}
		campaigns[c.Model] = append(campaigns[c.Model], x)
	}
	for _, name := range models {
		m := ModelAnswer{Model: name, Types: typesOf(campaigns[name], describe)}
		for _, c := range campaigns[name] {
			m.Rows = append(m.Rows, c.Row)
		}
		m.order()
		m.Summary = append(m.Summary, withoutDisturbed(m, campaigns[name], describe)...)
		r.Models = append(r.Models, m)
	}
	return r, nil
}

// read analyzes a campaign.
func read(dir string, c Campaign, replay Analyzer, describe func(analyze.Config) string) (campaign, error) {
	x := campaign{Row: Row{Machine: c.Machine, Repeat: c.Repeat, State: StateMissing, Folder: c.Folder}, hourly: c.Price}
	if c.Result == nil {
		return x, nil
	}
	x.Node = c.Result.Placement.Node
	if c.Result.Hopeless != "" {
		x.State, x.Hopeless = StateEnded, c.Result.Hopeless
		return x, nil
	}
	result, err := replay(filepath.Join(dir, c.Folder))
	if err != nil {
		return x, fmt.Errorf("cannot analyze the campaign of %s on %s: %w", c.Model, c.Machine, err)
	}
	x.result = &result
	best, ok := result.Winner()
	if !ok || best.Best == nil {
		x.State = StateInfeasible
		return x, nil
	}
	x.State, x.Configuration, x.Setup, x.Load = StateAnswer, best.Name, describe(best), best.Best.Load.String()
	x.Throughput, x.P99 = throughputOf(best), interval(best.Best.Values, measure.LatencyP99)
	x.Cost = costOf(c.Price, x.Throughput)
	x.Disturbed = disturbed(result)
	return x, nil
}

func throughputOf(c analyze.Config) *Interval { return interval(c.Best.Values, measure.Throughput) }

func interval(values map[measure.Metric]measure.Estimate, m measure.Metric) *Interval {
	e, ok := values[m]
	if !ok {
		return nil
	}
	return &Interval{e.Value, e.Lo, e.Hi}
}

// costOf returns the cost of a million inferences. The most throughput gives the least cost. It is nil
// without a price, or if the throughput may be zero.
func costOf(hourly float64, throughput *Interval) *Interval {
	if hourly <= 0 || throughput == nil || throughput.Lo <= 0 {
		return nil
	}
	return &Interval{costAt(hourly, throughput.Value), costAt(hourly, throughput.Hi), costAt(hourly, throughput.Lo)}
}

// costAt returns the cost of a million inferences at a throughput.
func costAt(hourly, throughput float64) float64 { return search.Goal{Price: hourly}.Cost(throughput) }

// disturbed returns the share of a campaign's windows that the machine disturbed.
func disturbed(r analyze.Result) float64 {
	flagged, all := 0, 0
	for _, c := range r.Configs {
		for _, p := range c.Points {
			all += p.Windows
			flagged += p.Disturbed
		}
	}
	if all == 0 {
		return 0
	}
	return float64(flagged) / float64(all)
}

// order orders the rows and makes the sentences.
func (m *ModelAnswer) order() {
	answers := slices.DeleteFunc(slices.Clone(m.Rows), func(r Row) bool { return r.State != StateAnswer })
	m.ByCost = len(answers) > 0 && !slices.ContainsFunc(answers, func(r Row) bool { return r.Cost == nil }) && arePriced(m.Types)
	rank := func(r Row) int { return slices.Index(states(), r.State) }
	slices.SortStableFunc(m.Rows, func(a, b Row) int {
		if c := cmp.Compare(rank(a), rank(b)); c != 0 || a.State != StateAnswer {
			return c
		}
		if m.ByCost {
			return cmp.Compare(a.Cost.Value, b.Cost.Value)
		}
		return cmp.Compare(valueOf(b.Throughput), valueOf(a.Throughput))
	})
	compareToBest(m.Types, m.ByCost)
	m.Summary = append(sentences(m.Model, m.Types, m.ByCost), m.remarks(len(answers))...)
}

// State returns the best state of the model's rows: StateInfeasible if all are that.
func (m ModelAnswer) State() string { return m.Rows[0].State }

func valueOf(i *Interval) float64 {
	if i == nil {
		return 0
	}
	return i.Value
}

// remarks says what is missing.
func (m ModelAnswer) remarks(answers int) []string {
	var list []string
	missing := 0
	for _, r := range m.Rows {
		if r.State == StateMissing {
			missing++
		}
	}
	if answers > 0 && missing > 0 {
		list = append(list, fmt.Sprintf("%d of %d campaigns have no result yet.", missing, len(m.Rows)))
	}
	if answers > 0 && !slices.ContainsFunc(m.Types, func(x Type) bool { return x.Machines > 1 }) {
		list = append(list, "One machine of each type was measured: nothing is known of others of the type (search.machines).")
	}
	return list
}

func (i Interval) text() string { return fmt.Sprintf("%.4g [%.4g, %.4g]", i.Value, i.Lo, i.Hi) }
