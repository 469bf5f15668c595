package data

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/report"
	"tuner/report/json"
	"tuner/report/reporttest"
	"tuner/report/result"
	"tuner/search"
)

// written returns the content of a file of the format.
func written(t *testing.T, r analyze.Result, name string) []byte {
	t.Helper()
	for _, f := range (Format{}).Files(r, report.Output{}) {
		if f.Path == filepath.Join(folder, name) {
			var b bytes.Buffer
			if err := f.Write(&b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	t.Fatalf("no file %s", name)
	return nil
}

// readCSV returns the rows of a CSV file as cells by column, without empty ones.
func readCSV(t *testing.T, r analyze.Result, name string) []map[string]string {
	t.Helper()
	return cellsOfCSV(t, written(t, r, name))
}

func cellsOfCSV(t *testing.T, text []byte) []map[string]string {
	t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := []map[string]string{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			if cell != "" {
				row[lines[0][i]] = cell
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// ofParquet returns the same of a Parquet file, and its columns with their types.
func ofParquet(t *testing.T, r analyze.Result, name string) (rows []map[string]string, columns []string) {
	t.Helper()
	return cellsOfParquet(t, written(t, r, name))
}

func cellsOfParquet(t *testing.T, text []byte) (rows []map[string]string, columns []string) {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range file.Schema().Fields() {
		columns = append(columns, f.Name()+" "+f.Type().String())
	}
	rows = []map[string]string{}
	reader := parquet.NewGenericReader[any](file)
	buffer := make([]parquet.Row, file.NumRows())
	if n, err := reader.ReadRows(buffer); n != len(buffer) || err != nil && err != io.EOF {
		t.Fatalf("%d of %d rows, %v", n, len(buffer), err)
	}
	for _, cells := range buffer {
		row := map[string]string{}
		for i, v := range cells {
			if !v.IsNull() {
				name := file.Schema().Fields()[i].Name()
				row[name] = v.String()
				if v.Kind() == parquet.Double {
					row[name] = strconv.FormatFloat(v.Double(), 'g', -1, 64)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, columns
}

// results are results of all kinds: with failures and ties, variants, two servers, old journals,
// another program's figures, and nothing measured.
func results(t *testing.T) map[string]analyze.Result {
	t.Helper()
	one := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4)
	}
	point := *reporttest.Ranked(t, one(), analyze.Options{}).Configs[0].Best
	together := analyzetest.Narrow(t, point, 0.703, measure.LatencyAvg, measure.Throughput)
	failed := analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageStart, "no such file").End("nothing works", false)
	return map[string]analyze.Result{
		"typical":     reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}),
		"variants":    reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}),
		"tight":       reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}),
		"two servers": reporttest.OfTwoServers(t, true),
		"recorded":    reporttest.Recorded(t, "minilm"),
		"imported":    reporttest.Imported(t),
		"of another":  reporttest.OfAnother(t),
		"failed":      reporttest.Ranked(t, failed, analyze.Options{}),
		"together":    reporttest.Ranked(t, one(), analyze.Options{Goal: together}),
	}
}

// printed prints a figure as the tables do.
func printed(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// expected returns the cells of a point that follow from result.json. Cells of the campaign's
// knobs, server, rank and time are compared by other tests.
func expected(d result.Result, c result.Configuration, p result.Point, s result.Sample, phase string) map[string]string {
	row := map[string]string{
		"model": d.Model, "configuration": c.Name, "default": strconv.FormatBool(c.Default), "phase": phase,
		"ranks":     strconv.FormatBool(c.BestLoad != nil && *c.BestLoad == p.Load && (phase == "final") == p.Confirmed),
		"satisfies": strconv.FormatBool(s.Satisfies),
	}
	text := func(name, v string) {
		if v != "" {
			row[name] = v
		}
	}
	whole := func(name string, n *int) {
		if n != nil {
			row[name] = strconv.Itoa(*n)
		}
	}
	positive := func(name string, v float64) {
		if v > 0 {
			row[name] = printed(v)
		}
	}
	positive("rank", float64(c.Rank))
	positive("concurrency", float64(p.Load.Concurrency))
	positive("request_rate", p.Load.RequestRate)
	positive("batch_size", float64(p.Load.BatchSize))
	positive("mean_batch", s.MeanBatch)
	text("misses", strings.Join(s.Misses, "; "))
	var flags []string
	for _, f := range s.Flags {
		flags = append(flags, string(f))
	}
	text("flags", strings.Join(flags, "; "))
	whole("windows", s.Windows)
	whole("launches", s.Launches)
	whole("requests", s.Requests)
	whole("errors", s.Errors)
	text("knob_precision", c.Setup.Precision)
	text("knob_runtime", c.Setup.Runtime)
	text("knob_execution_provider", c.Setup.Provider)
	whole("knob_instance_count", c.Setup.Instances)
	whole("knob_intra_op_threads", c.Setup.IntraOpThreads)
	whole("knob_max_batch_size", c.Setup.MaxBatchSize)
	for metric, e := range s.Values {
		row[string(metric)] = printed(e.Value)
		if e.Lo != e.Value || e.Hi != e.Value {
			row[string(metric)+"_lo"], row[string(metric)+"_hi"] = printed(e.Lo), printed(e.Hi)
		}
	}
	return row
}

// Every point of result.json has a row, and one more for the search's figures of a confirmed
// point. CSV and Parquet have the same cells, and those of result.json. What is unknown is absent.
func TestPointsAreThoseOfResultJSON(t *testing.T) {
	t.Parallel()
	for name, r := range results(t) {
		d, err := result.Parse("result.json", []byte(reporttest.Written(t, r, json.Write)))
		if err != nil {
			t.Fatal(err)
		}
		var want []map[string]string
		for _, c := range d.Configurations {
			for _, p := range c.Points {
				phase := "search"
				if p.Confirmed {
					phase = "final"
				}
				want = append(want, expected(d, c, p, p.Sample, phase))
				if p.Searched != nil {
					want = append(want, expected(d, c, p, *p.Searched, "search"))
				}
			}
		}
		got := readCSV(t, r, "points.csv")
		fromParquet, _ := ofParquet(t, r, "points.parquet")
		if diff := cmp.Diff(got, fromParquet); diff != "" {
			t.Errorf("%s: CSV and Parquet differ (-CSV +Parquet):\n%s", name, diff)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d rows, want %d", name, len(got), len(want))
			continue
		}
		for i, row := range got {
			// not in result.json, or there for configurations alone
			for _, column := range slices.Collect(maps.Keys(row)) {
				_, isCompared := want[i][column]
				if !isCompared && (column == "server" || column == "window_time" || strings.HasPrefix(column, knobPrefix)) {
					delete(row, column)
				}
			}
			if diff := cmp.Diff(want[i], row); diff != "" {
				t.Errorf("%s: row %d (-result.json +points.csv):\n%s", name, i+1, diff)
			}
		}
	}
}

// Each trial that result.json counts has a row, in the order of time. A failed one has its reason
// and no figures.
func TestTrials(t *testing.T) {
	t.Parallel()
	for name, r := range results(t) {
		got := readCSV(t, r, "trials.csv")
		fromParquet, _ := ofParquet(t, r, "trials.parquet")
		if diff := cmp.Diff(got, fromParquet); diff != "" {
			t.Errorf("%s: CSV and Parquet differ (-CSV +Parquet):\n%s", name, diff)
		}
		want := r.Trials
		if r.Recorded != "" {
			want = 0 // another program's trials are not known
		}
		if len(got) != want {
			t.Errorf("%s: %d rows, want %d", name, len(got), want)
		}
		last, failed := 0.0, 0
		for i, row := range got {
			elapsed, err := strconv.ParseFloat(row["elapsed"], 64)
			if err != nil || elapsed < last || row["trial"] != strconv.Itoa(i+1) {
				t.Errorf("%s: row %d is of trial %s, after %s s", name, i+1, row["trial"], row["elapsed"])
			}
			last = elapsed
			_, hasFigure := row["throughput"]
			_, hasReason := row["failure"]
			if hasFigure == hasReason {
				t.Errorf("%s: row %d has a figure: %t, a reason why not: %t", name, i+1, hasFigure, hasReason)
			}
			if hasReason {
				failed++
			}
		}
		if failed != r.Failed {
			t.Errorf("%s: %d failed trials, want %d", name, failed, r.Failed)
		}
	}
}

// A configuration that sets no knob has the default's, and a recording only what it says.
func TestKnobs(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).
		Measure(analyzetest.Candidate(2, 1, 16).With("session.x", "y").With(search.KnobMaxQueueDelay, "1500us").With("memory_arena", "false"), 16), analyze.Options{})
	knobsIn := func(r analyze.Result, configuration string) map[string]string {
		for _, row := range readCSV(t, r, "points.csv") {
			if row["configuration"] != configuration {
				continue
			}
			for column := range row {
				if !strings.HasPrefix(column, knobPrefix) {
					delete(row, column)
				}
			}
			return row
		}
		t.Fatalf("no row of %s", configuration)
		return nil
	}
	of := knobsIn(r, "minilm_config_0")
	for name, want := range map[string]string{"instance_count": "2", "intra_op_threads": "1", "max_batch_size": "16", "max_queue_delay": "0.0015", "memory_arena": "false",
		"session.x": "y", "precision": "fp32"} {
		if got := of[knobPrefix+name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	ofDefault := knobsIn(r, "minilm_config_default")
	// the sample's base configuration has no batcher's delay and no session entry
	for name, want := range map[string]string{"max_queue_delay": "0", "memory_arena": "true", "session.x": "", "preferred_batch_size": "[]"} {
		if got := ofDefault[knobPrefix+name]; got != want {
			t.Errorf("of the default %s is %q, want %q", name, got, want)
		}
	}
	if diff := cmp.Diff(map[string]string{}, knobsIn(reporttest.Imported(t), "mlp_config_default")); diff != "" {
		t.Errorf("an import without configurations has knobs (-want +got):\n%s", diff)
	}
}

// The columns do not depend on what was measured, except for knobs without a name of their own and
// metrics that the goal names. Their names differ, so Parquet can hold them.
func TestColumnsAreStable(t *testing.T) {
	t.Parallel()
	names := func(r analyze.Result, make func(analyze.Result) (table, error)) (list []string) {
		made, err := make(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range made.columns {
			list = append(list, c.name+" "+c.kind.String())
		}
		return list
	}
	for _, make := range []func(analyze.Result) (table, error){points, trials} {
		want := names(reporttest.Imported(t), make)
		for name, r := range results(t) {
			if diff := cmp.Diff(want, names(r, make)); diff != "" {
				t.Errorf("%s (-import +got):\n%s", name, diff)
			}
		}
		sorted := slices.Sorted(slices.Values(want))
		if len(slices.Compact(sorted)) != len(want) {
			t.Errorf("a column occurs twice in %v", want)
		}
	}
}

// A spreadsheet must not compute a name. Parquet has the name itself.
func TestHostileText(t *testing.T) {
	t.Parallel()
	r := reporttest.Hostile(t)
	r.Header.Model = "=1+1"
	if got := readCSV(t, r, "points.csv")[0]["model"]; got != "'=1+1" {
		t.Errorf("CSV has %q", got)
	}
	rows, _ := ofParquet(t, r, "points.parquet")
	if got := rows[0]["model"]; got != "=1+1" {
		t.Errorf("Parquet has %q", got)
	}
}

// A knob whose value is not of its type is an error, not a wrong figure.
func TestWrongKnob(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	r.Configs[0].Candidate = r.Configs[0].Candidate.With(search.KnobInstanceCount, "many")
	if _, err := points(r); err == nil || !strings.Contains(err.Error(), `instance_count: cannot read "many" as an integer`) {
		t.Errorf("error %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, f := range (Format{}).Files(reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), report.Output{}) {
		if err := f.Write(reporttest.Failing{}); err == nil || !strings.Contains(err.Error(), reporttest.ErrFull.Error()) {
			t.Errorf("%s: error %v", f.Path, err)
		}
	}
}

// The committed page of columns is generated from the tables.
func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	r := reporttest.Imported(t) // without further knobs and metrics
	var b strings.Builder
	b.WriteString(`<!-- Generated from the code: ` + "`make golden`" + ` writes this page. -->
# Columns of points and trials

The columns of ` + "`results/points` and `results/trials`" + `. [Result files](results.md#points-and-trials) explain
the rows. The types are Parquet's. A cell is empty in CSV, and null in Parquet, where the value is
unknown or does not apply.

Further columns follow where a campaign has them:

- ` + "`knob_NAME`" + ` for session entries, options of execution providers and fields of ModelConfig, as string;
- a metric that the goal names, such as ` + "`latency_p99.9` or `goodput_50ms`" + `, with both ends of its interval.
`)
	for _, make := range []func(analyze.Result) (table, error){points, trials} {
		made, err := make(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n| column | type | unit | meaning |\n|---|---|---|---|\n", strings.ToUpper(made.name[:1])+made.name[1:])
		for _, c := range made.columns {
			if strings.HasSuffix(c.name, loEnding) || strings.HasSuffix(c.name, hiEnding) {
				continue
			}
			name := "`" + c.name + "`"
			if slices.ContainsFunc(made.columns, func(other column) bool { return other.name == c.name+loEnding }) {
				name = fmt.Sprintf("`%s`, `%[1]s%[2]s`, `%[1]s%[3]s`", c.name, loEnding, hiEnding)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, c.kind, c.unit, c.about)
		}
	}
	golden.Check(t, filepath.Join("..", "..", "docs", "reference", "data-columns.md"), b.String())
}

// The tables of two models together have the rows of both, in the columns of both. CSV and Parquet
// have the same cells.
func TestJoin(t *testing.T) {
	t.Parallel()
	all := results(t)
	a, b := all["typical"], all["variants"]
	dir := t.TempDir()
	var parts []string
	for i, r := range []analyze.Result{a, b} {
		part := filepath.Join(dir, strconv.Itoa(i))
		parts = append(parts, part)
		for _, f := range (Format{}).Files(r, report.Output{}) {
			if err := report.WriteFile(filepath.Join(part, f.Path), f.Write); err != nil {
				t.Fatal(err)
			}
		}
	}
	parts = append(parts, filepath.Join(dir, "failed")) // wrote no tables
	joint := filepath.Join(dir, "joint")
	written, err := Join(joint, parts)
	if err != nil || len(written) != 4 {
		t.Fatalf("wrote %q, %v", written, err)
	}
	for _, name := range tables() {
		want := slices.Concat(readCSV(t, a, name+".csv"), readCSV(t, b, name+".csv"))
		text, err := os.ReadFile(filepath.Join(joint, folder, name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, cellsOfCSV(t, text)); diff != "" {
			t.Errorf("%s.csv (-parts +joint):\n%s", name, diff)
		}
		text, err = os.ReadFile(filepath.Join(joint, folder, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := cellsOfParquet(t, text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s.parquet (-parts +joint):\n%s", name, diff)
		}
	}
}

// Columns that one table alone has are empty in the other's rows, and a column of two kinds is refused.
func TestWith(t *testing.T) {
	t.Parallel()
	a := table{columns: []column{{name: "model"}, {name: "x", kind: whole}}, rows: [][]any{{"a", int64(1)}}}
	b := table{columns: []column{{name: "y", kind: number}, {name: "model"}}, rows: [][]any{{2.5, "b"}}}
	got, err := a.with(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]any{{"a", int64(1), nil}, {"b", nil, 2.5}}, got.rows); diff != "" {
		t.Error(diff)
	}
	if _, err := a.with(table{columns: []column{{name: "x", kind: flag}}}); err == nil || !strings.Contains(err.Error(), "column x is int64 in one table and boolean in another") {
		t.Errorf("err = %v", err)
	}
}
