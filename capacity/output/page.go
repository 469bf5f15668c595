package output

import (
	"embed"
	"fmt"
	"io"
	"math"

	"tuner/capacity"
	"tuner/internal/webpage"
	"tuner/internal/words"
)

//go:embed assets
var assets embed.FS

// planPage is the data of the page's template.
type planPage struct {
	webpage.Parts
	Model        string
	Head         []string
	Tables       []table
	Verification []string
	Explanation  []string
	Notes        []string
	Axes         []axis
	Prices       []price
}

// axis is a slider of the what-if.
type axis struct {
	Name, Label string
	Last, Value int
}

type price struct {
	Index int
	Type  string
	Value string
}

// whatIfData has the answers for the page's script.
type whatIfData struct {
	Rates    []string            `json:"rates"`
	Limits   []string            `json:"limits"`
	Startups []string            `json:"startups"`
	Types    []string            `json:"types"`
	Prices   []float64           `json:"prices"`
	Answers  [][]capacity.Answer `json:"answers"`
}

// WriteHTML writes the plan as one page for a browser. The page looks the answers to other questions up
// in those of w.
func WriteHTML(w io.Writer, p capacity.Plan, around capacity.WhatIf) error {
	page := planPage{Model: p.Model, Head: head(p), Verification: verification(p), Explanation: explanation(p), Notes: p.Notes}
	page.Tables = append(page.Tables, titled("Fleets", fleets(p)))
	if p.Verification != nil {
		page.Tables = append(page.Tables, titled("Replay", replayed(p.Verification)))
	}
	page.Tables = append(page.Tables, titled("Configurations", candidates(p)), titled("Simulation beside what was measured", checks(p)))
	data := whatIfData{Types: around.Types, Prices: around.Prices, Answers: around.Answers}
	for _, f := range around.Rates {
		data.Rates = append(data.Rates, fmt.Sprintf("%s requests/s at the peak", words.Digits(f*p.Asked.Peak, 4)))
	}
	for _, s := range around.Limits {
		data.Limits = append(data.Limits, fmt.Sprintf("%s ms", words.Digits(1000*s, 4)))
	}
	for _, s := range around.Startups {
		data.Startups = append(data.Startups, fmt.Sprintf("%s × as long", words.Digits(s, 4)))
	}
	page.Axes = []axis{
		{"rate", "Traffic", len(around.Rates) - 1, nearest(around.Rates, 1)},
		{"limit", "Limit", len(around.Limits) - 1, nearest(around.Limits, p.Asked.Limit)},
		{"startup", "Start of a pod", len(around.Startups) - 1, nearest(around.Startups, 1)},
	}
	for i, kind := range around.Types {
		page.Prices = append(page.Prices, price{i, kind, number(around.Prices[i])})
	}
	source := webpage.Source{Files: assets, Template: "plan.html", Style: "plan.css", Scripts: []string{"plan.js"}}
	return webpage.Write(w, source, data, func(parts webpage.Parts) any {
		page.Parts = parts
		return page
	})
}

// nearest returns the place of the value that is the nearest.
func nearest(values []float64, to float64) (best int) {
	for i, v := range values {
		if math.Abs(v-to) < math.Abs(values[best]-to) {
			best = i
		}
	}
	return best
}

func titled(title string, t table) table {
	t.Title = title
	return t
}
