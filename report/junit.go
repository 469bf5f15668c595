package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// The elements of junit.xml, as Jenkins and GitLab read them; there is no official schema.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"` // s
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes junit.xml: a test case for each constraint at the best configuration, or at the nearest where none satisfies them all; last the
// limit on failed requests that every goal has, which is skipped where an import does not tell it. Without a measurement there is one case, which fails.
func WriteJUnit(w io.Writer, r analyze.Result) error {
	h := r.Header
	suite := junitSuite{
		Name: "tuner " + h.Model, Time: seconds(r.Account.Elapsed), Timestamp: h.Created.UTC().Format("2006-01-02T15:04:05"),
		Properties: []junitProperty{{"model", h.Model}, {"goal", objectiveText(r.Goal.Objective) + within(r.Goal)}, {"tool", h.Tool},
			{"onnxruntime", runtimesText(h)}, {"machine", machineText(h.Machine)}, {"fingerprint", h.Fingerprint}, {"requests", requestsText(r)},
			{"summary", AnswerOf(r).Summary()}},
		Cases: junitCases(r),
	}
	suite.Tests = len(suite.Cases)
	for _, c := range suite.Cases {
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
	}
	_, err := io.WriteString(w, xml.Header)
	if err == nil {
		encoder := xml.NewEncoder(w)
		encoder.Indent("", "  ")
		err = encoder.Encode(junitSuites{Name: "tuner analyze", Tests: suite.Tests, Failures: suite.Failures, Suites: []junitSuite{suite}})
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

// junitCases judges the configuration that would be deployed.
func junitCases(r analyze.Result) []junitCase {
	if len(r.Configs) == 0 || r.Configs[0].Best == nil {
		return []junitCase{{Class: r.Header.Model, Name: "a configuration can be measured", Time: "0",
			Failure: &junitFailure{Message: AnswerOf(r).Headline, Type: "unmeasured"}}}
	}
	c := r.Configs[0]
	var limits []verdict.Limit
	if x, known := choiceOf(r, c); known {
		limits = x.Limits
	}
	var cases []junitCase
	for i, constraint := range r.Goal.Constraints {
		judged := junitCaseOf(r, c, constraint)
		if i < len(limits) && r.Recorded == "" {
			judged.judge(limits[i], cmp.Or(r.Verdict.Confidence, verdict.Confidence))
		}
		cases = append(cases, judged)
	}
	for _, miss := range c.Best.Misses {
		if miss.Constraint.Min == nil && miss.Constraint.Max == nil { // what the objective needs (search.Goal.Unscored)
			cases = append(cases, junitCaseOf(r, c, miss.Constraint))
		}
	}
	limit := search.MostErrors
	refused := junitCaseOf(r, c, search.Constraint{Metric: measure.ErrorRate, Max: &limit})
	if _, isTold := c.Best.Values[measure.ErrorRate]; r.Recorded != "" && !isTold {
		refused.Skipped = &junitSkipped{Message: "another program measured it, and does not tell how many requests failed"}
	}
	return append(cases, refused)
}

// junitCaseOf judges one constraint by whether the point misses it.
func junitCaseOf(r analyze.Result, c analyze.Config, constraint search.Constraint) junitCase {
	p := *c.Best
	judged := junitCase{Class: c.Name, Name: fmt.Sprintf("%s at %s", verdict.ConstraintText(constraint), p.Load), Time: "0"}
	if e, ok := p.Values[constraint.Metric]; ok {
		judged.Out = fmt.Sprintf("%s: %s is %s", nameAndSetup(r, c), verdict.Label(constraint.Metric), verdict.Interval(constraint.Metric, e))
	}
	for _, miss := range p.Misses {
		if miss.Constraint.Metric == constraint.Metric {
			judged.Failure = &junitFailure{Message: verdict.MissesText([]search.Miss{miss}), Type: "constraint", Text: judged.Out}
		}
	}
	return judged
}

// judge fails what the figure keeps, but not with the confidence that is asked for. What too few requests tell is skipped: neither its
// success nor its failure is known.
func (j *junitCase) judge(l verdict.Limit, confidence float64) {
	j.Out += fmt.Sprintf(", kept with probability %s", verdict.Percent(l.Probability))
	text := verdict.ConstraintText(l.Constraint)
	switch {
	case j.Failure != nil:
		j.Failure.Text = j.Out
	case l.IsUnknown():
		j.Skipped = &junitSkipped{Message: fmt.Sprintf("%s is not known: needs %s", text, count(l.Needs, "more request"))}
	case l.Probability < confidence:
		j.Failure = &junitFailure{Message: fmt.Sprintf("%s is kept with probability %s, and %s was asked for", text, verdict.Percent(l.Probability),
			verdict.Percent(confidence)), Type: "confidence", Text: j.Out}
	}
}
