package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// The groups of verbs in the help.
const (
	everyday = "everyday"
	advanced = "advanced"
	forCI    = "ci"
)

// groups lists the groups in the order of the help.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: everyday, Title: "Everyday commands:"},
		{ID: advanced, Title: "Advanced commands:"},
		{ID: forCI, Title: "Commands for CI:"},
	}
}

// verbs lists the verbs in the order in which a user meets them.
func verbs(con console) []*cobra.Command {
	return slices.Concat(
		grouped(everyday, newRun(con), newInit(con), newProfile(con), newAnalyze(con), newExport(con), newServe(con), newDoctor(con)),
		grouped(advanced, newConvert(con), newOrtsweep(con), newPerf(con), newRuntime(con)),
		grouped(forCI, newGate(con)),
		[]*cobra.Command{newProbe(con)}, // hidden
	)
}

// grouped puts commands into a group of the help.
func grouped(id string, list ...*cobra.Command) []*cobra.Command {
	for _, cmd := range list {
		cmd.GroupID = id
	}
	return list
}
