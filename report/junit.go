package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
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
			{"onnxruntime", runtimesText(h)}, {"machine", machineText(h.Machine)}, {"fingerprint", h.Fingerprint}, {"requests", requestsText(r)}, {"summary", headline(r)}},
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
			Failure: &junitFailure{Message: headline(r), Type: "unmeasured"}}}
	}
	c := r.Configs[0]
	var cases []junitCase
	for i, constraint := range r.Goal.Constraints {
		certainty := ""
		if i < len(c.Best.Chances) { // else another program measured it
			certainty = fmt.Sprintf(", kept with probability %s", chanceText(c.Best.Chances[i].Probability))
		}
		cases = append(cases, junitCaseOf(c, constraint, certainty))
	}
	for _, miss := range c.Best.Misses {
		if miss.Constraint.Min == nil && miss.Constraint.Max == nil { // what the objective needs (search.Goal.Unscored)
			cases = append(cases, junitCaseOf(c, miss.Constraint, ""))
		}
	}
	limit := search.MostErrors
	refused := junitCaseOf(c, search.Constraint{Metric: measure.ErrorRate, Max: &limit}, "")
	if _, isTold := c.Best.Values[measure.ErrorRate]; r.Recorded != "" && !isTold {
		refused.Skipped = &junitSkipped{Message: "another program measured it, and does not tell how many requests failed"}
	}
	return append(cases, refused)
}

// junitCaseOf judges one constraint by whether the point misses it.
func junitCaseOf(c analyze.Config, constraint search.Constraint, certainty string) junitCase {
	p := *c.Best
	judged := junitCase{Class: c.Name, Name: fmt.Sprintf("%s at %s", constraintText(constraint), p.Load), Time: "0"}
	if e, ok := p.Values[constraint.Metric]; ok {
		m := constraint.Metric
		judged.Out = fmt.Sprintf("%s: %s is %s [%s, %s]%s", nameAndSetup(c), m, m.Format(e.Value), m.Format(e.Lo), m.Format(e.Hi), certainty)
	}
	for _, miss := range p.Misses {
		if miss.Constraint.Metric == constraint.Metric {
			judged.Failure = &junitFailure{Message: miss.String(), Type: "constraint", Text: judged.Out}
		}
	}
	return judged
}
