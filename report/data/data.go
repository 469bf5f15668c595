// Package data writes measurements as tables for other programs: every point and every trial of a
// campaign, as CSV and as Parquet.
//
// The tables hold what result.json holds of points, and what the journal holds of trials. They
// compare nothing and decide nothing. Each table has a row for each point or trial, and a column
// for each knob and for each figure with both ends of its interval. What is unknown is empty in
// CSV and null in Parquet.
package data

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync"

	"tuner/analyze"
	"tuner/report"
	reportcsv "tuner/report/csv"
)

// folder holds the tables in the output folder.
const folder = "results"

// Format writes results/points and results/trials, each as .csv and .parquet.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return "data" }

// parquetEnding ends the names of Parquet files.
const parquetEnding = ".parquet"

// form is a form in which each table is written.
type form struct {
	ending string
	write  func(io.Writer, table) error
}

func forms() []form { return []form{{".csv", writeCSV}, {parquetEnding, writeParquet}} }

// The names of the tables, which are also those of their files.
const (
	pointsName = "points"
	trialsName = "trials"
)

func tables() []string { return []string{pointsName, trialsName} }

// Files implements report.Format.
func (Format) Files(r analyze.Result, _ report.Output) []report.File {
	var files []report.File
	add := func(name string, make func(analyze.Result) (table, error)) {
		once := sync.OnceValues(func() (table, error) { return make(r) }) // both files of a table
		for _, form := range forms() {
			files = append(files, report.File{Path: filepath.Join(folder, name+form.ending), Write: func(w io.Writer) error {
				t, err := once()
				if err != nil {
					return fmt.Errorf("cannot make the table of %s: %w", name, err)
				}
				return form.write(w, t)
			}})
		}
	}
	add(pointsName, points)
	add(trialsName, trials)
	return files
}

// kind is the type of a column's values.
type kind int

const (
	text   kind = iota // string
	whole              // int64
	number             // float64
	flag               // bool
)

// String names the type as Parquet and documents do.
func (k kind) String() string { return [...]string{"string", "int64", "double", "boolean"}[k] }

// column is a column of a table.
type column struct {
	name  string
	kind  kind
	unit  string // "" without one
	about string
	of    func(row) (any, error) // a value of the column's kind; nil if it is unknown
}

// table has rows of cells. A cell has a value of its column's kind, or nil.
type table struct {
	name    string
	columns []column
	rows    [][]any
}

// writeCSV writes the table with the names of its columns in the first line. Numbers have as many
// digits as it takes to read the same value back.
func writeCSV(w io.Writer, t table) error {
	lines := csv.NewWriter(w)
	line := make([]string, len(t.columns))
	for i, c := range t.columns {
		line[i] = reportcsv.Text(c.name)
	}
	err := lines.Write(line)
	for _, cells := range t.rows {
		for i, cell := range cells {
			line[i] = cellText(cell)
		}
		if err == nil {
			err = lines.Write(line)
		}
	}
	lines.Flush()
	if err == nil {
		err = lines.Error()
	}
	if err != nil {
		return fmt.Errorf("cannot write CSV: %w", err)
	}
	return nil
}

func cellText(cell any) string {
	switch v := cell.(type) {
	case string:
		return reportcsv.Text(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}
