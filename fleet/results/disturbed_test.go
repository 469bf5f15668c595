package results

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/fleet"
	"tuner/fleet/record"
)

// disturb marks windows of a campaign: so many of the first configuration's 20.
func disturb(r analyze.Result, windows int) analyze.Result {
	r.Configs[0].Points[0].Disturbed = windows
	return r
}

// Two of a type's three machines have more than 5 % of disturbed windows, so two more are asked for, and no more than that.
// A type with one machine asks for none.
func TestMore(t *testing.T) {
	t.Parallel()
	m := ranked(t, nil, map[string][]analyze.Result{
		"a": {disturb(configs(100), 2), configs(100), disturb(configs(100), 20)},
		"b": {disturb(configs(90), 20)},
		"c": {disturb(configs(50), 1), configs(50)}, // 5 % stand
	})
	for i := range m.Rows {
		m.Rows[i].Node = "node-" + string(rune('0'+m.Rows[i].Repeat))
	}
	want := []fleet.More{{Machine: "a", Model: "m", Machines: 2, Avoid: []string{"node-1", "node-2", "node-3"}}}
	if d := cmp.Diff(want, Ranking{Models: []ModelAnswer{m}}.More()); d != "" {
		t.Error(d)
	}
	m = ranked(t, nil, map[string][]analyze.Result{"a": {disturb(configs(100), 20), disturb(configs(100), 20), disturb(configs(100), 20)}})
	if list := (Ranking{Models: []ModelAnswer{m}}).More(); len(list) != 1 || list[0].Machines != 2 {
		t.Errorf("%+v", list)
	}
}

// The answer without the disturbed machines is said where it is another one. Their figures stay.
func TestWithoutDisturbed(t *testing.T) {
	t.Parallel()
	summary := func(of map[string][]analyze.Result) string {
		return strings.Join(ranked(t, map[string]float64{"a": 0.36, "b": 0.36}, of).Summary, "\n")
	}
	// Type a is the cheapest by one machine that was disturbed: (300 · 60)^½ = 134, and 60 without it.
	text := summary(map[string][]analyze.Result{"a": {disturb(configs(300), 20), configs(60)}, "b": {configs(100), configs(100)}})
	if !strings.Contains(text, "Cheapest: a,") || !strings.Contains(text, "Without the disturbed machines (1 of a), the best is b with c1.") {
		t.Errorf("%q", text)
	}
	for name, of := range map[string]map[string][]analyze.Result{
		"the same answer":   {"a": {disturb(configs(300), 20), configs(200)}, "b": {configs(100), configs(100)}},
		"all are disturbed": {"a": {disturb(configs(300), 20), disturb(configs(60), 20)}, "b": {configs(100), configs(100)}},
		"none is disturbed": {"a": {configs(300), configs(60)}, "b": {configs(100), configs(100)}},
	} {
		if text := summary(of); strings.Contains(text, "Without the disturbed") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// Further campaigns join the stage's own, and one that found no machine leaves nothing missing.
func TestReadAll(t *testing.T) {
	t.Parallel()
	p := plan(t)
	if _, err := Collect(p, []record.Delivery{delivery("a", "{a}\n"), delivery("b", "{b}\n")}); err != nil {
		t.Fatal(err)
	}
	own, err := ReadAll(p.Fleet.Output)
	if err != nil || len(own.Campaigns) != 2 || own.Missing() != 0 {
		t.Fatalf("%+v, %v", own, err)
	}
	further := p
	further.Fleet.Output = filepath.Join(p.Fleet.Output, fleet.MoreDir)
	if _, err := Collect(further, []record.Delivery{delivery("b", "{more}\n")}); err != nil {
		t.Fatal(err)
	}
	all, err := ReadAll(p.Fleet.Output)
	if err != nil || len(all.Campaigns) != 3 || all.Missing() != 0 || all.Campaigns[2].Machine != "b" || all.Campaigns[2].Folder != filepath.Join("more", "b", "m") {
		t.Errorf("%+v, %v", all, err)
	}
}
