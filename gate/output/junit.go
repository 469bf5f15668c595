package output

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/words"
)

// The elements of JUnit's XML that CI systems read. There is no official schema. These are the
// fields that Jenkins, GitLab and the actions for GitHub share.
type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Errors   int        `xml:"errors,attr"`
	Time     string     `xml:"time,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Errors     int             `xml:"errors,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitOutcome `xml:"failure"`
	Skipped *junitOutcome `xml:"skipped"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
}

// WriteJUnit writes a test case for each criterion. An inconclusive criterion is skipped, or failed
// if the file says so. A gate that ended before it could judge has its own case.
func WriteJUnit(w io.Writer, r Report) error {
	var table strings.Builder
	if err := WriteTable(&table, r); err != nil {
		return err
	}
	suite := junitSuite{Name: "tuner gate: " + r.Setup.Spec.Name, Time: fmt.Sprintf("%.3f", r.Outcome.Elapsed.Seconds()),
		Timestamp: r.Time.UTC().Format("2006-01-02T15:04:05"), Properties: r.properties(), Cases: r.cases(), Out: table.String()}
	for _, c := range suite.Cases {
		suite.Tests++
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
	}
	all := junitSuites{Name: suite.Name, Tests: suite.Tests, Failures: suite.Failures, Skipped: suite.Skipped, Time: suite.Time, Suite: suite}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write JUnit XML: %w", err)
	}
	return write(w, "JUnit XML", xml.Header+string(text)+"\n")
}

func (r Report) properties() []junitProperty {
	list := []junitProperty{
		{"tool", r.Setup.Tool}, {"machine", r.Setup.Fingerprint}, {"load", r.Setup.LoadText()}, {"runtime", r.Setup.Candidate.Runtime},
	}
	for _, one := range r.Setup.Each() {
		name := "model_sha256"
		if len(r.Setup.Models) > 0 {
			name = one.Spec.Name + "." + name
		}
		list = append(list, junitProperty{name, one.Candidate.Files[0].Source.Digest})
	}
	if r.Revision != "" {
		list = append(list, junitProperty{"revision", r.Revision})
	}
	return list
}

func (r Report) cases() []junitCase {
	newCase := func(model, name string) junitCase { // a class for each of several models, so that CI systems show its verdict
		return junitCase{Class: strings.TrimSuffix("gate."+r.Setup.Spec.Name+"."+model, "."), Name: name, Time: fmt.Sprintf("%.3f", r.Outcome.Elapsed.Seconds())}
	}
	var list []junitCase
	told := r.Outcome.Verdict == decide.Pass // the cases of the criteria contain the verdict
	for _, row := range r.Rows {
		model, _ := row.Metric.Split()
		c := newCase(model, fmt.Sprintf("%s: %s", row.Metric, row.Tolerated()))
		switch row.Verdict {
		case decide.Fail:
			c.Failure, told = &junitOutcome{message(row), kind(row)}, true
		case decide.Inconclusive:
			c = r.undecided(c, "not decided: "+row.Interval(row.Standing))
			told = told || r.Outcome.Verdict == decide.Inconclusive
		case decide.Pass:
		}
		list = append(list, c)
	}
	for _, a := range r.Accuracy {
		c := newCase(a.Model, a.Name()+": "+a.Limit)
		if a.Miss != "" {
			c.Failure, told = &junitOutcome{a.Miss, "accuracy"}, true
		}
		list = append(list, c)
	}
	if !told || len(list) == 0 {
		model := ""
		if len(r.Outcome.Broken) > 0 {
			model = r.Outcome.Broken[0]
		}
		c, reasons := newCase(model, "measurement"), words.Shorten(strings.Join(r.Outcome.Reasons, "; "), longestReason)
		switch r.Outcome.Verdict {
		case decide.Fail:
			c.Failure = &junitOutcome{reasons, "measurement"}
		case decide.Inconclusive:
			c = r.undecided(c, reasons)
		case decide.Pass:
		}
		list = append(list, c)
	}
	return list
}

// undecided marks a case as not proven.
func (r Report) undecided(c junitCase, why string) junitCase {
	switch r.CountsAs(decide.Inconclusive) {
	case decide.Fail:
		c.Failure = &junitOutcome{why, "inconclusive"}
	case decide.Pass:
	case decide.Inconclusive:
		c.Skipped = &junitOutcome{Message: why}
	}
	return c
}

// message returns the figures of a failed row.
func message(row gate.Row) string {
	c := cells(row)
	if row.IsLimit() {
		return fmt.Sprintf("%s is %s (95 %%: %s), allowed is %s", c[0], c[2], c[4], c[5])
	}
	return fmt.Sprintf("%s: %s → %s, %s (95 %%: %s), allowed is %s", c[0], c[1], c[2], c[3], c[4], c[5])
}

// kind returns the kind of a failure.
func kind(row gate.Row) string {
	if row.IsLimit() {
		return "limit"
	}
	return "regression"
}
