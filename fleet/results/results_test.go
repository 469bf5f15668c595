package results

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/measure"
	"tuner/search"
)

// plan has one model on two types of machines.
func plan(t *testing.T) fleet.Plan {
	part := func(machine string, hourly float64) fleet.Part {
		return fleet.Part{Machine: machine, Hourly: hourly, Items: []fleet.Item{{Model: "m", Repeat: 1}}}
	}
	return fleet.Plan{Run: "q3-1", Fleet: fleet.Fleet{Output: t.TempDir(), Repeats: 1}, Parts: []fleet.Part{part("a", 0.36), part("b", 3.6)}}
}

func delivery(machine, text string) record.Delivery {
	item := record.Item{Job: record.JobName("q3-1", machine)}
	return record.Delivery{Item: item, Journal: []byte(text), Result: &record.Result{Job: item.Job, Machine: machine, Model: "m", Ended: time.Unix(0, 0).UTC()}}
}

// Collecting twice writes the same files. A folder with another journal is not overwritten.
func TestCollect(t *testing.T) {
	t.Parallel()
	p := plan(t)
	for range 2 {
		l, err := Collect(p, []record.Delivery{delivery("a", "{a}\n")})
		if err != nil || l.Missing() != 1 || l.Campaigns[0].Folder != filepath.Join("a", "m") || l.Campaigns[1].Folder != "" {
			t.Fatalf("%+v, %v", l, err)
		}
		text, err := os.ReadFile(filepath.Join(p.Fleet.Output, "a", "m", "journal.jsonl"))
		if err != nil || string(text) != "{a}\n" {
			t.Errorf("%s, %v", text, err)
		}
		again, err := Read(p.Fleet.Output)
		if d := cmp.Diff(l, again); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
	}
	if _, err := Collect(p, []record.Delivery{delivery("a", "{other}\n")}); err == nil || !strings.Contains(err.Error(), "it has the journal of another campaign") {
		t.Errorf("%v", err)
	}
}

// A cluster has no records of a run that was deleted, and half of them if that was interrupted. The
// list keeps what was collected. A journal that was removed is missing, and another run needs
// another folder.
func TestCollectKeepsWhatWasCollected(t *testing.T) {
	t.Parallel()
	p := plan(t)
	collect := func(p fleet.Plan, deliveries ...record.Delivery) List {
		t.Helper()
		l, err := Collect(p, deliveries)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := collect(p, delivery("a", "{a}\n"))
	for name, later := range map[string][]record.Delivery{"none": nil, "half of them": {delivery("a", "")}} {
		if d := cmp.Diff(first, collect(p, later...)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	if l := collect(p, delivery("b", "{b}\n")); l.Missing() != 0 {
		t.Errorf("%+v", l)
	}
	if again, err := Read(p.Fleet.Output); err != nil || again.Missing() != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	other := p
	other.Run = "q3-2"
	if _, err := Collect(other, nil); err == nil || !strings.Contains(err.Error(), "it has the campaigns of run q3-1; choose another `output:`") {
		t.Error(err)
	}
	for _, machine := range []string{"a", "b"} {
		if err := os.RemoveAll(filepath.Join(p.Fleet.Output, machine)); err != nil {
			t.Fatal(err)
		}
	}
	if l := collect(p); l.Missing() != 2 {
		t.Errorf("%+v", l)
	}
	if l := collect(other); l.Run != "q3-2" {
		t.Errorf("%+v", l)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"format": 2}`: "this version of tuner reads format 1",
		`[]`:            "this is not the list",
		`{"format": 1, "campaigns": [{"folder": "../../etc"}]}`: `the folder "../../etc" is not below it`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "`tuner fleet collect` writes them") {
		t.Errorf("%v", err)
	}
}

// answer makes a result whose best configuration has a throughput.
func answer(value, lo, hi float64, flags ...measure.Flag) analyze.Result {
	best := analyze.Point{Load: measure.Load{Concurrency: 4, BatchSize: 1}, Sample: analyze.Sample{Flags: flags, Windows: 10, Disturbed: 5 * len(flags), Values: map[measure.Metric]measure.Estimate{
		measure.Throughput: {Value: value, Lo: lo, Hi: hi}, measure.LatencyP99: {Value: 0.02, Lo: 0.01, Hi: 0.03}}}}
	return analyze.Result{Configs: []analyze.Config{{Name: "m_config_0", Best: &best, Points: []analyze.Point{best}}}}
}

// The cost of a million inferences is price / (throughput × 3600) × 1e6. A pod of 0.36 an hour at 100
// infer/s costs 1, and one of 3.6 an hour at 200 infer/s costs 5.
func TestRank(t *testing.T) {
	t.Parallel()
	both := List{Format: Format, Run: "q3-1", Campaigns: []Campaign{
		{Model: "m", Machine: "b", Repeat: 1, Folder: "b", Result: &record.Result{}, Price: 3.6},
		{Model: "m", Machine: "a", Repeat: 1, Folder: "a", Result: &record.Result{}, Price: 0.36},
		{Model: "m", Machine: "c", Repeat: 1, Folder: "c", Result: &record.Result{}, Price: 1},
		{Model: "m", Machine: "d", Repeat: 1},
	}}
	folders := map[string]analyze.Result{"/out/a": answer(100, 80, 125), "/out/b": answer(200, 160, 250, measure.FlagThrottled), "/out/c": {}}
	replay := func(dir string) (analyze.Result, error) { return folders[dir], nil }
	r, err := Rank("/out", both, replay, func(c analyze.Config) string { return c.Name })
	if err != nil || len(r.Models) != 1 {
		t.Fatal(r, err)
	}
	m := r.Models[0]
	order := ""
	for _, row := range m.Rows {
		order += row.Machine + " " + row.State + "; "
	}
	if order != "a answer; b answer; c infeasible; d missing; " || !m.ByCost {
		t.Errorf("%s by cost %t", order, m.ByCost)
	}
	close := func(got, want float64) bool { return got > want*0.999999 && got < want*1.000001 }
	if c := m.Rows[0].Cost; !close(c.Value, 1) || !close(c.Lo, 0.8) || !close(c.Hi, 1.25) {
		t.Errorf("%+v", c)
	}
	if m.Rows[1].Disturbed != 0.5 || m.Rows[0].Disturbed != 0 {
		t.Errorf("%+v", m.Rows)
	}
	want := []string{"Cheapest: a, 1 [0.8, 1.25] of a million inferences.", "b costs 5 × as much (3.2 to 7.81).", "c cannot keep the constraints.", "1 of 4 campaigns have no result yet.",
		"One machine of each type was measured: nothing is known of others of the type (search.machines)."}
	if d := cmp.Diff(want, m.Summary); d != "" {
		t.Error(d)
	}
	// b at 900 infer/s costs 1.11: it cannot be told from a.
	folders["/out/b"] = answer(900, 850, 950)
	r, err = Rank("/out", both, replay, func(c analyze.Config) string { return c.Name })
	if err != nil || !strings.HasPrefix(r.Models[0].Summary[1], "b cannot be told from it: it costs 1.111 [") {
		t.Errorf("%v, %v", r.Models[0].Summary, err)
	}
	// Without a price of each, throughput orders them.
	both.Campaigns[1].Price = 0
	r, err = Rank("/out", both, replay, func(c analyze.Config) string { return c.Name })
	if err != nil || r.Models[0].ByCost || r.Models[0].Rows[0].Machine != "b" || !strings.HasPrefix(r.Models[0].Summary[0], "Most throughput: b") {
		t.Errorf("%+v, %v", r.Models[0], err)
	}
	// Nor by cost where the configuration of a type is too noisy for one, though the winners are not: a's other
	// configuration is faster in the mean, and its interval reaches 0.
	both.Campaigns[1].Price = 0.36
	noisy, faster := answer(100, 80, 125), answer(110, 0, 230).Configs[0]
	faster.Name, faster.Candidate = "faster", search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: search.IntValue(2)})
	noisy.Configs = append(noisy.Configs, faster)
	folders["/out/a"] = noisy
	r, err = Rank("/out", both, replay, func(c analyze.Config) string { return c.Name })
	if err != nil || r.Models[0].ByCost || r.Models[0].Rows[1].Cost == nil {
		t.Errorf("%+v, %v", r.Models[0], err)
	}
}
