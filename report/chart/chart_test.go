package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/ort/sessionoption"
	"tuner/report"
	"tuner/report/figures"
	"tuner/report/reporttest"
	"tuner/search"
)

func TestChartsHaveSizeAndInk(t *testing.T) {
	t.Parallel()
	nothing := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).
		Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{})
	found := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	for name, test := range map[string]struct { // few cases: each takes seconds under the race detector
		result  analyze.Result
		write   func(io.Writer, analyze.Result) error
		color   color.RGBA
		colored bool
		height  int
	}{
		"latency":          {found, WriteLatency, palette[0], true, 1300},
		"stages":           {found, WriteStages, stageLooks[1].color, true, 1300},
		"pareto":           {found, WritePareto, frontLook.color, true, 1680},
		"breakdown":        {found, WriteBreakdown, plotstyle.Blue, true, 1300},
		"nothing measured": {nothing, WritePareto, frontLook.color, false, 1680},
	} {
		var b bytes.Buffer
		if err := test.write(&b, test.result); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		picture, err := png.Decode(&b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := picture.Bounds().Size(); got != (image.Point{X: 2000, Y: test.height}) {
			t.Errorf("%s: size is %v, want 2000 × %d", name, got, test.height)
		}
		ink, colored := inkOf(picture, test.color)
		if ink < 0.005 || ink > 0.5 {
			t.Errorf("%s: %.1f %% of the picture is not white", name, 100*ink)
		}
		if colored != test.colored {
			t.Errorf("%s: the curve's colour is there: %v, want %v", name, colored, test.colored)
		}
	}
}

// inkOf returns the share of dots that are not white. found tells whether a colour occurs.
func inkOf(picture image.Image, wanted color.RGBA) (share float64, found bool) {
	dots := image.NewRGBA(picture.Bounds())
	draw.Draw(dots, dots.Bounds(), picture, dots.Bounds().Min, draw.Src)
	ink := 0
	for at := 0; at < len(dots.Pix); at += 4 {
		c := color.RGBA{dots.Pix[at], dots.Pix[at+1], dots.Pix[at+2], dots.Pix[at+3]}
		if c != (color.RGBA{255, 255, 255, 255}) {
			ink++
		}
		found = found || c == wanted
	}
	return float64(ink) / float64(len(dots.Pix)/4), found
}

func TestTicks(t *testing.T) {
	t.Parallel()
	labels := func(a axis) string {
		var list []string
		for _, tick := range a.ticks {
			list = append(list, tick.Label)
		}
		return strings.Join(list, " ")
	}
	check := func(name, want, got string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: ticks are %q, want %q", name, got, want)
		}
	}
	check("doublings", "1 2 4 8 16 32 64", labels(logAxis("", [2]float64{1, 64}, doublingTicks)))
	check("one load still has neighbours", "2 4 8", labels(logAxis("", [2]float64{4, 4}, doublingTicks)))
	check("a short range has more", "15 20 30 50 70 100", labels(logAxis("", [2]float64{15, 100}, plotstyle.DecadeTicks)))
	check("decades", "5 10 20 50 100", labels(logAxis("", [2]float64{5, 120}, plotstyle.DecadeTicks)))
}

// TestPictures writes the charts to a folder for a visual check: TUNER_PICTURES=dir go test
// ./report/chart -run Pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("TUNER_PICTURES")
	if dir == "" {
		t.Skip("set TUNER_PICTURES to a folder to write the charts there and look at them")
	}
	many := func(n int) *analyzetest.Builder {
		b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 1, 2, 4, 8, 16)
		for i := range n - 1 { // in addition to the default
			b.Measure(analyzetest.Candidate(1+i%4, 1+i/4%3, []int{16, 8, 4, 2, 1}[i/12%5]), 1, 4, 8, 16, 32)
		}
		return b
	}
	long := analyzetest.Candidate(2, 1, 16).With(search.KnobMaxQueueDelay, "2000us").With(search.KnobExecutionProvider, "openvino").
		With(sessionoption.GraphOptimization, "extended").With(sessionoption.MemoryArena, "false")
	for name, r := range map[string]analyze.Result{
		"typical":    reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}),
		"variants":   reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}),
		"infeasible": reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}),
		"alone":      reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4), analyze.Options{}),
		"of 2":       reporttest.Ranked(t, many(2), analyze.Options{}),
		"of 10":      reporttest.Ranked(t, many(10), analyze.Options{}),
		"of 60":      reporttest.Ranked(t, many(60), analyze.Options{}),
		"long names": reporttest.Ranked(t, reporttest.Typical(t).Measure(long, 8, 24, 48), analyze.Options{}),
		"failed": reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).
			Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{}),
	} {
		for _, f := range (Format{}).Files(r, report.Output{}) {
			if err := report.WriteFile(filepath.Join(dir, name, filepath.Base(f.Path)), f.Write); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Charts and the table of stages compare points of one server only. A curve uses the server that
// ranks its configuration. Stages and breakdown use the best one's.
func TestChartsAreOfOneServer(t *testing.T) {
	t.Parallel()
	type shown struct{ Curve, Stage, Bars int } // points of the default
	pointsOf := func(r analyze.Result) (s shown) {
		base := r.Default()
		s.Curve, s.Bars = len(dots(r, base, level, figures.QuantityOf(measure.Throughput))), len(barsOf(r, base))
		s.Stage = len(figures.Stages(r)[0].Config.Points)
		return s
	}
	confirmed, searched := reporttest.OfTwoServers(t, true), reporttest.OfTwoServers(t, false)
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
	if got := paretoCurves(confirmed, figures.QuantityOf(measure.LatencyP99), figures.QuantityOf(measure.Throughput)); len(got) == 0 || got[0].look.radius == restLook.radius {
		t.Errorf("beside what was confirmed there are points of the search: %+v", got)
	}
	if s := figures.Stages(analyze.Result{}); len(s) != 1 {
		t.Errorf("of nothing there are %d stages", len(s))
	}
}

// A logarithmic axis has no place for 0, and its ticks would never end. Foreign records may hold one: the
// memory that Model Analyzer could not tell.
func TestZerosAreNotDrawn(t *testing.T) {
	t.Parallel()
	f := analyze.Front{Points: []analyze.FrontPoint{{Values: []float64{400, 0}}, {Values: []float64{300, 2e6}}, {Values: []float64{200, 1e6}}, {Values: []float64{0, 5e5}}}}
	got := stairs(f, figures.QuantityOf(measure.Memory), figures.QuantityOf(measure.Throughput))
	if diff := cmp.Diff([]dot{{x: 2, y: 300}, {x: 2, y: 200}, {x: 1, y: 200}}, got.points, cmp.AllowUnexported(dot{})); diff != "" {
		t.Errorf("the front (-want +got):\n%s", diff)
	}
	if at, ok := level(analyze.Point{}); ok {
		t.Errorf("a load of %v has a place", at)
	}
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	for i := range r.Fronts {
		for n := range r.Fronts[i].Points {
			r.Fronts[i].Points[n].Values = slices.Clone(r.Fronts[i].Points[n].Values)
		}
		if points := r.Fronts[i].Points; len(points) > 0 {
			values := points[len(points)-1].Values
			values[len(values)-1] = 0
		}
	}
	if err := WritePareto(io.Discard, r); err != nil {
		t.Error(err)
	}
}

// A panel's name tells whether its configuration is the best, or misses limits.
func TestPanelNames(t *testing.T) {
	t.Parallel()
	check := func(r analyze.Result, want string) {
		t.Helper()
		if got := panelName(r, r.Configs[0]); !strings.HasPrefix(got, want) {
			t.Errorf("the panel is named %q, want %q", got, want)
		}
	}
	check(reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), "best: 2 instances")
	tuned := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 16).Measure(analyzetest.Candidate(2, 1, 16), 4)
	check(reporttest.Ranked(t, tuned, analyze.Options{Goal: reporttest.Tight()}), "nearest: 2 instances")
}

func TestRising(t *testing.T) {
	t.Parallel()
	got := rising([]dot{{x: 3, y: 2}, {x: 1, y: 1}, {x: 2, y: 1}, {x: 5, y: 3}, {x: 4, y: 1.5}})
	want := []dot{{x: 1, y: 1}, {x: 3, y: 2}, {x: 5, y: 3}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(dot{})); diff != "" {
		t.Error(diff)
	}
}

// Several models have no largest batch in common, so a chart leaves it out.
func TestLegendOfSeveralModels(t *testing.T) {
	t.Parallel()
	r, err := analyze.Analyze(analyzetest.OfTwo(t).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range paretoLegend(r) {
		if strings.Contains(e.label, "no batching") {
			t.Errorf("the legend says %q", e.label)
		}
	}
	if text := figures.SetupText(r.Default().Setup); text != "2 instances" {
		t.Errorf("the setup is %q", text)
	}
}
