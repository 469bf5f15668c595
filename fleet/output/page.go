package output

import (
	"embed"
	"fmt"
	"io"

	"tuner/fleet/results"
	"tuner/internal/webpage"
)

// FileName is the name of the page in a fleet's output folder.
const FileName = "report.html"

//go:embed assets
var assets embed.FS

func source() webpage.Source {
	return webpage.Source{Files: assets, Template: "fleet.html", Style: "fleet.css", Scripts: []string{"fleet.js"}}
}

// page is the data of the page's template.
type page struct {
	webpage.Parts
	Run    string
	Models []modelPart
}

// modelPart is the part of a page about one model.
type modelPart struct {
	Name     string
	ID       string // of its section
	Chart    string // ID of its chart
	Headline string
	Summary  []string
	Tables   []table
}

// The data of the page's script: what the charts draw.
type (
	chartData struct {
		Chart  string     `json:"chart"` // ID
		ByCost bool       `json:"by_cost"`
		Types  []typeData `json:"types"` // with an answer, best first
	}
	typeData struct {
		Machine  string            `json:"machine"`
		Setup    string            `json:"setup"`
		IsTied   bool              `json:"is_tied"` // it is the best, or cannot be told from it
		Figure   results.Interval  `json:"figure"`  // cost, or throughput
		Next     *results.Interval `json:"next"`    // of a machine that was not measured
		ToBest   string            `json:"to_best"`
		Machines []machineData     `json:"machines"` // each that was measured, unless it is the only one
	}
	machineData struct {
		Node        string           `json:"node"`
		Figure      results.Interval `json:"figure"`
		Disturbed   float64          `json:"disturbed"`    // share of its windows
		IsDisturbed bool             `json:"is_disturbed"` // more than its figures stand
	}
)

// WriteHTML writes the ranking as one page for a browser.
func WriteHTML(w io.Writer, r results.Ranking) error {
	p := page{Run: r.Run}
	charts := []chartData{}
	for i, m := range r.Models {
		part := modelPart{Name: m.Model, ID: fmt.Sprintf("model-%d", i+1), Chart: fmt.Sprintf("chart-%d", i+1)}
		if len(m.Summary) > 0 {
			part.Headline, part.Summary = m.Summary[0], m.Summary[1:]
		}
		part.Tables = []table{types(m), campaigns(m)}
		p.Models = append(p.Models, part)
		charts = append(charts, chartOf(part.Chart, m))
	}
	return webpage.Write(w, source(), charts, func(parts webpage.Parts) any {
		p.Parts = parts
		return p
	})
}

// chartOf returns what the chart of a model draws: the figure by which its types are ordered.
func chartOf(id string, m results.ModelAnswer) chartData {
	d := chartData{Chart: id, ByCost: m.ByCost, Types: []typeData{}}
	of := func(cost, throughput *results.Interval) *results.Interval {
		if m.ByCost {
			return cost
		}
		return throughput
	}
	for i, x := range m.Types {
		value := of(x.Cost, x.Throughput)
		if value == nil {
			continue
		}
		t := typeData{Machine: x.Machine, Setup: x.Setup, IsTied: i == 0 || x.Tied, Figure: *value, Machines: []machineData{}}
		if m.ByCost {
			t.Next, t.ToBest = x.Next, figure(x.ToBest, 3, 1)
		}
		for _, r := range m.Rows {
			if own := of(r.Cost, r.Throughput); own != nil && r.Machine == x.Machine && x.Campaigns > 1 {
				t.Machines = append(t.Machines, machineData{r.Node, *own, r.Disturbed, r.IsDisturbed()})
			}
		}
		d.Types = append(d.Types, t)
	}
	return d
}
