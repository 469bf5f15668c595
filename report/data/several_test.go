package data

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/report/json"
	"tuner/report/reporttest"
	"tuner/report/result"
)

// The tables of several models have each model's knobs, load and figures under its name. CSV and Parquet
// have the same cells, and the figures are those of result.json.
func TestTablesOfSeveralModels(t *testing.T) {
	t.Parallel()
	r, err := analyze.Analyze(analyzetest.OfTwo(t).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tables() {
		rows := readCSV(t, r, name+".csv")
		fromParquet, _ := ofParquet(t, r, name+".parquet")
		if diff := cmp.Diff(rows, fromParquet); diff != "" {
			t.Errorf("%s: CSV and Parquet differ (-CSV +Parquet):\n%s", name, diff)
		}
	}
	d, err := result.Parse("result.json", []byte(reporttest.Written(t, r, json.Write)))
	if err != nil {
		t.Fatal(err)
	}
	best := d.Configurations[0]
	isFound := false
	for _, row := range readCSV(t, r, "points.csv") {
		if row["configuration"] != best.Name || row["ranks"] != "true" {
			continue
		}
		isFound = true
		for _, p := range best.Points {
			if p.Load != *best.BestLoad {
				continue
			}
			for metric, e := range p.Values {
				if metric != "scale" && row[string(metric)] != printed(e.Value) {
					t.Errorf("%s is %q, and %v in result.json", metric, row[string(metric)], e.Value)
				}
			}
		}
		// the best of OfTwo: two instances of each, a batch of 16, at scale 3 of 60 requests/s and a concurrency of 2
		for column, want := range map[string]string{
			"model": "encoder+ranker", "scale": "3", "encoder.request_rate": "180", "encoder.batch_size": "1", "ranker.concurrency": "6", "ranker.batch_size": "2",
			"knob_encoder.instance_count": "2", "knob_encoder.max_batch_size": "16", "knob_ranker.instance_count": "2", "knob_ranker.max_batch_size": "8",
			"encoder.concurrency": "", "ranker.request_rate": "", "concurrency": "", "knob_instance_count": "",
		} {
			if row[column] != want {
				t.Errorf("%s is %q, want %q", column, row[column], want)
			}
		}
	}
	if !isFound {
		t.Errorf("no row ranks %s", best.Name)
	}
}
