package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"tuner/internal/cli/adapting"
	"tuner/internal/cli/planning"
)

// The groups of verbs in the help, by what a user wants.
const (
	start = "start"
	find  = "find"
	check = "check"
	ship  = "ship"
	setUp = "setup"
)

// groups lists the groups in the order of the help.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: start, Title: "Start here:"},
		{ID: find, Title: "Find the best configuration, step by step:"},
		{ID: check, Title: "Check what serves:"},
		{ID: ship, Title: "Convert, deploy and serve:"},
		{ID: setUp, Title: "Set up this machine:"},
	}
}

// verbs lists the verbs. The help sorts those of a group by name.
func verbs(con console) []*cobra.Command {
	return slices.Concat(
		grouped(start, newRun(con)),
		grouped(find, newInit(con), newProfile(con), newAnalyze(con), newFleet(con), newOrtsweep(con)),
		grouped(check, newPerf(con), newGate(con), newCompare(con)),
		grouped(ship, newConvert(con), newExport(con), verb(planning.New(con.out, con.err)), newServe(con), verb(adapting.New(con.err))),
		grouped(setUp, newDoctor(con), newMCP(con), newRuntime(con), newVersion(con)),
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
