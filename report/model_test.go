package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/model/onnx"
	"tuner/profile/journal"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/reporttest"
)

// A model that is only in the repository of an earlier analysis outlives it: what an analysis writes, a later one can
// replace and write again.
func TestModelOfAnEarlierRepository(t *testing.T) {
	t.Parallel()
	other, err := onnx.Read("../testdata/ort/add_sub.onnx")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := other.Digest()
	if err != nil {
		t.Fatal(err)
	}
	const gone = "/models/minilm/model.onnx"
	asInt8 := func(m journal.ModelFile) journal.ModelFile {
		m.Precision = "int8"
		return m
	}
	for name, later := range map[string]func(r analyze.Result) analyze.Result{
		"nothing keeps the limits": func(r analyze.Result) analyze.Result {
			tight := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()})
			tight.Header, tight.Folder = r.Header, r.Folder
			return tight
		},
		"another winner": func(r analyze.Result) analyze.Result {
			r.Header.Models = []journal.ModelFile{{Precision: "fp32", Path: other.Path(), SHA256: digest}, asInt8(r.Header.Models[0])}
			return r
		},
		"another winner, not here": func(r analyze.Result) analyze.Result {
			r.Header.Models = []journal.ModelFile{{Precision: "fp32", Path: gone, SHA256: strings.Repeat("0", 64)}, asInt8(r.Header.Models[0])}
			return r
		},
	} {
		r := reporttest.WithModel(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}))
		r.Header.Models = slices.Clone(r.Header.Models[:1])
		r.Folder = t.TempDir()
		if err := report.WriteRepository(filepath.Join(r.Folder, "repository"), r); err != nil {
			t.Fatal(err)
		}
		r.Header.Models[0].Path = gone // the campaign is another machine's from here on
		_, err := formats.All().WriteAll(r.Folder, later(r), withoutCharts())
		if missing := new(report.MissingModelError); err != nil && !errors.As(err, &missing) {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := formats.All().WriteAll(r.Folder, r, withoutCharts()); err != nil {
			t.Errorf("%s: the first analysis again: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(r.Folder, "repository", "minilm", "1", "external.bin")); err != nil {
			t.Errorf("%s: the data of the model: %v", name, err)
		}
	}
}
