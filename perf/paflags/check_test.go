package paflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/perf"
	"tuner/runner/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		address string
		secure  bool
	}{
		"":                     {"localhost:8000", false},
		"host":                 {"host:8000", false},
		"host:9":               {"host:9", false},
		"http://host:9/":       {"host:9", false},
		"HTTPS://host":         {"host:8000", true},
		"10.0.0.1":             {"10.0.0.1:8000", false},
		"[::1]:9":              {"[::1]:9", false},
		"::1":                  {"[::1]:8000", false},
		"https://[fe80::1]:99": {"[fe80::1]:99", true},
	} {
		address, secure, err := parseURL(text, "8000")
		if err != nil || address != want.address || secure != want.secure {
			t.Errorf("%q: %q, %v, %v", text, address, secure, err)
		}
	}
	for _, text := range []string{"host:", "host:x", "host:99999", ":80", "ftp://host", "host/path", "host:80/v2"} {
		if address, _, err := parseURL(text, "8000"); err == nil {
			t.Errorf("%q: %q", text, address)
		}
	}
}

func TestParseLevels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]perf.Levels{
		"":        {Start: 1, End: 1, Step: 1},
		"4":       {Start: 4, End: 4, Step: 1},
		"1:8":     {Start: 1, End: 8, Step: 1},
		"1:8:2":   {Start: 1, End: 8, Step: 2},
		"2:0":     {Start: 2, Step: 1, Open: true},
		"10.5:11": {Start: 10.5, End: 11, Step: 1},
	} {
		if got, err := parseLevels("x", text, false); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "a", "1:", ":8", "8:1", "1:8:0", "1:2:3:4", "nan", "inf", "1:inf"} {
		if got, err := parseLevels("x", text, false); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseWith(t *testing.T) {
	t.Parallel()
	got, err := parseWith("bert:2,concurrency=3,batch=4,shape=ids:1,32,input-data=a.json,input-data=b.json,shape=mask:32")
	if err != nil || got.Model != "bert" || got.Version != "2" || got.Load != (measure.Load{Concurrency: 3, BatchSize: 4}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := cmp.Diff(map[string][]int64{"ids": {1, 32}, "mask": {32}}, got.Source.Shapes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a.json", "b.json"}, got.Source.Data); d != "" || got.Source.Batch != 4 {
		t.Error(d, got.Source.Batch)
	}
	for _, text := range []string{"", "concurrency=1", "m", "m,rate=0", "m,rate=x", "m,concurrency=1,rate=1", "m,concurrency=1,batch=0", "m,rate=1,shape=x"} {
		if got, err := parseWith(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseParameters(t *testing.T) {
	t.Parallel()
	got, err := parseParameters([]string{"a:1:int", "b:x:y:string", "c:true:bool"})
	want := []wire.Parameter{{Name: "a", Value: int64(1)}, {Name: "b", Value: "x:y"}, {Name: "c", Value: true}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseCPUs(t *testing.T) {
	t.Parallel()
	if got, err := parseCPUs("0-2,4"); err != nil || cmp.Diff([]int{0, 1, 2, 4}, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "a", "2-1", "1-", "-1", "0,,1"} {
		if got, err := parseCPUs(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// planOf reads a command line, and returns the plan with its warnings, or the mistakes.
func planOf(t *testing.T, arguments ...string) (Plan, []string, error) {
	t.Helper()
	var o Options
	f := pflag.NewFlagSet("perf", pflag.ContinueOnError)
	o.Add(f)
	if err := f.Parse(append([]string{"-m", "law"}, arguments...)); err != nil {
		t.Fatal(err)
	}
	return o.Check()
}

// settingsOf reads a command line, and returns the settings or the mistakes.
func settingsOf(t *testing.T, arguments ...string) (perf.Settings, string) {
	t.Helper()
	plan, _, err := planOf(t, arguments...)
	if err != nil {
		return plan.Settings, err.Error()
	}
	return plan.Settings, ""
}

// perf_analyzer's threads are the requests that may be in flight, so that others are sent late. Here
// they bound nothing, with any load, and that is said.
func TestThreadsBoundNothing(t *testing.T) {
	t.Parallel()
	intervals := filepath.Join(t.TempDir(), "intervals")
	if err := os.WriteFile(intervals, []byte("1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments string
		want      int
	}{
		{"", 4096},
		{"--async", 4096},
		{"--with other,rate=5", 4096},
		{"--request-rate-range 100", 4096},
		{"--request-rate-range 100 --async", 4096},
		{"--request-intervals " + intervals, 4096},
		{"--request-rate-range 100 --max-outstanding 7", 7},
	} {
		plan, warnings, err := planOf(t, append(strings.Fields(c.arguments), "--max-threads", "4")...)
		if err != nil || plan.MaxInFlight != c.want || len(warnings) != 1 || !strings.Contains(warnings[0], "--max-threads is ignored") {
			t.Errorf("%s: %d in flight, warnings %q, %v; want %d and a warning", c.arguments, plan.MaxInFlight, warnings, err, c.want)
		}
	}
}

// A flag that would change nothing is a mistake, or, if perf_analyzer takes it too, a warning.
func TestFlagsWithoutEffectAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ arguments, mistake, warning string }{
		{"--request-count 5", "", ""},
		{"--request-count 5 --stop stability", "--request-count: keep one of them", ""},
		{"--request-count 5 --precision 1%", "--request-count: keep one of them", ""},
		{"--request-count 5 --budget 5s", "--request-count: keep one of them", ""},
		{"--request-count 5 -s 10", "", "--stability-percentage is ignored with --request-count"},
		{"--request-count 5 -r 4", "", "--max-trials is ignored with --request-count"},
		{"--request-count 5 -p 500", "", "--measurement-interval is ignored with --request-count"},
		{"--request-count 5 -p 500 --with other,rate=5", "", ""}, // the other load has windows
		{"--request-count 5 --measurement-mode count_windows", "", "--measurement-mode is ignored with --request-count"},
		{"-p 500 --measurement-mode count_windows", "", "--measurement-interval is ignored with --measurement-mode count_windows"},
		{"-p 500", "", ""},
		{"-c 8", "-c 8 needs -d", "obsolete"},
		{"-d -c 8", "", "obsolete"},
		{"-t 2 -d -c 8", "", "obsolete"},
		{"-d -c 8 --concurrency-range 4", "--concurrency-range, --dynamic-concurrency: choose one of them", "obsolete"},
		{"-d -c 8 --request-rate-range 4", "--request-rate-range, --dynamic-concurrency: choose one of them", "obsolete"},
		{"-t 2 -d -c 8 --concurrency-range 4", "--concurrency-range, --concurrent-requests: choose one of them", "obsolete"},
	} {
		_, warnings, err := planOf(t, strings.Fields(c.arguments)...)
		mistake := ""
		if err != nil {
			mistake = err.Error()
		}
		if all := strings.Join(warnings, "\n"); !strings.Contains(mistake, c.mistake) || !strings.Contains(all, c.warning) ||
			(mistake == "") != (c.mistake == "") || len(warnings) > 1 || (all == "") != (c.warning == "") {
			t.Errorf("%s: mistake %q, warnings %q; want %q, %q", c.arguments, mistake, warnings, c.mistake, c.warning)
		}
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(trace, []byte("timestamp\n0\n1\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]arrivals.Pattern{
		"poisson":                        {},
		"{gamma: {cv: 2.5}}":             {Kind: arrivals.GammaKind, CV: 2.5},
		"{on_off: {on: 2s, off: 500ms}}": {Kind: arrivals.OnOffKind, On: 2 * time.Second, Off: 500 * time.Millisecond},
		"{curve: {0s: 1, 1m: 0}}":        {Kind: arrivals.CurveKind, Curve: []arrivals.Point{{At: 0, Factor: 1}, {At: time.Minute}}},
	} {
		s, mistake := settingsOf(t, "--request-rate-range", "50", "--arrivals", text)
		if diff := cmp.Diff(want, s.Arrivals); mistake != "" || diff != "" || s.Levels.Start != 50 {
			t.Errorf("%s: %s %s", text, mistake, diff)
		}
	}
	// three requests in 4.5 s, with the mean distance between the last and the first
	if s, mistake := settingsOf(t, "--arrivals", "{trace: "+trace+"}"); mistake != "" || s.Levels.Start != 0.666667 || s.Arrivals.Trace.Requests != 3 {
		t.Errorf("a trace at its own speed: %+v, %s", s.Levels, mistake)
	}
	if s, mistake := settingsOf(t, "--arrivals", "{trace: "+trace+"}", "--request-rate-range", "10"); mistake != "" || s.Levels.Start != 10 {
		t.Errorf("a trace at another rate: %+v, %s", s.Levels, mistake)
	}
}

func TestArrivalsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"bursty", "is not a pattern of arrivals; allowed: poisson, constant"},
		{"{gamma: {cv: 0}}", "must be a number above 0"},
		{"{gamma: {cv: .nan}}", "gamma.cv"},
		{"{gamma: {}}", "cv"},
		{"{on_off: {on: 2s}}", "off"},
		{"{on_off: {on: 2s, off: 48h}}", "is out of range"},
		{"{curve: {0s: 1, 0.5: 2}}", "is a duration without a unit"},
		{"{curve: {0s: 1, 1s: x}}", "is not a factor"},
		{"{curve: {0s: 0, 1s: 0}}", "no factor above 0"},
		{"{gamma: {cv: 2}, trace: x}", "names 2 patterns"},
		{"{trace: nosuch.csv}", `cannot read trace "nosuch.csv"`},
		{"[", "--arrivals"},
	} {
		if _, mistake := settingsOf(t, "--request-rate-range", "50", "--arrivals", c.text); !strings.Contains(mistake, c.want) || !strings.Contains(mistake, "--arrivals") {
			t.Errorf("%s gives %q, want %q", c.text, mistake, c.want)
		}
	}
	for want, arguments := range map[string][]string{
		"needs a mean rate":    {"--arrivals", "poisson"},
		"keep one of the two":  {"--arrivals", "poisson", "--request-rate-range", "5", "--request-distribution", "poisson"},
		"contradicts":          {"--arrivals", "poisson", "--concurrency-range", "5"},
		"span whole periods":   {"--arrivals", "{on_off: {on: 1s, off: 1s}}", "--request-rate-range", "5", "--measurement-mode", "count_windows"},
		"--arrivals has more":  {"--request-rate-range", "5", "--request-distribution", "gamma"},
		"--goodput 0s: the li": {"--goodput", "0s"},
	} {
		if _, mistake := settingsOf(t, arguments...); !strings.Contains(mistake, want) {
			t.Errorf("%q gives %q, want %q", arguments, mistake, want)
		}
	}
}
