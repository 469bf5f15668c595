package report

import (
	"math"

	"tuner/analyze"
	"tuner/search/verdict"
)

// jsonAnswer is the head of all reports.
type jsonAnswer struct {
	State       verdict.State `json:"state"`
	Headline    string        `json:"headline"`
	Confidence  float64       `json:"confidence,omitempty"`  // that was asked for
	Probability *float64      `json:"probability,omitempty"` // that the best, or the nearest, keeps all constraints
	More        *float64      `json:"possible_gain,omitempty"`
	Lines       []jsonLine    `json:"lines"`
}

type jsonLine struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func newJSONAnswer(r analyze.Result) jsonAnswer {
	a := AnswerOf(r)
	j := jsonAnswer{State: a.State, Headline: a.Headline, Confidence: r.Verdict.Confidence, Lines: []jsonLine{}}
	if x, known := choiceOf(r, firstOf(r)); known && r.Recorded == "" {
		p := math.Round(x.Holds*1e4) / 1e4
		j.Probability = &p
	}
	if v, isPart := viewOf(r); !isPart && !math.IsInf(v.More, 1) {
		more := significant(v.More)
		j.More = &more
	}
	for _, l := range a.Lines {
		j.Lines = append(j.Lines, jsonLine(l))
	}
	return j
}
