package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/model/modelconfig"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/reporttest"
	"tuner/spec"
)

func allFormats() []string {
	return append(withoutCharts(), "png", "junit")
}

// withoutCharts lists the formats that are fast to write.
func withoutCharts() []string {
	return []string{"table", "csv", "data", "html", spec.FormatConfig, spec.FormatRepository}
}

func TestWriteAll(t *testing.T) {
	t.Parallel()
	r := reporttest.WithModel(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}))
	dir := t.TempDir()
	if _, err := formats.All().WriteAll(dir, r, withoutCharts()); err != nil {
		t.Fatal(err)
	}
	written, err := formats.All().WriteAll(dir, r, allFormats()) // replaces the first files
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range written {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		names = append(names, strings.TrimPrefix(path, dir+"/"))
	}
	want := []string{
		"results/metrics-model-inference.csv", "results/metrics-model-gpu.csv", "results/metrics-server-only.csv",
		"results/points.csv", "results/points.parquet", "results/trials.csv", "results/trials.parquet",
		"plots/throughput_vs_p99.png", "plots/throughput_vs_concurrency.png", "plots/pareto.png",
		"plots/latency_breakdown.png", "optim_Results.png", "report.html", "junit.xml", "report.md", "result.json",
		"optimal/config.pbtxt", "Optimal_ConfigFile_Location.txt", "repository/minilm",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	checkDeployed(t, dir)
}

// checkDeployed reads the optimum back. It has the winner's settings, and both places have the same
// configuration.
func checkDeployed(t *testing.T, dir string) {
	t.Helper()
	var configs []*modelconfig.Config
	for _, path := range []string{"optimal/config.pbtxt", "repository/minilm/config.pbtxt"} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		c, err := modelconfig.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, c)
	}
	if !modelconfig.Equal(configs[0], configs[1]) {
		t.Error("optimal and repository differ")
	}
	c := configs[0]
	if c.GetMaxBatchSize() != 16 || c.GetInstanceGroup()[0].GetCount() != 2 || len(c.GetModelWarmup()) != 2 {
		t.Errorf("not the winner's configuration with two warm-ups: %v", c)
	}
	for _, name := range []string{"model.onnx", "external.bin"} {
		if info, err := os.Stat(filepath.Join(dir, "repository/minilm/1", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestOnlyTheFormatsAskedFor(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	written, err := formats.All().WriteAll(dir, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), []string{"table", spec.FormatConfig})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "report.md"), filepath.Join(dir, "result.json"), filepath.Join(dir, "optimal/config.pbtxt"),
		filepath.Join(dir, "Optimal_ConfigFile_Location.txt")}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestOutdatedOptimumIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := formats.All().WriteAll(dir, reporttest.WithModel(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})), withoutCharts()); err != nil {
		t.Fatal(err)
	}
	if _, err := formats.All().WriteAll(dir, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), withoutCharts()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"optimal/config.pbtxt", "repository/minilm"} {
		if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

func TestForeignOptimumStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "optimal", "config.pbtxt")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("name: \"mine\"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "result.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := formats.All().WriteAll(dir, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), withoutCharts())
	if err == nil || !strings.Contains(err.Error(), "tuner did not write it") {
		t.Errorf("error is %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "name: \"mine\"\n" {
		t.Errorf("the user's file is %q, %v", text, err)
	}
}

func TestChangedModelIsRefused(t *testing.T) {
	t.Parallel()
	r := reporttest.WithModel(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}))
	reporttest.CopyFile(t, "../testdata/ort/add_sub.onnx", r.Header.Models[0].Path)
	dir := t.TempDir()
	written, err := formats.All().WriteAll(dir, r, withoutCharts())
	var input *report.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "changed since it was measured") {
		t.Errorf("error is %v, want an InputError", err)
	}
	if len(written) != 12 { // everything except the repository
		t.Errorf("written: %v", written)
	}
	if _, err := os.Stat(filepath.Join(dir, "repository")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a repository was begun (%v)", err)
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *report.InputError
	if _, err := formats.All().WriteAll(dir, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), withoutCharts()); !errors.As(err, &refused) {
		t.Errorf("error is %v, want an InputError", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("folder has %d entries, want the user's one", len(entries))
	}
}

func TestHalfWrittenFolderIsTakenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reporttest.MakeFolder(t, dir, "results") // the disk was full before result.json was written
	if _, err := formats.All().WriteAll(dir, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), nil); err != nil {
		t.Error(err)
	}
}

// The cache may have lost a variant that tuner made. Its remedy differs from that for the user's
// own file.
func TestRepositoryOfAVariantThatIsGone(t *testing.T) {
	t.Parallel()
	err := report.WriteRepository(t.TempDir(), reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}))
	if missing := new(report.MissingModelError); !errors.As(err, &missing) || !strings.Contains(err.Error(), "run the command of the campaign again to make it") {
		t.Errorf("error %v, want a MissingModelError with the remedy", err)
	}
}

// A campaign of another machine names a path of that machine. All but the repository is written then, and
// an earlier repository is removed. The model is found by its digest in the campaign's folder.
func TestModelOfAnotherMachine(t *testing.T) {
	t.Parallel()
	r := reporttest.WithModel(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}))
	here := filepath.Dir(r.Header.Models[0].Path)
	r.Header.Models[0].Path = "/models/minilm/model.onnx"
	r.Folder = t.TempDir()
	reporttest.MakeFolder(t, r.Folder, "repository")
	written, err := formats.All().WriteAll(r.Folder, r, withoutCharts())
	if missing := new(report.MissingModelError); !errors.As(err, &missing) || missing.Folder != r.Folder {
		t.Errorf("error %v, want a MissingModelError", err)
	}
	if len(written) != 12 { // everything except the repository
		t.Errorf("written: %v", written)
	}
	page, err := os.ReadFile(filepath.Join(r.Folder, "report.html"))
	if err != nil || strings.Contains(string(page), "--model-repository repository") {
		t.Errorf("the page names a repository that is not there (%v)", err)
	}
	reporttest.CopyFile(t, "../testdata/ort/add_sub.onnx", filepath.Join(r.Folder, "another.onnx"))
	reporttest.CopyFile(t, filepath.Join(here, "external.onnx"), filepath.Join(r.Folder, "encoder.onnx"))
	reporttest.CopyFile(t, filepath.Join(here, "external.bin"), filepath.Join(r.Folder, "external.bin"))
	if _, err := formats.All().WriteAll(r.Folder, r, withoutCharts()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"another.onnx", "encoder.onnx", "external.bin"} {
		if err := os.Remove(filepath.Join(r.Folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := formats.All().WriteAll(r.Folder, r, withoutCharts()); err != nil {
		t.Errorf("the model of the repository is not found: %v", err)
	}
	r.Header.Models[0].SHA256 = strings.Repeat("0", 64)
	if _, err := formats.All().WriteAll(r.Folder, r, withoutCharts()); err == nil {
		t.Error("a model with another digest is taken")
	}
	if _, err := os.Stat(filepath.Join(r.Folder, "repository", "minilm")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the repository of another model is still there (%v)", err)
	}
}

// The table of loads is that of this analysis. An earlier one is removed.
func TestTableOfLoadsIsNotOutdated(t *testing.T) {
	t.Parallel()
	r, dir := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), t.TempDir()
	path := filepath.Join(dir, "results", "loads.csv")
	for _, isAsked := range []bool{false, true, true, false, false} {
		r.Each = isAsked
		written, err := formats.All().WriteAll(dir, r, []string{"csv"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != isAsked || slices.Contains(written, path) != isAsked {
			t.Errorf("with the table %t: %v, written %v", isAsked, err, written)
		}
	}
	r.Each = true
	for _, names := range [][]string{{"csv"}, {"table"}} { // without CSV the tables stay as they are
		if _, err := formats.All().WriteAll(dir, r, names); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%v: %v", names, err)
		}
	}
}
