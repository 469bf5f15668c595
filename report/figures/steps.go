package figures

import (
	"fmt"
	"strings"

	"tuner/pipeline/steps"
)

// StepHeads are the columns of the table of steps.
var StepHeads = []string{"step", "name", "state", "what was done, or why not"}

// StepRows list all steps of `tuner run`, including those that the run did not reach. It is empty
// without a run.
func StepRows(list steps.List) [][]string {
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
