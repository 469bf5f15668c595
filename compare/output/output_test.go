package output

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"tuner/compare"
	"tuner/measure"
)

// hostile is a name that a foreign file may have.
const hostile = "<script>alert(1)</script>\x1b[31m|\nrun: evil"

func comparison() compare.Comparison {
	of := func(name string, v float64) compare.Run {
		return compare.Run{Name: name, Kind: compare.Campaign, Model: hostile, Answer: hostile, Facts: map[string]string{hostile: name},
			Configurations: []compare.Configuration{{Name: hostile, Key: hostile, Description: strings.Repeat("long ", 40), Config: hostile + name, Points: []compare.Point{{
				Load: measure.Load{Concurrency: 123456}, Values: map[measure.Metric]compare.Figure{measure.Throughput: {Value: v, Lo: 0.99 * v, Hi: 1.01 * v}},
			}}}}}
	}
	return compare.Of([]compare.Run{of(strings.Repeat("a", 60), 123456), of(hostile, 1)}, measure.AssumedSpread)
}

func written(t *testing.T, write func(io.Writer, compare.Comparison) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b, comparison()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextFits80Columns(t *testing.T) {
	t.Parallel()
	text := written(t, WriteText)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, " \n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.ContainsRune(text, '\x1b') || !strings.Contains(text, "−100 %") {
		t.Error(text)
	}
}

// A run of a slower machine is explained in every form that people read.
func TestCommonChangeIsSaid(t *testing.T) {
	t.Parallel()
	run := func(name string, speed float64) compare.Run {
		r := compare.Run{Name: name, Kind: compare.Campaign, Facts: map[string]string{}}
		for _, key := range []string{"default", "instance_count=2"} {
			r.Configurations = append(r.Configurations, compare.Configuration{Name: key, Key: key, Description: key, Points: []compare.Point{{
				Load: measure.Load{Concurrency: 8}, Values: map[measure.Metric]compare.Figure{measure.Throughput: {Value: speed, Lo: 0.99 * speed, Hi: 1.01 * speed}},
			}}})
		}
		return r
	}
	c := compare.Of([]compare.Run{run("a", 100), run("b", 80)}, measure.AssumedSpread)
	for name, write := range map[string]func(io.Writer, compare.Comparison) error{"text": WriteText, "Markdown": WriteMarkdown, "HTML": WriteHTML} {
		var b strings.Builder
		if err := write(&b, c); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, "one common change of −20.0 %") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The load of several models is a scale. benchstat gets a line for each model, from figures of a campaign and from
// the pairs of a gate.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]string{
		"../../report/testdata/two.json": {
			`config_3 +3 × +18\.7 ms`,
			`/scale=3/model=encoder 1 1\.66131e\+07 ns/op 180 infer/s 1\.647e\+07 p50-ns 1\.86794e\+07 p99-ns\n`,
			`/scale=1\.5/model=ranker 1 `,
		},
		"../../gate/output/testdata/several.gate.json": {
			`candidate +1 × +52\.9 ms`,
			`\nBenchmarkCompare/config=candidate/scale=1/model=encoder 1 5\.29367e\+07 p99-ns\n`,
			`\nBenchmarkCompare/config=baseline/scale=1/model=ranker 1 900 infer/s\n`,
		},
	} {
		run, err := compare.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		c := compare.Of([]compare.Run{run, run}, measure.AssumedSpread)
		var b strings.Builder
		if err := errors.Join(WriteText(&b, c), WriteBenchstat(&b, c)); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range want {
			if !regexp.MustCompile(pattern).MatchString(b.String()) {
				t.Errorf("%s: nothing matches %s in\n%s", path, pattern, b.String())
			}
		}
		if regexp.MustCompile(` 0/s|/rate=`).MatchString(b.String()) {
			t.Errorf("%s: a scale is told as a rate:\n%s", path, b.String())
		}
	}
}

func TestHostileNamesAreText(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, compare.Comparison) error{"Markdown": WriteMarkdown, "HTML": WriteHTML} {
		if strings.Contains(written(t, write), "<script>alert") {
			t.Errorf("%s runs a name", name)
		}
	}
	if n := strings.Count(written(t, WriteBenchstat), "\nrun: "); n != 2 {
		t.Errorf("%d lines with a run, want 2", n)
	}
}

func TestPagesAskForNothing(t *testing.T) {
	t.Parallel()
	page := written(t, WriteHTML)
	if !strings.Contains(page, "default-src") || strings.Contains(page, "src=\"http") {
		t.Error("the page may send requests")
	}
	var index strings.Builder
	if err := WriteIndex(&index, hostile, []Entry{{Run: compare.Run{Name: hostile}, Link: "javascript:alert(1)"}}); err != nil {
		t.Fatal(err)
	}
	if got := index.String(); !strings.Contains(got, IndexMark) || strings.Contains(got, `href="javascript:`) {
		t.Error("the index has no mark, or runs a link")
	}
}
