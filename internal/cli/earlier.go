package cli

import (
	"fmt"

	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// earlierCampaign is a campaign that another one learns from, as `tuner profile --dry-run --output json` prints it.
type earlierCampaign struct {
	From   string `json:"from"`
	Same   bool   `json:"same_machine"`
	Trials int    `json:"trials"`
}

func earlierCampaigns(list []search.Earlier) []earlierCampaign {
	campaigns := []earlierCampaign{}
	for _, e := range list {
		campaigns = append(campaigns, earlierCampaign{e.From, e.Same, len(e.Events)})
	}
	return campaigns
}

// earlierLines say for people what a campaign learns from, and what it was given in vain.
func earlierLines(p spec.Profile, campaigns []earlierCampaign) []string {
	var lines []string
	if !plan.Reuses(p.Search.Strategy) {
		for _, path := range p.Search.Earlier {
			lines = append(lines, fmt.Sprintf("%s is not reused: the strategy %s does not learn from earlier campaigns", path, p.Search.Strategy))
		}
		return lines
	}
	for _, c := range campaigns {
		trials := countText(c.Trials, "trial", "trials")
		if c.Same {
			lines = append(lines, fmt.Sprintf("reusing %s of %s, measured on this machine", trials, c.From))
		} else {
			lines = append(lines, fmt.Sprintf("reusing %s of %s for forecasts alone: another machine, ONNX Runtime or protocol", trials, c.From))
		}
	}
	return lines
}
