package markdown

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/report/figures"
	"tuner/report/reporttest"
	"tuner/search"
)

func TestHostileTextStaysTextInMarkdown(t *testing.T) {
	t.Parallel()
	recorded, elsewhere := reporttest.Hostile(t), reporttest.Hostile(t)
	recorded.Recorded = reporttest.Evil
	elsewhere.StageElsewhere = true
	elsewhere.Header.Server = &journal.ServerInfo{Mode: "remote", Where: reporttest.Evil, Name: reporttest.Evil, Version: reporttest.Evil}
	elsewhere.Header.Finals = elsewhere.Header.Server
	text := ""
	for _, r := range []analyze.Result{reporttest.Hostile(t), recorded, elsewhere} {
		text += reporttest.Written(t, r, func(w io.Writer, r analyze.Result) error { return Write(w, r, true) })
	}
	inCode := func(line string) string { // code needs no escaping
		parts := strings.Split(strings.ReplaceAll(line, "\\`", ""), "`")
		if len(parts)%2 == 0 {
			t.Errorf("code does not end in its line: %s", line)
		}
		outside := ""
		for i := 0; i < len(parts); i += 2 {
			outside += parts[i]
		}
		return outside
	}
	if strings.ContainsAny(text, "\x1b\x07\u202e") {
		t.Errorf("characters that turn the direction of writing, or steer a terminal: %q", text)
	}
	for line := range strings.Lines(text) {
		outside := inCode(strings.TrimRight(line, "\n"))
		if strings.Contains(outside, "<") {
			t.Errorf("HTML: %s", line)
		}
		if strings.Contains(outside, "](javascript") {
			t.Errorf("a link: %s", line)
		}
		if strings.HasPrefix(line, "# heading") || strings.HasPrefix(line, "name:") {
			t.Errorf("text begins a line: %s", line)
		}
	}
}

// A run that ended before its campaign has a report.md with only the steps.
func TestWriteSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteSteps(dir, "net", steps.List{{Name: steps.Convert, State: steps.Failed, Text: "cannot export | net.pt"}}); err != nil {
		t.Fatal(err)
	}
	want := "# net: no result\n\nThe run ended before anything was measured.\n\n## Steps\n\n" +
		"| step | name | state | what was done, or why not |\n| --- | --- | --- | --- |\n| 1 | convert | failed | cannot export \\| net.pt |\n" +
		"| 2 | precision | not made |  |\n| 3 | accuracy check | not made |  |\n| 4 | configuration search | not made |  |\n" +
		"| 5 | optimized model | not made |  |\n| 6 | repository | not made |  |\n| 7 | chart | not made |  |\n"
	if text, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v; want %s alone", files, err, FileName)
	}
}

// A stage's gain is in the objective, a load's gain in throughput.
func TestGainsSayOfWhat(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "objective: throughput", "objective: latency_p99", 1)
	best := analyzetest.Candidate(2, 1, 16)
	r := reporttest.Ranked(t, analyzetest.New(t, profile).Measure(search.Candidate{}, 4, 8).Measure(best, 4, 8), analyze.Options{})
	var b strings.Builder
	writeStages(&b, r, false)
	for _, want := range []string{"| p99 | gain in p99 |", "after both stages (infer/s) | gain in throughput |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// A slow model's throughput has the digits that it has elsewhere.
func TestSlowThroughputAtALoad(t *testing.T) {
	t.Parallel()
	load := measure.Load{Concurrency: 1, BatchSize: 1}
	check := func(throughput float64, misses []search.Miss, want string) {
		t.Helper()
		point := analyze.Point{Sample: analyze.Sample{Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: throughput}}, Misses: misses}, Load: load}
		if got, ok := throughputAt(analyze.Config{Points: []analyze.Point{point}}, load); !ok || got.text != want {
			t.Errorf("%v: got %q, want %q", throughput, got.text, want)
		}
	}
	check(614.75, nil, "614.8")
	check(0.0456, nil, "0.0456")
	check(2.34, []search.Miss{{}}, "(2.34)")
}

// A table has its loads in one order, even with the several client batches of a recording.
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
	writeStageLoads(&b, []figures.Stage{{Title: "default", Config: c}})
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
