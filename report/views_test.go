package report

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// The same campaign in other views.
func TestViews(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]analyze.Options{
		"at8.table.txt":  {Top: 3, At: spec.At{Load: measure.Load{Concurrency: 8}}},
		"each.table.txt": {Top: 3, At: spec.At{Each: true}},
		"mean.table.txt": {Top: 3, Rank: spec.RankTop3Mean},
	} {
		golden(t, name, []byte(written(t, ranked(t, typical(t), o), WriteTable)))
	}
}

// The page says, too, how its configurations were compared.
func TestViewsOfThePage(t *testing.T) {
	t.Parallel()
	page := func(w io.Writer, r analyze.Result) error { return WriteHTML(w, r, false) }
	at8 := written(t, ranked(t, typical(t), analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 8}}}), page)
	mean := written(t, ranked(t, typical(t), analyze.Options{Rank: spec.RankTop3Mean}), page)
	const load, rank = ">All are compared at concurrency=8, where ", ">Ranked by the mean of the three highest throughputs over the loads within the limits"
	if !strings.Contains(at8, load) || strings.Contains(at8, rank) || !strings.Contains(mean, rank) || strings.Contains(mean, load) {
		t.Error("the page does not say how its configurations were compared, or says what is not so")
	}
}

// Colours change nothing but the colours: the best row is green, and figures beyond a limit are red.
func TestColors(t *testing.T) {
	t.Parallel()
	r := ranked(t, typical(t).Measure(analyzetest.Candidate(1, 1, 8), 64), analyze.Options{})
	plain, colored := written(t, r, WriteTable), written(t, r, WriteColoredTable)
	if strings.Contains(plain, "\x1b") {
		t.Error("the plain table has colours")
	}
	bare := strings.NewReplacer("\x1b[1;32m", "", "\x1b[31m", "", "\x1b[0m", "").Replace(colored)
	if diff := cmp.Diff(plain, bare); diff != "" {
		t.Errorf("colours change the text (-plain +colored):\n%s", diff)
	}
	for line := range strings.Lines(colored) {
		switch {
		case strings.Contains(line, bestMark):
			if !strings.HasPrefix(line, "\x1b[1;32m") {
				t.Errorf("the best is not green: %q", line)
			}
		case strings.Contains(line, "config_6"): // 64 requests of one instance: far beyond 50 ms
			if !strings.Contains(line, "!\x1b[0m") || !strings.HasSuffix(line, "\x1b[31mno\x1b[0m\n") {
				t.Errorf("what misses the limit is not red: %q", line)
			}
		}
	}
}

func TestSelectedColumns(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(analyzetest.Candidate(2, 1, 16), 16)
	r := ranked(t, b, analyze.Options{CSV: spec.CSVFiles{
		Inference: spec.CSVFile{Columns: []string{"model_config_path", "concurrency", "request_rate", "perf_latency_avg", "cpu_used_ram", "backend_parameter/intra_op_thread_count"}},
		GPU:       spec.CSVFile{Columns: []string{"gpu_uuid", "gpu_total_memory", "gpu_free_memory", "concurrency"}},
		Server:    spec.CSVFile{Columns: []string{"gpu_uuid"}}}})
	r.Configs[0].Points[0].GPUs = []measure.GPUWindow{{UUID: "GPU-1", MemoryUsed: 1e9, MemoryTotal: 8e9}}
	lines := strings.Split(written(t, r, WriteInferenceCSV), "\n")
	if want := "Model Config Path,Concurrency,Request Rate,Avg Latency (ms),RAM Usage (MB),backend_parameter/intra_op_thread_count"; lines[0] != want {
		t.Errorf("the head is %s, want %s", lines[0], want)
	}
	// 16 requests of two instances with batches of 8 take 26 ms; two instances take 290 MB.
	if !strings.HasPrefix(lines[1], "minilm_config_0,16,,2") || !strings.HasSuffix(lines[1], ",290.000,1") {
		t.Errorf("the first row is %s", lines[1])
	}
	if got, want := written(t, r, WriteGPUCSV), "GPU UUID,GPU Memory Available (MB),GPU Memory Available (MB),Concurrency\nGPU-1,8000.000,7000.000,16\n"; got != want {
		t.Errorf("GPUs: %q, want %q", got, want)
	}
	if got := written(t, r, WriteServerCSV); got != "GPU UUID\n" {
		t.Errorf("server: %q", got)
	}
}

// Every column that may be chosen has Model Analyzer's head.
func TestEveryColumnHasAHead(t *testing.T) {
	t.Parallel()
	for _, fields := range [][]string{spec.InferenceFields(), spec.GPUFields(), spec.ServerFields()} {
		for _, f := range fields {
			if header(f) == f {
				t.Errorf("%s has no head", f)
			}
		}
	}
}

// The same journal gives the same bytes in every file, but for the one that names the folder.
func TestReportsAreReproducible(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"minilm", "guided"} {
		models := withModel(t, recorded(t, name)).Header.Models
		write := func() map[string]string {
			r, dir := recorded(t, name), t.TempDir()
			r.Header.Models = models
			if _, err := WriteAll(dir, r, append(withoutCharts(), spec.FormatJUnit)); err != nil {
				t.Fatal(err)
			}
			return tree(t, dir)
		}
		first := write()
		for range 3 { // the order of maps changes from one to the next
			again := write()
			if first[locationName] == again[locationName] {
				t.Errorf("%s: both are in %s", name, first[locationName])
			}
			again[locationName] = first[locationName]
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("%s (-first +again):\n%s", name, diff)
			}
		}
	}
}

// tree reads all files below a folder, without the folder's own name in them.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The file that names the optimum names it and nothing else, from whatever folder one looks.
func TestLocation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := ranked(t, typical(t), analyze.Options{})
	if _, err := WriteAll(dir, r, []string{spec.FormatConfig}); err != nil {
		t.Fatal(err)
	}
	path, err := os.ReadFile(filepath.Join(dir, locationName))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(string(path), "\n"))
	if err != nil || !bytes.Contains(text, []byte(`name: "minilm"`)) {
		t.Errorf("%q does not lead to the optimum: %v", path, err)
	}
	if _, err := WriteAll(dir, ranked(t, typical(t), analyze.Options{Goal: tight()}), []string{spec.FormatConfig}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, locationName)); err == nil {
		t.Error("where nothing satisfies the constraints the file still names an optimum")
	}
}

// A mean of fewer than three loads is not called one of three.
func TestMeanOfFewLoads(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	check := func(b *analyzetest.Builder, want ...string) {
		t.Helper()
		text := strings.Join(strings.Fields(written(t, ranked(t, b, analyze.Options{Rank: spec.RankTop3Mean}), WriteTable)), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in\n%s", w, text)
			}
		}
	}
	begin := func() *analyzetest.Builder { return analyzetest.New(t, analyzetest.Profile) }
	check(begin().Measure(search.Candidate{}, 8).Measure(best, 16), "each at its best load.", " mean of 1 ", "loads, so that the mean is of 1.")
	check(begin().Measure(search.Candidate{}, 4, 8).Measure(best, 8, 16), "each in the mean of its two best loads.", " mean of 2 ", "loads, so that the mean is of 2.")
	check(begin().Measure(search.Candidate{}, 2, 4, 8).Measure(best, 4, 8, 16), "each in the mean of its three best loads.", " mean of 3 ", "over the loads within the limits.")
}

// The loads of a table are in one order, also those of several client batches that a recording may have.
func TestLoadsOfStagesAreInOrder(t *testing.T) {
	t.Parallel()
	var c analyze.Config
	var want []string
	for _, batch := range []int{1, 2, 4, 8} {
		for level := 1; level <= 8; level++ {
			load := measure.Load{Concurrency: level, BatchSize: batch}
			want = append(want, load.String())
			c.Points = append(c.Points, analyze.Point{Load: load})
		}
	}
	slices.Reverse(c.Points)
	var b strings.Builder
	writeStageLoads(&b, []stage{{title: "default", config: c}})
	var got []string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "| concurrency") {
			got = append(got, strings.TrimSpace(strings.Split(line, "|")[1]))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
}
