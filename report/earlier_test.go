package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	resultjson "tuner/report/json"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

// Every report counts the trials of earlier campaigns separately.
func TestReusedCampaigns(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8), analyze.Options{})
	r.Reused = []analyze.Reused{{From: "out/first", Created: time.Unix(0, 0).UTC(), Same: true, Trials: 41}, {From: "out/there", Trials: 1}}
	here := "Reused from out/first: 41 trials on this machine, to choose what to measure; no figure here includes them."
	there := "Reused from out/there: 1 trial on another machine, ONNX Runtime or protocol, for forecasts only; no figure here includes them."
	for name, write := range map[string]func(*bytes.Buffer) error{
		"table":    func(b *bytes.Buffer) error { return text.WriteTable(b, r) },
		"markdown": func(b *bytes.Buffer) error { return markdown.Write(b, r, false) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, here) || !strings.Contains(text, there) {
			t.Errorf("%s does not say what was reused:\n%s", name, b.String())
		}
	}
	var b bytes.Buffer
	if err := resultjson.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `"earlier": [ { "from": "out/first", "created": "1970-01-01T00:00:00Z", "same_machine": true, "trials": 41 },`
	if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, want) {
		t.Errorf("result.json lacks %s:\n%s", want, b.String())
	}
}
