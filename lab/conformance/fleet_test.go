//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"tuner/fleet/output"
	"tuner/fleet/results"
)

// TestFleetPage opens the page of a fleet in a real browser, from disk. testdata/fleet.mjs has the checks. TUNER_PICTURES names a
// folder for screenshots.
func TestFleetPage(t *testing.T) {
	t.Run("ordinary", func(t *testing.T) {
		t.Parallel()
		inBrowser(t, "fleet.mjs", fleetPage(t, fleetRanking("minilm")), "ordinary")
	})
	t.Run("without prices", func(t *testing.T) {
		t.Parallel()
		r := fleetRanking("minilm")
		r.Models[0].ByCost = false
		inBrowser(t, "fleet.mjs", fleetPage(t, r), "ordinary")
	})
	t.Run("hostile names", func(t *testing.T) {
		t.Parallel()
		inBrowser(t, "fleet.mjs", fleetPage(t, fleetRanking(`</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'"<!--`)), "hostile")
	})
}

// fleetRanking has three types with two machines each, of which one was disturbed, and a type without an answer.
func fleetRanking(name string) results.Ranking {
	around := func(v, half float64) *results.Interval {
		return &results.Interval{Value: v, Lo: v * (1 - half), Hi: v * (1 + half)}
	}
	m := results.ModelAnswer{Model: name, ByCost: true, Summary: []string{"Cheapest: " + name, "A further sentence."}}
	for i, cost := range []float64{0.02, 0.021, 0.11} {
		x := results.Type{Machine: fmt.Sprint(name, i), State: results.StateAnswer, Machines: 2, Campaigns: 2, Configuration: "config_1", Setup: name,
			Throughput: around(100/cost, 0.03), Gain: around(2, 0.1), Cost: around(cost, 0.03), Next: around(cost, 0.2), Worst: cost * 1.01}
		if i > 0 {
			x.ToBest, x.Tied = around(cost/0.02, 0.06), i == 1
		}
		m.Types = append(m.Types, x)
		for k, part := range []float64{0.98, 1.03} {
			m.Rows = append(m.Rows, results.Row{Machine: x.Machine, Node: fmt.Sprintf("node-%d%d", i, k), Repeat: k + 1, State: results.StateAnswer, Setup: name, Load: "concurrency 8",
				Throughput: around(100/cost/part, 0.02), P99: around(0.02, 0.05), Cost: around(cost*part, 0.02), Disturbed: 0.2 * float64(k)})
		}
	}
	m.Types = append(m.Types, results.Type{Machine: "t3", State: results.StateInfeasible, Campaigns: 1})
	m.Rows = append(m.Rows, results.Row{Machine: "t3", Repeat: 1, State: results.StateInfeasible})
	missing := results.ModelAnswer{Model: "resnet", Types: []results.Type{{Machine: "t3", State: results.StateMissing, Campaigns: 1}}, Rows: []results.Row{{Machine: "t3", Repeat: 1, State: results.StateMissing}},
		Summary: []string{"No machine has an answer for resnet."}}
	return results.Ranking{Run: "q3-0123abcd", Models: []results.ModelAnswer{m, missing}}
}

// fleetPage writes the page of a ranking, and the ranking beside it, into a new folder.
func fleetPage(t *testing.T, r results.Ranking) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := output.WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "ranking.json"), text)
	write(t, filepath.Join(dir, output.FileName), page.Bytes())
	return dir
}
