package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	markup "golang.org/x/net/html"

	"tuner/fleet/results"
	"tuner/internal/golden"
	"tuner/internal/webpage/webpagetest"
)

func interval(value, lo, hi float64) *results.Interval {
	return &results.Interval{Value: value, Lo: lo, Hi: hi}
}

// ranking has a model on several machines of each type, and one that nothing serves yet.
func ranking() results.Ranking {
	row := func(machine, node string, repeat int, disturbed, cost float64) results.Row {
		return results.Row{Machine: machine, Node: node, Repeat: repeat, State: results.StateAnswer, Configuration: "minilm_config_1", Setup: "2 instances × 1 thread, int8, batch 8",
			Load: "concurrency 16", Throughput: interval(100/cost, 98/cost, 102/cost), P99: interval(0.021, 0.02, 0.022), Cost: interval(cost, cost/1.02, cost/0.98), Disturbed: disturbed, Folder: fmt.Sprintf("%s/minilm/%d", machine, repeat)}
	}
	return results.Ranking{Run: "q3-0123abcd", Models: []results.ModelAnswer{
		{
			Model: "minilm", ByCost: true,
			Types: []results.Type{
				{Machine: "c7g", State: results.StateAnswer, Machines: 2, Campaigns: 2, Configuration: "minilm_config_1", Setup: "2 instances × 1 thread, int8, batch 8",
					Throughput: interval(4700, 4500, 4900), Gain: interval(6.8, 6.1, 7.6), Cost: interval(0.0213, 0.0205, 0.0221), Next: interval(0.0213, 0.019, 0.0239), Worst: 0.022},
				{Machine: "c7i", State: results.StateAnswer, Machines: 1, Campaigns: 1, Configuration: "minilm_config_1", Setup: "2 instances × 1 thread, int8, batch 8",
					Throughput: interval(4000, 3900, 4100), Cost: interval(0.0215, 0.021, 0.022), ToBest: interval(1.01, 0.95, 1.07), Tied: true},
				{Machine: "l4", State: results.StateAnswer, Machines: 1, Campaigns: 1, Configuration: "minilm_config_4", Setup: "1 instance, fp16, batch 64",
					Throughput: interval(9000, 8900, 9100), Cost: interval(0.11, 0.109, 0.111), ToBest: interval(5.16, 4.9, 5.4)},
				{Machine: "t3", State: results.StateInfeasible, Campaigns: 1},
			},
			Rows: []results.Row{row("c7g", "node-1", 1, 0, 0.0206), row("c7i", "node-3", 1, 0.01, 0.0215), row("c7g", "node-2", 2, 0.3, 0.022), row("l4", "node-4", 1, 0, 0.11),
				{Machine: "t3", Node: "node-5", Repeat: 1, State: results.StateInfeasible}},
			Summary: []string{"Cheapest: c7g, 0.0213 [0.0205, 0.0221] of a million inferences.", "c7i cannot be told from it: it costs 1.01 [0.95, 1.07] × as much."},
		},
		{
			Model:   "resnet",
			Types:   []results.Type{{Machine: "c7g", State: results.StateMissing, Campaigns: 1}},
			Rows:    []results.Row{{Machine: "c7g", Repeat: 1, State: results.StateMissing}},
			Summary: []string{"No machine has an answer for resnet."},
		},
	}}
}

func TestText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteText(&b, "out/q3", ranking()); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "ranking.txt"), b.String())
}

// A model of 25 s has digits too, and times of minutes have no exponent. Without an answer, no folder is named.
func TestTextOfSlowModels(t *testing.T) {
	t.Parallel()
	r := results.Ranking{Models: []results.ModelAnswer{{Model: "slow", Rows: []results.Row{{Machine: "c7g", State: results.StateAnswer,
		Throughput: interval(0.0412, 0.0403, 0.0421), P99: interval(25.4, 24, 26.1), Cost: interval(12345, 12000, 12600)}}}}}
	var b bytes.Buffer
	if err := WriteText(&b, "out/q3", r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.0412 [0.0403, 0.0421]", "25400 [24000, 26100]", "12345 [12000, 12600]"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "next:") {
		t.Errorf("a command without a folder:\n%s", b.String())
	}
}

// write returns the page, as text and as a browser reads it.
func write(t *testing.T, r results.Ranking) (string, *markup.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), root
}

// The page has a section, a chart and both tables for each model, and asks for nothing.
func TestPage(t *testing.T) {
	t.Parallel()
	text, root := write(t, ranking())
	webpagetest.CheckSelfContained(t, root)
	webpagetest.CheckAssets(t, assets, append(source().Scripts, source().Template, source().Style)...)
	for _, want := range []string{`<section id="model-2">`, `id="chart-2"`, "minilm: Cheapest: c7g, 0.0213 [0.0205, 0.0221] of a million inferences.", "0.019 to 0.0239", ">6.8 [6.1, 7.6]<", "nothing satisfies the constraints"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	declared := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^(?:function|class|const|let) (\w+)`).FindAllStringSubmatch(text, -1) {
		if declared[found[1]] {
			t.Errorf("%s is declared twice: the browser would run nothing", found[1])
		}
		declared[found[1]] = true
	}
}

// A chart has the figure by which its types are ordered: the cost, or the throughput without prices.
func TestChart(t *testing.T) {
	t.Parallel()
	m := ranking().Models[0]
	byCost := chartOf("c", m)
	if len(byCost.Types) != 3 || !byCost.Types[0].IsTied || !byCost.Types[1].IsTied || byCost.Types[2].IsTied || byCost.Types[0].Figure.Value != 0.0213 || byCost.Types[0].Next == nil {
		t.Errorf("%+v", byCost)
	}
	if list := byCost.Types[0].Machines; len(list) != 2 || list[0].IsDisturbed || !list[1].IsDisturbed || list[1].Figure.Value != 0.022 {
		t.Errorf("%+v", list)
	}
	if list := byCost.Types[1].Machines; len(list) != 0 { // its only machine is the type's own mark
		t.Errorf("%+v", list)
	}
	m.ByCost = false
	if d := chartOf("c", m); d.Types[0].Figure.Value != 4700 || d.Types[0].Next != nil || d.Types[1].ToBest != "" {
		t.Errorf("%+v", d)
	}
	if text, err := json.Marshal(chartOf("c", ranking().Models[1])); err != nil || string(text) != `{"chart":"c","by_cost":false,"types":[]}` {
		t.Errorf("%s, %v", text, err)
	}
}

// Names from files are text, on a page and on a terminal.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	const hostile = "</script><script>alert(1)</script>\x1b[2J"
	r := ranking()
	m := &r.Models[0]
	m.Model, m.Types[0].Machine, m.Types[0].Setup, m.Rows[0].Node, m.Summary[1] = hostile, hostile, hostile, hostile, hostile
	text, root := write(t, r)
	webpagetest.CheckSelfContained(t, root)
	if strings.Contains(text, "<script>alert") {
		t.Error("a name is markup")
	}
	var b bytes.Buffer
	if err := WriteText(&b, "out", r); err != nil || strings.Contains(b.String(), "\x1b") {
		t.Errorf("%v: %q", err, b.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{WriteText(failing{}, "out", ranking()), WriteHTML(failing{}, ranking())} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
	}
}
