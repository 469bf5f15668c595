package output

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/perf"
)

// TestColumns compares the header with perf_analyzer's, in its order.
func TestColumns(t *testing.T) {
	t.Parallel()
	plain := closedSettings()
	bare := plain
	bare.Statistics, bare.Mode, bare.Percentile = false, perf.ModeIntervals, 99
	all := openSettings()
	all.Decoupled, all.Percentile = true, 0
	const server = "Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output,"
	for _, c := range []struct {
		name     string
		settings perf.Settings
		verbose  bool
		want     string
	}{
		{"plain", plain, false, "Concurrency,Inferences/Second,Client Send," + server + "Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n"},
		{"no statistics", bare, true, "Request Rate,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency,request/response,response wait\n"},
		{"everything", all, true, "Request Rate,Inferences/Second,Response Throughput,Client Send," + server + "Server Cache Hit,Server Cache Miss,Client Recv," +
			"p50 latency,p90 latency,p95 latency,p99 latency,Avg latency,request/response,response wait," +
			"Avg GPU Utilization,Avg GPU Power Usage,Max GPU Memory Usage,Total GPU Memory\n"},
	} {
		var b bytes.Buffer
		if err := CSV(&b, perf.Report{Settings: c.settings, Best: -1}, c.verbose); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s: header differs (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestRows checks that rows are in the order of throughput and have as many cells as the header. A
// failed level keeps its figures.
func TestRows(t *testing.T) {
	t.Parallel()
	fast, slow, failed, refused := closedLevel(), closedLevel(), failedLevel(), failedLevel()
	slow.Load.Concurrency = 1
	slow.Measurement.Windows = []measure.Window{window(0, 0, ladder(50*ms, ms, 4)...)}
	failed.Measurement.Windows = []measure.Window{window(0, 0, ladder(50*ms, ms, 7)...)}
	refused.Load.Concurrency = 16
	refused.Measurement.Windows = []measure.Window{{Duration: time.Second, Errors: 100, Sub: make([]measure.SubWindow, 10)}}
	var b bytes.Buffer
	r := perf.Report{Settings: closedSettings(), Levels: []perf.Level{fast, slow, failed, refused, failedLevel()}, Best: -1}
	if err := CSV(&b, r, true); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll() // refuses rows of unequal lengths
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows[1:] {
		got = append(got, row[0]+" "+row[1])
	}
	if diff := cmp.Diff([]string{"16 0", "1 35", "8 65", "4 95"}, got); diff != "" {
		t.Errorf("loads and throughputs differ (-want +got):\n%s", diff)
	}
	if rows[1][9] != "" {
		t.Errorf("a level without an answer has the median %q", rows[1][9])
	}
}

func TestComposingFile(t *testing.T) {
	t.Parallel()
	c := perf.Composing{Model: "encode", Version: "3"}
	for path, want := range map[string]string{"x.csv": "encode_v3.x.csv", "out/x.csv": "out/encode_v3.x.csv"} {
		if got := ComposingFile(path, c); got != want {
			t.Errorf("beside %s is %s, want %s", path, got, want)
		}
	}
}

// The documentation names every column that a CSV file may have.
func TestColumnsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "perf.md"))
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, mode := range []perf.Mode{perf.ModeConcurrency, perf.ModeIntervals} {
		titles = append(titles, csvHeader(perf.Settings{Mode: mode, Decoupled: true, Statistics: true, Cache: true, Metrics: true}, true)...)
	}
	for _, title := range titles {
		isBetween := slices.Contains([]string{"p90 latency", "p95 latency"}, title) // the page names the first and the last percentile
		if !isBetween && !strings.Contains(string(doc), "`"+title+"`") {
			t.Errorf("the page does not name the column %q", title)
		}
	}
}
