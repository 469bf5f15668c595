//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	decision "tuner/search/verdict"
	"tuner/spec"
)

// pageLimits is the part of the page's data about its sliders.
type pageLimits struct {
	Limits []struct {
		Metric measure.Metric
		Side   string
	}
	Rows []struct {
		Limit  *float64
		Places []struct {
			Limit *float64
			Own   bool
		}
	}
}

// expected is the expected content of report.html at a position of its sliders.
type expected struct {
	Row   int  `json:"row"`
	Place int  `json:"place"`
	Own   bool `json:"own"`
	// Cards are those of the verdict, by kind: recommended, edge or nearest. One without a choice
	// is empty.
	Cards map[string]map[string]string `json:"cards"`
}

// constraintsAt returns a goal's constraints with other limits on these metrics.
func (l pageLimits) constraintsAt(goal search.Goal, limits ...*float64) []search.Constraint {
	list := slices.DeleteFunc(slices.Clone(goal.Constraints), func(c search.Constraint) bool {
		return slices.ContainsFunc(l.Limits, func(moved struct {
			Metric measure.Metric
			Side   string
		}) bool {
			return moved.Metric == c.Metric
		})
	})
	for i, moved := range l.Limits {
		switch limit := limits[i]; {
		case limit == nil:
		case moved.Side == "min":
			list = append(list, search.Constraint{Metric: moved.Metric, Min: limit})
		default:
			list = append(list, search.Constraint{Metric: moved.Metric, Max: limit})
		}
	}
	return list
}

// cardOf returns the lines of a choice's card.
func cardOf(goal search.Goal, c *decision.Choice, isDefault bool) map[string]string {
	card := map[string]string{}
	if c == nil {
		return card
	}
	card["load"] = c.Load.String()
	card["limits kept"] = c.HoldsText()
	if len(c.Limits) == 0 {
		card["limits kept"] = "no limits"
	}
	for _, m := range []measure.Metric{measure.Throughput, measure.Memory} {
		if e, isKnown := c.Values[m]; isKnown {
			card[string(m)] = m.Format(e.Value)
		}
	}
	switch {
	case c.Gain == nil:
	case isDefault:
		card["gain"] = "1 ×"
	default:
		ratio := decision.Words{Goal: goal}.Ratio(*c.Gain)
		card["gain"] = fmt.Sprintf("%s × [%s, %s]", decision.Factor(ratio.Value), decision.Factor(ratio.Lo), decision.Factor(ratio.Hi))
	}
	return card
}

func newExpected(goal search.Goal, v decision.Verdict, row, place int, isOwn bool) expected {
	e := expected{Row: row, Place: place, Own: isOwn, Cards: map[string]map[string]string{}}
	enter := func(as string, c *decision.Choice) {
		e.Cards[as] = cardOf(goal, c, c != nil && v.Default != nil && c.Candidate.IsDefault() && c.Load == v.Default.Load)
	}
	if v.Nearest != nil {
		enter("nearest", v.Nearest)
		return e
	}
	enter("recommended", v.Recommended)
	enter("edge", v.Edge)
	return e
}

// expectedOf computes the decision at every position of a page's sliders.
func expectedOf(t *testing.T, r analyze.Result, dir string) []expected {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(page)
	var limits pageLimits
	if err := json.Unmarshal(found[1], &limits); err != nil {
		t.Fatal(err)
	}
	list, owns := []expected{}, 0
	for i, row := range limits.Rows {
		for k, p := range row.Places {
			if p.Own {
				owns++
				list = append(list, newExpected(r.Goal, r.Verdict, i, k, true))
			} else {
				list = append(list, newExpected(r.Goal, r.Decide(limits.constraintsAt(r.Goal, p.Limit, row.Limit)), i, k, false))
			}
		}
	}
	if len(limits.Limits) != 2 || owns != 1 || len(list) < 10 {
		t.Errorf("%d limits, %d places, %d of them the report's own", len(limits.Limits), len(list), owns)
	}
	return list
}

// mixed returns a campaign to which every rule of the verdict applies. It has near ties, equal
// figures, finalists whose launches differ or fail, and a failure. It has a configuration that
// refuses requests, and one of the load curves that is better than all.
func mixed(t *testing.T, profile string) analyze.Campaign {
	best, second, refusing := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 32), analyzetest.Candidate(4, 1, 8)
	b := analyzetest.New(t, profile).Measure(search.Candidate{}, 2, 4, 8, 16)
	for _, c := range []search.Candidate{
		analyzetest.Candidate(1, 1, 4), analyzetest.Candidate(1, 2, 8), analyzetest.Candidate(2, 1, 4), analyzetest.Candidate(2, 1, 8), best, second,
		analyzetest.Candidate(2, 1, 64), analyzetest.Candidate(2, 2, 16), refusing, analyzetest.Candidate(4, 1, 16), analyzetest.Candidate(1, 2, 16), analyzetest.Candidate(1, 2, 32),
	} {
		b.Measure(c, 4, 8, 16, 32)
	}
	for _, c := range []search.Candidate{ // equal figures: threads, differences from the default, and names decide
		analyzetest.Candidate(3, 2, 8), analyzetest.Candidate(3, 1, 8), analyzetest.Candidate(3, 1, 4), analyzetest.Candidate(3, 1, 16),
	} {
		b.Given(c, 8, 500, 16e6)
	}
	b.Fail(analyzetest.Candidate(8, 2, 64), 8, measure.StageStart, "the engine was not ready after 1m0s")
	// By the windows of the search it is as good as the best.
	b.FailFinal(analyzetest.Candidate(2, 1, 64), 16)
	for range 2 { // with three, the spread between launches would come from the figures' own intervals
		b.Confirm(best, 16).Confirm(search.Candidate{}, 8).Confirm(second, 16)
	}
	// better than at 16, where its finals may miss a limit that it keeps here
	b.Given(second, 18, 750, 24*time.Millisecond)
	threads := search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"}
	c := b.Curve(search.NewCandidate(threads), 8, 16).End("the space is exhausted", false).Campaign()
	for _, e := range c.Events {
		windows, pace := e.Measurement.Windows, 100 // per cent of the formula's time
		switch {
		case e.Trial.Candidate.Key() == refusing.Key(): // of both windows' requests 1.4 % to 2.8 %, by load
			windows[0].Errors = windows[0].Requests * (24 + e.Trial.Load.Concurrency) / 1000
		// launches differ by more than their windows show
		case e.Trial.Phase == search.PhaseFinal && e.Measurement.Launch%2 == 0:
			pace = 104
		case e.Trial.Phase == search.PhaseLoadCurve: // better than all others
			pace = 85
		}
		for i := range windows {
			windows[i].Duration = windows[i].Duration * time.Duration(pace) / 100
		}
	}
	return c
}

// ratesOf returns a campaign with request rates instead of concurrencies.
func ratesOf(c analyze.Campaign) analyze.Campaign {
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		load := &c.Events[i].Trial.Load
		load.Concurrency, load.RequestRate = 0, 12.5*float64(load.Concurrency)
	}
	return c
}

// look is a campaign with a view of it.
type look struct {
	campaign analyze.Campaign
	options  analyze.Options
}

// views returns the campaigns by name.
func views(t *testing.T) map[string]look {
	profile := func(goal string) string {
		head, _, _ := strings.Cut(analyzetest.Profile, "objective:")
		return head + goal
	}
	const rates = "load: {request_rate: {min: 25, max: 800, scale: pow2}, inputs: {shape: {input_ids: [32]}}}\n"
	single, top := mixed(t, analyzetest.Profile), analyze.Options{Top: 3}
	weighted := mixed(t, profile("weights: {throughput: 2, latency_p99: 1}\nconstraints: {latency_p95: {max: 60ms}, memory: {max: 400MB}}\n"))
	latency := mixed(t, profile("objective: latency_p99\nconstraints: {throughput: {min: 200}}\n"))
	open := ratesOf(mixed(t, strings.Replace(analyzetest.Profile, "load: {concurrency: {min: 1, max: 64, scale: pow2}, inputs: {shape: {input_ids: [32]}}}\n", rates, 1)))
	servers := single
	servers.Header.Finals = &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	return map[string]look{
		"one metric":            {single, top},
		"weights":               {weighted, top},
		"latency":               {latency, top},
		"request rates":         {open, top},
		"at one load":           {single, analyze.Options{Top: 3, At: spec.At{Load: measure.Load{Concurrency: 8}}}},
		"finals elsewhere":      {servers, top},
		"a model of the server": {recordedCampaign(t, "guided"), top},
	}
}

func recordedCampaign(t *testing.T, name string) analyze.Campaign {
	t.Helper()
	c, err := analyze.Replay(filepath.Join("..", "..", "testdata", "journals", name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReportRanking moves the sliders of report.html to every position. It compares the displayed
// answer with the decision of package analyze under the same limits.
func TestReportRanking(t *testing.T) {
	for name, look := range views(t) {
		r, err := analyze.Analyze(look.campaign, look.options)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := pageOf(t, r)
			text, err := json.Marshal(expectedOf(t, r, dir))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "expected.json"), text)
			browse(t, dir, "ranked", strings.ReplaceAll(name, " ", "-"))
		})
	}
}
