// Package output writes a comparison of runs: as text, Markdown, JSON, a page for a browser, and in
// the format of Go's benchmarks. It also lists the runs of a folder tree. It decides nothing.
package output

import (
	"fmt"
	"math"
	"strings"

	"tuner/compare"
	"tuner/measure"
)

// table is a table of changes: of one metric, or of the gains.
type table struct {
	Title string
	Rows  []row
}

// row is a configuration under a load.
type row struct {
	Name, Load, A, B, Change string
	Direction                compare.Direction
}

// Cells returns the row's cells in the order of the heads.
func (r row) Cells() []string { return []string{r.Name, r.Load, r.A, r.B, r.Change} }

// tables returns the tables of a pair: one per shown metric, then the gains.
func tables(p compare.Pair) (list []table) {
	for _, metric := range p.Shown {
		t := table{Title: string(metric)}
		for _, c := range p.Changes {
			if c.Metric == metric {
				t.Rows = append(t.Rows, row{nameOf(c), loadOf(c), metric.Format(c.A.Value), metric.Format(c.B.Value), changeText(c), c.Direction})
			}
		}
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	gains := table{Title: "factor over the default, free of the machine's speed"}
	for _, c := range p.Gains {
		gains.Rows = append(gains.Rows, row{nameOf(c), "best", factor(c.A.Value), factor(c.B.Value), changeText(c), c.Direction})
	}
	if len(gains.Rows) > 0 {
		list = append(list, gains)
	}
	return list
}

func factor(v float64) string { return fmt.Sprintf("%.3g ×", v) }

// nameOf returns the names of a configuration in both runs, and the server if there are two.
func nameOf(c compare.Change) string {
	name := c.Configuration
	if c.Other != name {
		name += "/" + c.Other
	}
	if c.Server != "" {
		name += " (" + c.Server + ")"
	}
	return name
}

func loadOf(c compare.Change) string { return loadText(c.Load) }

// loadText is short: "8" for a concurrency, "200/s" for a rate, "8 b4" with a client batch of 4, "1.5 ×" for a scale.
func loadText(l measure.Load) string {
	if l.Scale > 0 {
		return factor(l.Scale)
	}
	text := fmt.Sprintf("%d", l.Concurrency)
	if l.Concurrency == 0 {
		text = fmt.Sprintf("%g/s", l.RequestRate)
	}
	if l.BatchSize > 1 {
		text += fmt.Sprintf(" b%d", l.BatchSize)
	}
	return text
}

// changeText returns "+3.8 % [1.0, 6.7]" where a change is shown, and "~ [−2.1, 4.9] %" where not.
func changeText(c compare.Change) string {
	if c.Change == nil {
		return "~ (no interval)"
	}
	ends := fmt.Sprintf("[%s, %s]", percent(c.Change.Lo), percent(c.Change.Hi))
	if c.Direction == compare.NotShown {
		return "~ " + ends + " %"
	}
	return signed(c.Change.Value) + " % " + ends
}

// signed is percent with a plus sign.
func signed(share float64) string {
	if share < 0 {
		return percent(share)
	}
	return "+" + percent(share)
}

// percent writes a share in percent, with a minus sign of typography, as all reports have it. From
// 100 % on a digit after the point tells nothing.
func percent(share float64) string {
	if math.IsInf(share, 0) || math.IsNaN(share) {
		return "?"
	}
	digits := 1
	if math.Abs(share) > 0.9995 {
		digits = 0
	}
	return strings.Replace(fmt.Sprintf("%.*f", digits, 100*share), "-", "−", 1)
}

// summary counts the shown changes of a pair, by direction.
func summary(p compare.Pair) string {
	var better, worse, open int
	for _, c := range p.Changes {
		switch {
		case !p.Shows(c.Metric):
		case c.Direction == compare.Better:
			better++
		case c.Direction == compare.Worse:
			worse++
		default:
			open++
		}
	}
	return fmt.Sprintf("%s against %s: %d better, %d worse, %d ~.", p.B, p.A, better, worse, open)
}

// commonTexts says where one change explains all of a metric, or where it does not. A metric for which
// nothing is shown needs no sentence.
func commonTexts(p compare.Pair) (lines []string) {
	for _, c := range p.Common {
		change := fmt.Sprintf("%s %% [%s, %s]", signed(c.Change.Value), percent(c.Change.Lo), percent(c.Change.Hi))
		switch {
		case !c.Suffices():
			lines = append(lines, fmt.Sprintf("%s: the %d changes differ among themselves (Cochran's Q, p = %.2g), so some configurations changed unlike others.",
				c.Metric, c.Changes, c.PValue))
		case c.Direction != compare.NotShown:
			lines = append(lines, fmt.Sprintf("%s: one common change of %s is enough to explain all %d. "+
				"So no configuration is shown to have changed by itself. What they share changed: the machine, or the server.", c.Metric, change, c.Changes))
		}
	}
	return lines
}

// legend says what the names of configurations stand for.
func legend(c compare.Comparison, p compare.Pair) (lines []string) {
	for _, one := range c.Runs[0].Configurations {
		for _, change := range p.Changes {
			if change.Configuration == one.Name && one.Description != one.Name {
				lines = append(lines, one.Name+": "+one.Description)
				break
			}
		}
	}
	return lines
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}
