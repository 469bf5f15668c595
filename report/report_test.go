package report_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/report"
	"tuner/report/chart"
	resultcsv "tuner/report/csv"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/junit"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

func TestGoldens(t *testing.T) {
	t.Parallel()
	found := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Top: 3})
	variants := reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{})
	infeasible := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()})
	nothing := reporttest.Ranked(t, reporttest.Complete(t), analyze.Options{Goal: reporttest.Tight()})
	alone := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4), analyze.Options{})
	failed := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).
		Fail(search.Candidate{}, 4, measure.StageLoad, "onnx runtime error 7: invalid graph"), analyze.Options{})
	two, err := analyze.Analyze(analyzetest.OfTwo(t).Campaign(), analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	summary := func(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, true) }
	for _, test := range []struct {
		golden string
		result analyze.Result
		write  func(io.Writer, analyze.Result) error
	}{
		{"found.table.txt", found, text.WriteTable},
		{"found.md", found, summary},
		{"found.json", found, resultjson.Write},
		{"found.csv", found, resultcsv.WriteInference},
		{"found.pbtxt", found, report.WriteConfig},
		{"variants.table.txt", variants, text.WriteTable},
		{"variants.md", variants, summary},
		{"variants.json", variants, resultjson.Write},
		{"variants.pbtxt", variants, report.WriteConfig},
		{"infeasible.table.txt", infeasible, text.WriteTable},
		{"infeasible.json", infeasible, resultjson.Write},
		{"alone.table.txt", alone, text.WriteTable},
		{"alone.pbtxt", alone, report.WriteConfig},
		{"failed.table.txt", failed, text.WriteTable},
		{"failed.md", failed, summary},
		{"gpu.csv", found, resultcsv.WriteGPU},
		{"server.csv", found, resultcsv.WriteServer},
		{"found.junit.xml", found, junit.Write},
		{"infeasible.junit.xml", infeasible, junit.Write},
		{"nothing.table.txt", nothing, text.WriteTable},
		{"two.table.txt", two, text.WriteTable},
		{"two.explain.txt", two, text.WriteExplanation},
		{"two.md", two, summary},
		{"two.json", two, resultjson.Write},
		{"two.csv", two, resultcsv.WriteInference},
		{"two.junit.xml", two, junit.Write},
		{"two.encoder.pbtxt", two.OfEach()[0], report.WriteConfig},
	} {
		var b bytes.Buffer
		if err := test.write(&b, test.result); err != nil {
			t.Errorf("%s: %v", test.golden, err)
			continue
		}
		golden.Check(t, filepath.Join("testdata", test.golden), b.Bytes())
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	summary := func(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, false) }
	page := func(w io.Writer, r analyze.Result) error { return html.Write(w, r, true) }
	for name, write := range map[string]func(io.Writer, analyze.Result) error{
		"table": text.WriteTable, "markdown": summary, "html": page, "json": resultjson.Write, "inference": resultcsv.WriteInference, "gpu": resultcsv.WriteGPU,
		"server": resultcsv.WriteServer, "chart": chart.WriteLoads, "stages": chart.WriteStages, "config": report.WriteConfig, "junit": junit.Write,
	} {
		if err := write(reporttest.Failing{}, r); !errors.Is(err, reporttest.ErrFull) {
			t.Errorf("%s: error is %v, want %v", name, err, reporttest.ErrFull)
		}
	}
}
