package json

import (
	"math"

	"tuner/analyze"
	"tuner/report/figures"
	"tuner/report/result"
)

func newAnswer(r analyze.Result, a figures.Answer) result.Answer {
	j := result.Answer{State: a.State, Headline: a.Headline, Confidence: r.Verdict.Confidence, Lines: []result.Line{}}
	if x, known := figures.ChoiceOf(r, figures.First(r)); known && r.Recorded == "" {
		p := math.Round(x.Holds*1e4) / 1e4
		j.Probability = &p
	}
	if v, isPart := figures.VerdictOf(r); !isPart && !math.IsInf(v.More, 1) {
		more := figures.Significant(v.More)
		j.More = &more
	}
	for _, share := range figures.SharesOf(r, figures.First(r)) {
		j.Models = append(j.Models, newShare(share))
	}
	for _, l := range a.Lines {
		j.Lines = append(j.Lines, result.Line(l))
	}
	return j
}
