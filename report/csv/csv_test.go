package csv

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/spec/csvfiles"
)

// The committed page of columns is generated from the table.
func TestColumnsPageIsGenerated(t *testing.T) {
	t.Parallel()
	files := []struct {
		name   string
		fields []string
	}{{"inference", csvfiles.InferenceFields()}, {"gpu", csvfiles.GPUFields()}, {"server", csvfiles.ServerFields()}}
	var b strings.Builder
	b.WriteString(`<!-- Generated from the code: ` + "`make golden`" + ` writes this page. -->
# CSV columns

The columns that the files in ` + "`results/`" + ` may have. [analyze.yaml](analyze-fields.md#inference_output_fields)
chooses among them, and [result files](results.md#csv) explain the rows. A head's unit is that of the
column. ` + "`inference`, `gpu` and `server` stand for `metrics-model-inference.csv`, `metrics-model-gpu.csv`" + `
and ` + "`metrics-server-only.csv`" + `.

| name in YAML | head | files | meaning |
|---|---|---|---|
`)
	for _, c := range columns() {
		var has []string
		for _, f := range files {
			if slices.Contains(f.fields, c.name) {
				has = append(has, f.name)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.name, c.head, strings.Join(has, ", "), c.about)
	}
	fmt.Fprintf(&b, "| `%sNAME` | the name in YAML | inference | A parameter of the configuration. |\n", csvfiles.BackendParameter)
	golden.Check(t, filepath.Join("..", "..", "docs", "reference", "csv-columns.md"), b.String())
}

// The table describes every column that a file may have.
func TestColumnsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, field := range slices.Concat(csvfiles.InferenceFields(), csvfiles.GPUFields(), csvfiles.ServerFields()) {
		i := slices.IndexFunc(columns(), func(c column) bool { return c.name == field })
		if i < 0 || columns()[i].head == "" || columns()[i].about == "" {
			t.Errorf("the column %s is not described", field)
			continue
		}
		if isEmpty := strings.HasPrefix(columns()[i].about, "Empty"); csvfiles.IsUnmeasured(field) && !isEmpty {
			t.Errorf("the column %s is always empty, and described as %q", field, columns()[i].about)
		}
	}
}

func TestHostileTextIsNoFormula(t *testing.T) {
	t.Parallel()
	lines, err := csv.NewReader(strings.NewReader(reporttest.Written(t, reporttest.Hostile(t), WriteInference))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines[1][2], "'"+reporttest.HostileFormula; got != want && lines[2][2] != want {
		t.Errorf("the cell is %q, want %q", got, want)
	}
	for _, cell := range []string{"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"} {
		if got := Text(cell); got != "'"+cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
	for _, cell := range []string{"", "minilm", "1=1"} {
		if got := Text(cell); got != cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
}

func TestGPURows(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 64), analyze.Options{})
	points := r.Configs[0].Points
	points[0].GPUs = []measure.GPUWindow{{UUID: "GPU-1", Utilization: 0.5, Power: 61.25, MemoryUsed: 2.5e9}, {UUID: "GPU-2"}}
	points[1].GPUs = []measure.GPUWindow{{UUID: "GPU-1", Utilization: 1, Power: 70, MemoryUsed: 3e9}}
	var b bytes.Buffer
	if err := WriteGPU(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `Model,GPU UUID,Batch,Concurrency,Model Config Path,Instance Group,Satisfies Constraints,GPU Memory Usage (MB),GPU Utilization (%),GPU Power Usage (W)
minilm,GPU-1,1,4,minilm_config_default,2:CPU,Yes,2500.000,50.000,61.250
minilm,GPU-2,1,4,minilm_config_default,2:CPU,Yes,0.000,0.000,0.000
minilm,GPU-1,1,64,minilm_config_default,2:CPU,No,3000.000,100.000,70.000
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The recording does not name the execution provider of the default, but says that it was on a GPU.
func TestInstanceGroupOfARecording(t *testing.T) {
	t.Parallel()
	want := "Model,Batch,Concurrency,Model Config Path,Instance Group,Max Batch Size,Satisfies Constraints,Throughput (infer/sec),p99 Latency (ms)\n" +
		"resnet,1,1,resnet_config_default,1:GPU,8,No,200.000,5.000\n"
	if diff := cmp.Diff(want, reporttest.Written(t, reporttest.OfAnother(t), WriteInference)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every field that a file may ask for has its own title.
func TestEveryColumnHasATitle(t *testing.T) {
	t.Parallel()
	for _, field := range slices.Concat(csvfiles.InferenceFields(), csvfiles.GPUFields(), csvfiles.ServerFields()) {
		if header(field) == field {
			t.Errorf("column %s has no title", field)
		}
	}
}

func TestSelectedColumns(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(analyzetest.Candidate(2, 1, 16), 16)
	r := reporttest.Ranked(t, b, analyze.Options{CSV: csvfiles.Files{
		Inference: csvfiles.File{Columns: []string{"model_config_path", "concurrency", "request_rate", "perf_latency_avg", "cpu_used_ram", "backend_parameter/intra_op_thread_count"}},
		GPU:       csvfiles.File{Columns: []string{"gpu_uuid", "gpu_total_memory", "gpu_free_memory", "concurrency"}},
		Server:    csvfiles.File{Columns: []string{"gpu_uuid"}}}})
	r.Configs[0].Points[0].GPUs = []measure.GPUWindow{{UUID: "GPU-1", MemoryUsed: 1e9, MemoryTotal: 8e9},
		{UUID: "GPU-2", MemoryTotal: 8e9}, {UUID: "GPU-3", MemoryUsed: 1e9}} // what is not known is not free
	lines := strings.Split(reporttest.Written(t, r, WriteInference), "\n")
	if want := "Model Config Path,Concurrency,Request Rate,Avg Latency (ms),RAM Usage (MB),backend_parameter/intra_op_thread_count"; lines[0] != want {
		t.Errorf("the head is %s, want %s", lines[0], want)
	}
	// 16 requests on two instances with batches of 8 take 26 ms. Two instances take 290 MB.
	if !strings.HasPrefix(lines[1], "minilm_config_0,16,,2") || !strings.HasSuffix(lines[1], ",290.000,1") {
		t.Errorf("the first row is %s", lines[1])
	}
	if got, want := reporttest.Written(t, r, WriteGPU), "GPU UUID,GPU Memory Available (MB),GPU Memory Available (MB),Concurrency\nGPU-1,8000.000,7000.000,16\nGPU-2,8000.000,,16\nGPU-3,,,16\n"; got != want {
		t.Errorf("GPUs: %q, want %q", got, want)
	}
	if got := reporttest.Written(t, r, WriteServer); got != "GPU UUID\n" {
		t.Errorf("server: %q", got)
	}
}
