package dryrun

import (
	"fmt"

	"tuner/internal/words"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Earlier is a campaign from which another one learns.
type Earlier struct {
	From   string `json:"from"`
	Same   bool   `json:"same_machine"`
	Trials int    `json:"trials"`
}

func earlierOf(list []search.Earlier) []Earlier {
	campaigns := []Earlier{}
	for _, e := range list {
		campaigns = append(campaigns, Earlier{e.From, e.Same, len(e.Events)})
	}
	return campaigns
}

// EarlierLines name the campaigns from which a search learns, and those that are given although its
// strategy does not learn.
func EarlierLines(p spec.Profile, earlier []search.Earlier) []string {
	var lines []string
	if strategy, _ := plan.Find(p.Search.Strategy); !strategy.Reuses {
		for _, path := range p.Search.Earlier {
			lines = append(lines, fmt.Sprintf("%s is not reused: the strategy %s does not learn from earlier campaigns", path, p.Search.Strategy))
		}
		return lines
	}
	for _, e := range earlier {
		trials := words.Count(len(e.Events), "trial")
		if e.Same {
			lines = append(lines, fmt.Sprintf("reusing %s of %s, measured on this machine", trials, e.From))
		} else {
			lines = append(lines, fmt.Sprintf("reusing %s of %s for forecasts alone: another machine, ONNX Runtime or protocol", trials, e.From))
		}
	}
	return lines
}
