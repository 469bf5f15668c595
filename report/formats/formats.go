// Package formats has the list of report formats. Code that writes reports, or reads the formats in
// a file, uses this list. A new format is a package beside this one and a row here
// (docs/how-to/add-a-report-format.md).
package formats

import (
	"tuner/report"
	"tuner/report/chart"
	"tuner/report/csv"
	"tuner/report/data"
	"tuner/report/html"
	"tuner/report/json"
	"tuner/report/junit"
	"tuner/report/markdown"
	"tuner/report/text"
)

// All lists the formats in the order in which their files are written.
func All() report.Formats {
	return report.Formats{
		{Format: text.Format{}, Stdout: "text", About: "the table"},
		{Format: csv.Format{}, Stdout: "csv", About: "every measurement"},
		{Format: data.Format{}},
		{Format: chart.Format{}},
		{Format: html.Format{}},
		{Format: junit.Format{}},
		{Format: markdown.Format{}, Always: true, Stdout: "markdown", About: "the report"},
		{Format: json.Format{}, Always: true, Stdout: "json", About: "the result"},
	}
}
