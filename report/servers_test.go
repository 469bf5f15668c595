package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/journal"
	"tuner/measure"
	"tuner/search"
)

// Every report says which server was measured, and nothing of an ONNX Runtime that did not serve.
func TestServersAreNamed(t *testing.T) {
	t.Parallel()
	triton := &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver", Name: "triton", Version: "2.51.0"}
	remote := &journal.ServerInfo{Mode: "remote", Where: "gpu7:8001", Name: "triton", Version: "2.51.0"}
	bundled := &journal.ServerInfo{Mode: "bundled"}
	markdown := func(w io.Writer, r analyze.Result) error { return WriteMarkdown(w, r, false) }
	page := func(w io.Writer, r analyze.Result) error { return WriteHTML(w, r, false) }
	for _, c := range []struct {
		name           string
		server, finals *journal.ServerInfo
		write          func(io.Writer, analyze.Result) error
		want           []string
		never          string
	}{
		{"table", triton, nil, WriteTable, []string{"Measured on triton 2.51.0 (/opt/tritonserver)."}, "ONNX Runtime"},
		{"table of two", nil, triton, WriteTable,
			[]string{"Two servers: the search was measured on the bundled engine, what is confirmed on triton 2.51.0 (/opt/tritonserver)."}, "Measured on"},
		{"table of two, the other way round", triton, bundled, WriteTable, []string{"what is confirmed on the bundled engine"}, "Measured on"},
		{"table of finals on a server that runs already", triton, remote, WriteTable,
			[]string{"; measured again with the model loaded anew", "✓ measured again with the model loaded anew"}, "fresh process"},
		{"markdown", triton, nil, markdown, []string{"- server: triton 2.51.0 (/opt/tritonserver)\n"}, "ONNX Runtime"},
		{"markdown of two", nil, triton, markdown, []string{"- server: the bundled engine\n", "- server of the finals: triton 2.51.0", "- ONNX Runtime 1.31.1 (cpu)"}, "Measured on"},
		{"stages of two", nil, triton, markdown, []string{"Stage 1 by itself was measured on the bundled engine alone, and the best configuration on triton 2.51.0 " +
			"(/opt/tritonserver): their figures do not compare."}, "a larger budget measures it"},
		{"JSON", triton, nil, WriteJSON, []string{`"server": "triton 2.51.0 (/opt/tritonserver)"`, `"where": "/opt/tritonserver"`, `"runtimes": []`}, "bundled"},
		{"JSON of two", nil, triton, WriteJSON, []string{`"server": "the bundled engine"`, `"server": "triton 2.51.0 (/opt/tritonserver)"`, `"finals": {`}, "Measured on"},
		{"page", triton, nil, page, []string{">Measured on triton 2.51.0 (/opt/tritonserver).<"}, "Two servers"},
		{"page of two", nil, triton, page, []string{">Two servers: the search was measured on the bundled engine, what is confirmed on triton 2.51.0 (/opt/tritonserver)."}, "Measured on triton"},
		{"config", nil, triton, WriteConfig, []string{"seed 1, triton 2.51.0 (/opt/tritonserver), 2026-05-04"}, "ONNX Runtime"},
	} {
		b := typical(t).Campaign()
		b.Header.Server, b.Header.Finals = c.server, c.finals
		if c.server != nil {
			b.Header.Runtime = journal.RuntimeInfo{}
		}
		r, err := analyze.Analyze(b, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := c.write(&out, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(text, strings.TrimSpace(want)) {
				t.Errorf("%s: no %q in\n%s", c.name, want, out.String())
			}
		}
		if strings.Contains(text, c.never) {
			t.Errorf("%s: %q in\n%s", c.name, c.never, out.String())
		}
	}
}

// ofTwoServers is a campaign whose finals ran on another server; the default was confirmed there at one load, or not at all.
func ofTwoServers(t *testing.T, isDefaultConfirmed bool) analyze.Result {
	t.Helper()
	best := analyzetest.Candidate(2, 1, 16)
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8).Measure(analyzetest.Candidate(2, 1, 8), 8, 16).Measure(best, 8, 16).Confirm(best, 16)
	if isDefaultConfirmed {
		b.Confirm(search.Candidate{}, 8)
	}
	c := b.End("the space is exhausted", false).Campaign()
	c.Header.Finals = &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver", Name: "triton", Version: "2.51.0"}
	r, err := analyze.Analyze(c, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What charts and the table of stages put side by side is of one server: a curve of that which its configuration is ranked by, stages and
// breakdown of the best one's.
func TestChartsAreOfOneServer(t *testing.T) {
	t.Parallel()
	type shown struct{ Curve, Stage, Bars int } // points of the default
	pointsOf := func(r analyze.Result) (s shown) {
		base := r.Default()
		s.Curve, s.Bars = len(dots(r, base, level, quantityOf(measure.Throughput))), len(barsOf(r, base))
		s.Stage = len(stages(r)[0].config.Points)
		return s
	}
	confirmed, searched := ofTwoServers(t, true), ofTwoServers(t, false)
	one := confirmed
	one.Header.Finals = nil
	for _, test := range []struct {
		name   string
		result analyze.Result
		want   shown
	}{
		{"one server", one, shown{Curve: 2, Stage: 2, Bars: 2}},
		{"confirmed at 8", confirmed, shown{Curve: 1, Stage: 1, Bars: 1}},
		{"not confirmed", searched, shown{Curve: 2}},
	} {
		if got := pointsOf(test.result); got != test.want {
			t.Errorf("%s: the default has %+v points, want %+v", test.name, got, test.want)
		}
	}
	if got := paretoCurves(confirmed, quantityOf(measure.LatencyP99), quantityOf(measure.Throughput)); len(got) == 0 || got[0].look.radius == restLook.radius {
		t.Errorf("beside what was confirmed there are points of the search: %+v", got)
	}
	if s := stages(analyze.Result{}); len(s) != 1 {
		t.Errorf("of nothing there are %d stages", len(s))
	}
}

// A panel's name says whether its configuration is the best, or keeps no limits.
func TestPanelNames(t *testing.T) {
	t.Parallel()
	check := func(r analyze.Result, want string) {
		t.Helper()
		if got := panelName(r, r.Configs[0]); !strings.HasPrefix(got, want) {
			t.Errorf("the panel is named %q, want %q", got, want)
		}
	}
	check(ranked(t, typical(t), analyze.Options{}), "best: 2 instances")
	tuned := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 16).Measure(analyzetest.Candidate(2, 1, 16), 4)
	check(ranked(t, tuned, analyze.Options{Goal: tight()}), "nearest: 2 instances")
}
