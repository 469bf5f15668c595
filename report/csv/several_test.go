package csv

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/spec/csvfiles"
)

// A row of several models has the cells that Model Analyzer writes: values with commas between, and figures
// with those of the models in brackets (format_for_csv in its result_utils.py).
func TestCellsOfSeveralModels(t *testing.T) {
	t.Parallel()
	b := analyzetest.NewTogether(t, analyzetest.ProfileOfTwo).Measure(search.Candidate{}, 1).Measure(analyzetest.Both(2, 8, 1), 2)
	fields := []string{"model_name", "batch_size", "concurrency", "request_rate", "model_config_path", "instance_group", "max_batch_size", "satisfies_constraints",
		"perf_throughput", "perf_latency_p99", "cpu_used_ram", "backend_parameter/intra_op_thread_count", "gpu_uuid"}
	r, err := analyze.Analyze(b.Campaign(), analyze.Options{CSV: csvfiles.Files{Inference: csvfiles.File{Columns: fields}}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(reporttest.Written(t, r, WriteInference))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	// twice 60 requests/s and a concurrency of 2; the batches are the profile's
	want := map[string]string{
		"model_name": "encoder,ranker", "batch_size": "1,2", "concurrency": ",4", "request_rate": "120,", "model_config_path": "encoder_config_0,ranker_config_0",
		"instance_group": "2:CPU,1:CPU", "max_batch_size": "8,8", "satisfies_constraints": "Yes", "backend_parameter/intra_op_thread_count": ",", "gpu_uuid": "",
		"cpu_used_ram": "310.000, [310.000,310.000]",
	}
	i := slices.IndexFunc(rows, func(row []string) bool { return strings.HasPrefix(row[4], "encoder_config_0") })
	if i < 0 {
		t.Fatalf("no row of the configuration in %v", rows)
	}
	figure := regexp.MustCompile(`^\d+\.\d{3}, \[\d+\.\d{3},\d+\.\d{3}\]$`)
	for k, field := range fields {
		cell := rows[i][k]
		if text, is := want[field]; is && cell != text {
			t.Errorf("%s is %q, want %q", field, cell, text)
		} else if !is && !figure.MatchString(cell) {
			t.Errorf("%s is %q", field, cell)
		}
	}
}
