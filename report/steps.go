package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tuner/analyze"
	"tuner/report/result"
	"tuner/steps"
)

// writeSteps writes the section of report.md on the steps of `tuner run`; none where the campaign was run by itself.
func writeSteps(b *strings.Builder, r analyze.Result) {
	if len(r.Steps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Steps\n\n%s", markdownTable(stepHeads, stepRows(r.Steps), nil))
}

var stepHeads = []string{"step", "name", "state", "what was done, or why not"}

// stepRows tell of all steps, also those that a run did not come to; there are none of a campaign that was run by itself.
func stepRows(list steps.List) [][]string {
	if len(list) == 0 {
		return nil
	}
	var cells [][]string
	for _, name := range steps.Names() {
		s, made := list.Get(name)
		if !made {
			s.State = "not made"
		}
		cells = append(cells, []string{fmt.Sprint(name.Number()), string(name), string(s.State), strings.Join(strings.Fields(s.Text), " ")})
	}
	return cells
}

// WriteSteps writes the report.md of a run of `tuner run` that ended before there was a campaign to report on: its steps alone.
func WriteSteps(dir, model string, list steps.List) error {
	return writeFile(filepath.Join(dir, markdownName), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "# %s: no result\n\nThe run ended before anything was measured.\n\n## Steps\n\n%s",
			escapeMarkdown(model), markdownTable(stepHeads, stepRows(list), nil))
		return err
	})
}

func newJSONSteps(list steps.List) []result.Step {
	var all []result.Step
	for _, s := range list {
		all = append(all, result.Step{Step: s.Name, State: s.State, Text: s.Text})
	}
	return all
}
