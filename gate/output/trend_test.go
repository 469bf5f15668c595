package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	markup "golang.org/x/net/html"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/webpage/webpagetest"
	"tuner/measure"
)

// withoutAssets removes style, script and their digests from a page. The rest changes with the
// content only, not with the design.
func withoutAssets(page []byte) []byte {
	for pattern, replacement := range map[string]string{
		`(?s)<style>.*</style>`: "<style></style>", `(?s)<script>"use strict";.*</script>`: "<script></script>", `sha256-\S+`: "sha256-…",
	} {
		page = regexp.MustCompile(pattern).ReplaceAll(page, []byte(replacement))
	}
	return page
}

// trendOf writes the page, and reads it as a browser does.
func trendOf(t *testing.T, r Report) (text string, root *markup.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTrend(&b, r); err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	webpagetest.CheckSelfContained(t, root)
	return b.String(), root
}

// find returns the first element with a name and an id; nil without one.
func find(root *markup.Node, name, id string) *markup.Node {
	for n := range root.Descendants() {
		if n.Type == markup.ElementNode && n.Data == name && slices.Contains(n.Attr, markup.Attribute{Key: "id", Val: id}) {
			return n
		}
	}
	return nil
}

// textOf returns all text of an element, with single spaces.
func textOf(n *markup.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == markup.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// dataOf reads the page's data.
func dataOf(t *testing.T, root *markup.Node, into any) {
	t.Helper()
	script := find(root, "script", "data")
	if script == nil {
		t.Fatal("the page carries no data")
	}
	if err := json.Unmarshal([]byte(script.FirstChild.Data), into); err != nil {
		t.Fatal(err)
	}
}

func TestTrendAssets(t *testing.T) {
	t.Parallel()
	s := trendSource()
	webpagetest.CheckAssets(t, assets, append(s.Scripts, s.Template, s.Style)...)
}

// The page has a chart for each metric, a row for each comparable gate with the latest first, and
// the same gates in the data.
func TestTrendHasEveryGate(t *testing.T) {
	t.Parallel()
	_, root := trendOf(t, newReport(t, decide.Fail, decide.Pass))
	for _, metric := range []string{"throughput", "latency_p99", "memory"} {
		if find(root, "figure", metric) == nil {
			t.Errorf("there is no chart of %s", metric)
		}
	}
	var data trendData
	dataOf(t, root, &data)
	if len(data.Metrics) != 3 || len(data.Gates) != 4 || data.Gates[3].Number != 4 || !data.Metrics[0].HigherBetter {
		t.Fatalf("%+v", data)
	}
	// verdicts of the gates; their lines have none for the throughput
	verdicts := []decide.Verdict{decide.Pass, decide.Pass, decide.Pass, decide.Fail}
	for i, rate := range []float64{205, 200, 202, 190} {
		if f := data.Gates[i].Metrics[measure.Throughput]; f.Candidate != rate || f.Verdict != verdicts[i] {
			t.Errorf("gate %d: %+v, want %g, %s", i+1, f, rate, verdicts[i])
		}
		if row := find(root, "tr", fmt.Sprintf("gate-%d", i+1)); row == nil || !strings.Contains(textOf(row), fmt.Sprintf("%.1f infer/s", rate)) {
			t.Errorf("the table has no row of gate %d", i+1)
		}
	}
	if got, want := textOf(find(root, "tr", "gate-4")),
		"4 2025-06-15 15:06 abc123 fail 10 190.0 infer/s 47.4 ms +5.1 % (+1.0 % to +16.2 %) 300 MB 290 MB to 310 MB 0123456789abcdef"; got != want {
		t.Errorf("the last gate's row is\n%s, want\n%s", got, want)
	}
	if find(root, "tr", "gate-5") != nil {
		t.Error("a gate at another load has a row")
	}
}

// Text of an engine, of a CI system and of a foreign history stays text. Invalid verdicts are not
// shown.
func TestTrendHostileText(t *testing.T) {
	t.Parallel()
	const hostile = `</script></td><script>pwned=1</script><img src=x onerror=pwned=1>'"<!--{{.}}` + "\u2028"
	r := newReport(t, decide.Fail, decide.Pass)
	r.Outcome.Reasons, r.Warnings = []string{hostile}, []string{hostile}
	for i := range r.History {
		record := &r.History[i]
		record.Revision, record.Fingerprint, record.Verdict = hostile, hostile, hostile
		record.Metrics = map[measure.Metric]gate.RecordFigure{measure.Throughput: {Candidate: 1, Verdict: hostile}, hostile: {}}
	}
	r.History[1].Metrics = nil
	text, root := trendOf(t, r)
	if strings.Contains(text, "<img") {
		t.Error("a text became an image")
	}
	var data trendData
	dataOf(t, root, &data)
	if g := data.Gates[3]; g.Revision != hostile || g.Verdict != decide.Inconclusive || g.Metrics[measure.Throughput].Verdict != decide.Inconclusive {
		t.Errorf("%+v", g)
	}
	if row := find(root, "tr", "gate-1"); row == nil || !strings.Contains(textOf(row), "inconclusive") {
		t.Error("the first gate has no row, or another verdict")
	}
}

// A long history is cut, and its numbering stays.
func TestTrendIsBounded(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Pass, decide.Pass)
	for len(r.History) < mostTrend+6 { // one of them is not comparable
		r.History = append(r.History, r.History[1])
	}
	_, root := trendOf(t, r)
	var data trendData
	dataOf(t, root, &data)
	if n := len(data.Gates); n != mostTrend || data.Gates[0].Number != 6 || data.Gates[n-1].Number != mostTrend+5 {
		t.Errorf("%d gates, from %d to %d", n, data.Gates[0].Number, data.Gates[n-1].Number)
	}
	if !strings.Contains(textOf(root), fmt.Sprintf("The latest %d; the history has 5 more", mostTrend)) {
		t.Error("the page does not say what it leaves out")
	}
}

func TestTrendOfNothing(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Pass, decide.Pass)
	r.History = nil
	if _, root := trendOf(t, r); !strings.Contains(textOf(root), "Nothing of this model was measured at this load yet.") {
		t.Error("the page does not say that the history is empty")
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for revision, want := range map[string]string{
		"": "", "abc123": "abc123", strings.Repeat("0af3", 10): "0af30af3", strings.Repeat("0af3", 16): "0af30af3", "release-2025.06-rc1-x86": "release-2025.06…",
		strings.Repeat("y", 40): strings.Repeat("y", 15) + "…",
	} {
		if got := label(revision); got != want {
			t.Errorf("%q is %q, want %q", revision, got, want)
		}
	}
}

// The documentation has every key of the page's data, which includes those of a history line.
func TestTrendFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	var doc string
	for _, page := range []string{"gate.md", "gate-results-fields.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", page))
		if err != nil {
			t.Fatal(err)
		}
		doc += string(text)
	}
	r := newReport(t, decide.Fail, decide.Pass)
	r.History = []gate.Record{gate.NewRecord(r.Result)}
	_, root := trendOf(t, r)
	var data any
	dataOf(t, root, &data)
	keys := keysOf(data)
	for _, m := range measure.Metrics() { // metric names are keys too
		delete(keys, string(m))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("the pages of the gate do not mention %q", key)
		}
	}
	if !keys["candidate_lo"] || !keys["margin"] {
		t.Errorf("the keys are %v", keys)
	}
}

// keysOf returns the keys of all objects in a JSON value.
func keysOf(v any) map[string]bool {
	keys := map[string]bool{}
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			keys[k] = true
			maps.Copy(keys, keysOf(inner))
		}
	case []any:
		for _, inner := range v {
			maps.Copy(keys, keysOf(inner))
		}
	}
	return keys
}

// Times are shown in UTC, for every time zone of the writer.
func TestTrendTimes(t *testing.T) {
	t.Parallel()
	r := newReport(t, decide.Pass, decide.Pass)
	for i := range r.History {
		r.History[i].Time = time.Date(2025, 6, 16, 1, 30, 0, 0, time.FixedZone("", 2*3600))
	}
	_, root := trendOf(t, r)
	var data trendData
	dataOf(t, root, &data)
	if diff := cmp.Diff("2025-06-15T23:30:00Z", data.Gates[0].Time.Format(time.RFC3339)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(textOf(find(root, "tr", "gate-1")), "2025-06-15 23:30") {
		t.Error("the table tells another time")
	}
}
