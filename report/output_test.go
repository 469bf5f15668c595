package report

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/modelconfig"
	"tuner/onnx"
	"tuner/spec"
)

// withModel puts a model with external data on disk and its digest into the result.
func withModel(t *testing.T, r analyze.Result) analyze.Result {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"external.onnx", "external.bin"} {
		copyFile(t, filepath.Join("../testdata/ort", name), filepath.Join(dir, name))
	}
	model, err := onnx.Read(filepath.Join(dir, "external.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := model.Digest()
	if err != nil {
		t.Fatal(err)
	}
	models := slices.Clone(r.Header.Models)
	models[0].Path, models[0].SHA256 = model.Path(), digest
	r.Header.Models = models
	return r
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func allFormats() []string {
	return append(withoutCharts(), spec.FormatPNG, spec.FormatJUnit)
}

// withoutCharts are the formats that are written quickly.
func withoutCharts() []string {
	return []string{spec.FormatTable, spec.FormatCSV, spec.FormatHTML, spec.FormatConfig, spec.FormatRepository}
}

func TestWriteAll(t *testing.T) {
	t.Parallel()
	r := withModel(t, ranked(t, typical(t), analyze.Options{}))
	dir := t.TempDir()
	if _, err := WriteAll(dir, r, withoutCharts()); err != nil {
		t.Fatal(err)
	}
	written, err := WriteAll(dir, r, allFormats()) // replaces what the first wrote
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
		"plots/throughput_vs_p99.png", "plots/throughput_vs_concurrency.png", "plots/memory_vs_p99.png", "plots/pareto.png",
		"plots/latency_breakdown.png", "optim_Results.png", "report.html", "junit.xml", "report.md", "result.json",
		"optimal/config.pbtxt", "Optimal_ConfigFile_Location.txt", "repository/minilm",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	checkDeployed(t, dir)
}

// checkDeployed reads the optimum back: the winner's settings, and the same configuration in both places.
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
	written, err := WriteAll(dir, ranked(t, typical(t), analyze.Options{}), []string{spec.FormatTable, spec.FormatConfig})
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
	if _, err := WriteAll(dir, withModel(t, ranked(t, typical(t), analyze.Options{})), withoutCharts()); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteAll(dir, ranked(t, typical(t), analyze.Options{Goal: tight()}), withoutCharts()); err != nil {
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
	_, err := WriteAll(dir, ranked(t, typical(t), analyze.Options{Goal: tight()}), withoutCharts())
	if err == nil || !strings.Contains(err.Error(), "tuner did not write it") {
		t.Errorf("error is %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "name: \"mine\"\n" {
		t.Errorf("the user's file is %q, %v", text, err)
	}
}

func TestChangedModelIsRefused(t *testing.T) {
	t.Parallel()
	r := withModel(t, ranked(t, typical(t), analyze.Options{}))
	copyFile(t, "../testdata/ort/add_sub.onnx", r.Header.Models[0].Path)
	dir := t.TempDir()
	written, err := WriteAll(dir, r, withoutCharts())
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "changed since it was measured") {
		t.Errorf("error is %v, want an InputError", err)
	}
	if len(written) != 8 { // everything but the repository
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
	var refused *InputError
	if _, err := WriteAll(dir, ranked(t, typical(t), analyze.Options{}), withoutCharts()); !errors.As(err, &refused) {
		t.Errorf("error is %v, want an InputError", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("folder has %d entries, want the user's one", len(entries))
	}
}

func TestHalfWrittenFolderIsTakenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeFolder(t, dir, resultsDir) // a disk was full before result.json was written
	if _, err := WriteAll(dir, ranked(t, typical(t), analyze.Options{}), nil); err != nil {
		t.Error(err)
	}
}

func TestRequestDims(t *testing.T) {
	t.Parallel()
	check := func(name string, dims, measured, want []int64) {
		t.Helper()
		got, ok := requestDims(dims, measured)
		if ok != (want != nil) || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, want)
		}
	}
	check("fixed", []int64{3, 224, 224}, nil, []int64{3, 224, 224})
	check("measured size", []int64{-1}, []int64{32}, []int64{32})
	check("own batch dimension", []int64{-1, -1}, []int64{32}, []int64{1, 32})
	check("unknown", []int64{-1, 4}, nil, nil)
}

func TestModelFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(file, want string) {
		t.Helper()
		if got := modelFolder(filepath.Join(dir, file)); got != want {
			t.Errorf("model folder of %s is %q, want %q", file, got, want)
		}
	}
	check("repo/minilm/1/model.onnx", "")
	copyFile(t, "testdata/found.pbtxt", makeFolder(t, dir, "repo/minilm")+"/config.pbtxt")
	check("repo/minilm/1/model.onnx", filepath.Join(dir, "repo/minilm"))
	check("repo/minilm/1/model.onnx/model.onnx", filepath.Join(dir, "repo/minilm"))
	check("elsewhere/minilm.onnx", "")
}

func makeFolder(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A variant that tuner made may be gone from its cache: the remedy is another one than for the user's own file.
func TestRepositoryOfAVariantThatIsGone(t *testing.T) {
	t.Parallel()
	err := WriteRepository(t.TempDir(), ranked(t, withVariants(t), analyze.Options{}))
	if input := new(InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "the same `tuner profile` command makes it again") {
		t.Errorf("error %v, want an InputError with the remedy", err)
	}
}
