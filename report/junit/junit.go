// Package junit writes junit.xml, with the constraints as test cases for CI systems. It takes all
// judgements from package search/verdict.
package junit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/report"
	"tuner/report/figures"
	"tuner/search"
	"tuner/search/verdict"
)

// FileName is the file's name in the output folder.
const FileName = "junit.xml"

// Format writes junit.xml.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return "junit" }

// Files implements report.Format.
func (Format) Files(r analyze.Result, _ report.Output) []report.File {
	return []report.File{{Path: FileName, Write: func(w io.Writer) error { return Write(w, r) }}}
}

// The elements of junit.xml as Jenkins and GitLab read them. There is no official schema.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	suite struct {
		Name       string     `xml:"name,attr"`
		Tests      int        `xml:"tests,attr"`
		Failures   int        `xml:"failures,attr"`
		Errors     int        `xml:"errors,attr"`
		Skipped    int        `xml:"skipped,attr"`
		Time       string     `xml:"time,attr"` // s
		Timestamp  string     `xml:"timestamp,attr"`
		Properties []property `xml:"properties>property"`
		Cases      []testCase `xml:"testcase"`
	}
	property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *failure `xml:"failure"`
		Skipped *skipped `xml:"skipped"`
		Out     string   `xml:"system-out,omitempty"`
	}
	failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	skipped struct {
		Message string `xml:"message,attr"`
	}
)

// Write writes junit.xml. Each constraint is a test case at the best configuration, or at the
// nearest if none satisfies them all. Several constraints are also one case together, since limits that are each kept surely
// enough may not be so together. The last case is the limit on failed requests that every goal
// has. It is skipped if an imported file does not have the failed requests. Without a measurement
// there is one case, which fails.
func Write(w io.Writer, r analyze.Result) error {
	h := r.Header
	judged := suite{
		Name: "tuner " + h.Model, Time: seconds(r.Account.Elapsed), Timestamp: h.Created.UTC().Format("2006-01-02T15:04:05"),
		Properties: []property{{"model", h.Model}, {"goal", figures.ObjectiveText(r.Goal.Objective) + figures.Within(r.Goal)}, {"tool", h.Tool},
			{"onnxruntime", figures.RuntimesText(h)}, {"machine", figures.MachineText(h.Machine)}, {"fingerprint", h.Fingerprint}, {"requests", figures.RequestsText(r)},
			{"summary", figures.AnswerOf(r).Summary()}},
		Cases: casesOf(r),
	}
	judged.Tests = len(judged.Cases)
	for _, c := range judged.Cases {
		if c.Failure != nil {
			judged.Failures++
		}
		if c.Skipped != nil {
			judged.Skipped++
		}
	}
	_, err := io.WriteString(w, xml.Header)
	if err == nil {
		encoder := xml.NewEncoder(w)
		encoder.Indent("", "  ")
		err = encoder.Encode(suites{Name: "tuner analyze", Tests: judged.Tests, Failures: judged.Failures, Suites: []suite{judged}})
	}
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	if err != nil {
		return fmt.Errorf("cannot write JUnit XML: %w", err)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// casesOf judges the configuration that would be deployed.
func casesOf(r analyze.Result) []testCase {
	if len(r.Configs) == 0 || r.Configs[0].Best == nil {
		return []testCase{{Class: r.Header.Model, Name: "a configuration can be measured", Time: "0",
			Failure: &failure{Message: figures.AnswerOf(r).Headline, Type: "unmeasured"}}}
	}
	c := r.Configs[0]
	x, known := figures.ChoiceOf(r, c)
	isJudged, confidence := known && r.Recorded == "", cmp.Or(r.Verdict.Confidence, verdict.Confidence)
	var cases []testCase
	for i, constraint := range r.Goal.Constraints {
		judged := caseOf(r, c, constraint)
		if isJudged && i < len(x.Limits) {
			judged.judge(x.Limits[i], confidence)
		}
		cases = append(cases, judged)
	}
	if isJudged && (len(x.Limits) > 1 || !x.MayLead()) {
		cases = append(cases, together(r, c, x, confidence))
	}
	for _, miss := range c.Best.Misses {
		if miss.Constraint.Min == nil && miss.Constraint.Max == nil { // the objective needs it (search.Goal.Unscored)
			cases = append(cases, caseOf(r, c, miss.Constraint))
		}
	}
	limit := search.MostErrors
	refused := caseOf(r, c, search.Constraint{Metric: measure.ErrorRate, Max: &limit})
	if _, isTold := c.Best.Values[measure.ErrorRate]; r.Recorded != "" && !isTold {
		refused.Skipped = &skipped{Message: "another program measured it, and does not report how many requests failed"}
	}
	return append(cases, refused)
}

// caseOf makes a test case of one constraint. It fails if the point misses the constraint.
func caseOf(r analyze.Result, c analyze.Config, constraint search.Constraint) testCase {
	p := *c.Best
	judged := testCase{Class: c.Name, Name: fmt.Sprintf("%s at %s", verdict.ConstraintText(constraint), p.Load), Time: "0"}
	if e, ok := p.Values[constraint.Metric]; ok {
		judged.Out = fmt.Sprintf("%s: %s is %s", figures.NameAndSetup(r, c), verdict.Label(constraint.Metric), verdict.Interval(constraint.Metric, e))
	}
	for _, miss := range p.Misses {
		if miss.Constraint.Metric == constraint.Metric {
			judged.Failure = &failure{Message: verdict.MissesText([]search.Miss{miss}), Type: "constraint", Text: judged.Out}
		}
	}
	return judged
}

// together makes the test case of all limits at once. It fails also if a choice may not be deployed, whatever it keeps.
func together(r analyze.Result, c analyze.Config, x verdict.Choice, confidence float64) testCase {
	judged := testCase{Class: c.Name, Name: fmt.Sprintf("all limits together at %s", x.Load), Time: "0", Out: figures.NameAndSetup(r, c) + ": all limits together"}
	if len(x.Misses) > 0 || !x.MayLead() {
		judged.Failure = &failure{Message: x.Shortfall(), Type: "constraint"}
	}
	unknown := ""
	if x.IsUnknown() {
		unknown = "a limit is not known"
	}
	judged.weigh("all limits together are", x.Holds, unknown, confidence)
	return judged
}

// judge weighs the probability of one limit.
func (j *testCase) judge(l verdict.Limit, confidence float64) {
	text, unknown := verdict.ConstraintText(l.Constraint), ""
	if l.IsUnknown() {
		unknown = fmt.Sprintf("%s is not known: it needs %s", text, words.Count(l.Needs, "more request"))
	}
	j.weigh(text+" is", l.Probability, unknown, confidence)
}

// weigh fails a case that is kept with less than the required confidence. It skips a case with too few requests, since the
// result is then unknown: unknown says so, and else is "". kept begins a sentence: "p99 ≤ 50 ms is".
func (j *testCase) weigh(kept string, probability float64, unknown string, confidence float64) {
	j.Out += fmt.Sprintf(", kept with probability %s", verdict.Percent(probability))
	switch {
	case j.Failure != nil:
		j.Failure.Text = j.Out
	case unknown != "":
		j.Skipped = &skipped{Message: unknown}
	case probability < confidence:
		j.Failure = &failure{Message: fmt.Sprintf("%s kept with probability %s, but %s is required", kept, verdict.Percent(probability),
			verdict.Percent(confidence)), Type: "confidence", Text: j.Out}
	}
}
