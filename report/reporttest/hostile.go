package reporttest

import (
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec/csvfiles"
)

// A YAML file, a model or an engine's log may contain these hostile texts. They have HTML, links,
// code, ends of lines and comments, terminal escapes, and spreadsheet formulas.
const (
	hostileHTML    = "<script>alert(1)</script><img src=x onerror=alert(1)>"
	hostileLink    = "[click](javascript:alert(1))"
	hostileLines   = "x\n# heading\nname: \"other\"\n"
	hostileEscape  = "\x1b]0;owned\x07\x1b[2J\u202e"
	HostileFormula = "=HYPERLINK(\"http://example.com\")"
)

// Evil combines all of them.
const Evil = hostileHTML + hostileLink + "`code`|cell|\\" + hostileEscape + hostileLines

// Hostile returns a result in which every name is hostile.
func Hostile(t *testing.T) analyze.Result {
	t.Helper()
	profile := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]",
		"intra_op_threads: [1, 2]\n  parameters: {evil: [\"a\", \"b\"]}", 1)
	c := analyzetest.Candidate(2, 1, 16).With("parameters.evil", search.Value(Evil))
	r := Ranked(t, analyzetest.New(t, profile).Measure(search.Candidate{}, 8).Measure(c, 16).
		Fail(analyzetest.Candidate(1, 1, 4), 8, measure.StageStart, Evil).End(Evil, true).Claim(Evil), analyze.Options{
		CSV: csvfiles.Files{Inference: csvfiles.File{Columns: []string{"model_name", "backend_parameter/evil", "backend_parameter/formula", "perf_throughput"}}}})
	for i := range r.Configs {
		if parameters := r.Configs[i].Deployed.GetParameters(); parameters["evil"] != nil {
			parameters["formula"] = parameters["evil"]
			parameters["formula"].StringValue = HostileFormula
		}
	}
	r.Header.Spec.Path, r.Header.Tool, r.Header.Fingerprint = Evil, Evil, Evil
	r.Header.Models = []journal.ModelFile{{Precision: Evil, Path: Evil, SHA256: Evil}}
	r.Header.Variants = []journal.Variant{{Precision: Evil, Notes: []string{Evil}, Rejected: map[string]string{Evil: Evil}, Kept: []journal.KeptNode{{Node: Evil}}}}
	r.Folds = []search.Fold{{Reason: Evil, Count: 1}}
	r.Reused = []analyze.Reused{{From: Evil}}
	r.Assigned = map[string]string{"cpu": Evil}
	return r
}
