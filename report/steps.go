package report

import (
	"fmt"
	"strings"

	"tuner/analyze"
	"tuner/steps"
)

// writeSteps writes the section of report.md on the steps of `tuner run`; none where the campaign was run by itself.
func writeSteps(b *strings.Builder, r analyze.Result) {
	if len(r.Steps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Steps\n\n")
	var cells [][]string
	for _, s := range r.Steps {
		cells = append(cells, []string{fmt.Sprint(s.Name.Number()), string(s.Name), string(s.State), strings.Join(strings.Fields(s.Text), " ")})
	}
	b.WriteString(markdownTable([]string{"step", "name", "state", "what was done, or why not"}, cells, nil))
}

// jsonStep is a step of `tuner run` in result.json.
type jsonStep struct {
	Step  steps.Name  `json:"step"`
	State steps.State `json:"state"`
	Text  string      `json:"text"`
}

func newJSONSteps(list steps.List) []jsonStep {
	var all []jsonStep
	for _, s := range list {
		all = append(all, jsonStep{s.Name, s.State, s.Text})
	}
	return all
}
