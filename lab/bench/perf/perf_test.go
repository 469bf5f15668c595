package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/testserver"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/program"
)

const ms = 1e6 // ns

// entry is a request of one server, in ms.
func entry(arrival, begin, end int64) testserver.Entry {
	return testserver.Entry{Arrival: arrival * ms, Begin: begin * ms, End: end * ms, Written: end * ms}
}

func TestRecorded(t *testing.T) {
	t.Parallel()
	entries := []testserver.Entry{entry(0, 0, 100), entry(5, 100, 150), entry(100, 150, 200), entry(100, 200, 300)}
	got := recorded(entries, 150*ms, 300*ms) // those answered at 150 and 200: 145 ms and 100 ms in 150 ms
	if diff := cmp.Diff([]float64{0.1, 0.145}, got.latencies); diff != "" {
		t.Error(diff)
	}
	if math.Abs(got.rate-2/0.15) > 1e-9 || math.Abs(got.mean-0.1225) > 1e-12 || math.Abs(got.service-0.05) > 1e-12 {
		t.Errorf("rate %v, mean %v, service %v", got.rate, got.mean, got.service)
	}
}

func TestRecursed(t *testing.T) {
	t.Parallel()
	// Only the length of a service counts, not its recorded begin: the waits come from the
	// recursion.
	entries := []testserver.Entry{entry(40, 40, 60), entry(0, 0, 30), entry(10, 910, 930), entry(20, 50, 60)}
	// By arrival: the one at 0 takes 30 and waits 0; at 10: takes 20, waits 20; at 20: takes 10,
	// waits 30; at 40: takes 20, waits 20.
	got := recursed(entries, 0, 1000*ms)
	if diff := cmp.Diff([]float64{0.03, 0.04, 0.04, 0.04}, got.latencies); diff != "" {
		t.Error(diff)
	}
	if math.Abs(got.mean-got.service-0.0175) > 1e-12 { // waits 0, 20, 30, 20 ms
		t.Errorf("mean wait %v", got.mean-got.service)
	}
	// Requests before the window affect the waits of those in it.
	if got := recursed(entries[:2], 31*ms, 1000*ms); got.mean != 0.02 {
		t.Errorf("latency %v", got.mean)
	}
}

func TestDeviation(t *testing.T) {
	t.Parallel()
	r := truth{latencies: []float64{0.001, 0.002, 0.003, 0.004}}
	check := func(f figure, deviation float64, isClose bool, cell string) {
		t.Helper()
		if math.Abs(f.deviation()-deviation) > 1e-12 || f.isClose() != isClose || f.String() != cell {
			t.Errorf("%+v: deviation %v, close %v, cell %q; want %v, %v, %q", f, f.deviation(), f.isClose(), f.String(), deviation, isClose, cell)
		}
	}
	// The median has rank 2: with its neighbours, from 1 to 3 ms.
	check(percentile(0.0029, r, 0.5), 0, true, "2.900 (+0.00 %, +0.000 ms)")
	check(percentile(0.00305, r, 0.5), 0.00005, true, "3.050 (+2.50 %, +0.050 ms)")
	check(percentile(0.0004, r, 0.5), -0.0006, false, "**0.400 (-30.00 %, -0.600 ms)**")
	check(percentile(0.005, r, 0.99), 0.001, false, "**5.000 (+25.00 %, +1.000 ms)**")
	check(exact(101, 100, false), 1, true, "101 (+1.00 %)")
	check(exact(98, 100, false), -2, false, "**98.0 (-2.00 %)**")
	nothing := recorded(nil, 0, ms)
	for _, f := range []figure{percentile(0, nothing, 0.5), exact(0, nothing.mean, true), exact(5, nothing.rate, false)} {
		if f.isClose() {
			t.Errorf("%+v is close although nothing was answered", f)
		}
	}
}

func TestReadReport(t *testing.T) {
	t.Parallel()
	const heading = "Concurrency,Inferences/Second,Client Send,p50 latency,p90 latency,p95 latency,p99 latency,Avg latency\n"
	got, err := readReport(strings.NewReader(heading + "8,1234.5,3,1000,2000,3000,4000,1500\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (told{Rate: 1234.5, Mean: 0.0015, P50: 0.001, P95: 0.003, P99: 0.004}); !cmp.Equal(got, want, cmp.Comparer(near)) {
		t.Errorf("%+v, want %+v", got, want)
	}
	refuse := func(text, want string) {
		if _, err := readReport(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	refuse(heading, "it has 1 lines")
	refuse(heading+"8,x,3,1,2,3,4,5\n", `"Inferences/Second" is no number`)
	refuse("Concurrency,Inferences/Second\n1,2\n", "lacks one of")
	refuse("a,b\n1\n", "wrong number of fields")
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestReadEdges(t *testing.T) {
	t.Parallel()
	got, err := readEdges(strings.NewReader(`{"experiments":[{"experiment":{"mode":"concurrency","value":8},"requests":[{"timestamp":5}],"window_boundaries":[10,20,30,40]}],"version":"x"}`))
	if err != nil || got != [2]int64{10, 40} {
		t.Errorf("edges %v, error %v", got, err)
	}
	for _, text := range []string{"", "{}", `{"experiments":[{"window_boundaries":[10,20]}]}`} {
		if _, err := readEdges(strings.NewReader(text)); err == nil {
			t.Errorf("%q has edges", text)
		}
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	rate := func(v, others float64) cost { return cost{told: told{Rate: v}, Others: others} }
	pairs := []pair[cost]{{rate(300, 0.01), rate(100, 0)}, {rate(330, 0), rate(110, 0.04)}, {rate(200, 0), rate(100, 0.02)}}
	lines := []sidebyside.Line{compare("HTTP: rate, 16 in flight", "requests/s", 1, "≥ 3", pairs, func(c cost) float64 { return c.Rate })}
	var text, record strings.Builder
	b := &bench{tuner: sidebyside.Analyzer{Name: "tuner perf"}, analyzer: sidebyside.Analyzer{Name: "perf_analyzer"}, out: &text, record: &record}
	if err := b.table().Report("### Speed", lines); err != nil {
		t.Fatal(err)
	}
	// Ratios 3, 3, 2: Student's interval for ln 3, ln 3, ln 2 is 0.9635 ± 4.3027·0.2341/√3.
	const want = `
### Speed

| | tuner perf, median | perf_analyzer, median | ratio | 95 % interval | goal | rounds | foreign CPU, most |
|---|---|---|---|---|---|---|---|
| HTTP: rate, 16 in flight | 300 requests/s | 100 requests/s | **3.00** | 1.47–4.69 | ≥ 3 | 3 | 4 % |
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	if first, _, _ := strings.Cut(record.String(), "\n"); first != "BenchmarkPerf/HTTP:_rate_16_in_flight/side=tuner 1 300 requests/s" {
		t.Errorf("record %q", first)
	}
	b.out = brokenWriter{}
	if err := b.table().Report("", lines); err == nil {
		t.Error("no error although nothing could be written")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestParse(t *testing.T) {
	t.Parallel()
	refuse := func(want string, args ...string) {
		var messages strings.Builder
		if _, err := program.Parse(define, append([]string{"-tuner", "perf_test.go"}, args...), &messages); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
	refuse(`-what "all of it": allowed are closed, open, speed, pacing, replay, scale, all`, "-what", "all of it")
	refuse("unexpected argument", "more")
	refuse("at least 1 round", "-rounds", "0")
	refuse("cannot find", "-tuner", "nowhere")
	if o, err := program.Parse(define, []string{"-tuner", "perf_test.go"}, &strings.Builder{}); err != nil || o.rounds != 10 || o.orWindow(5) != 5 {
		t.Errorf("options %+v, error %v", o, err)
	}
}
