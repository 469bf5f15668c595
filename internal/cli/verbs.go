package cli

import "github.com/spf13/cobra"

// verbs lists the verbs in the order in which a user meets them.
func verbs(con console) []*cobra.Command {
	return []*cobra.Command{
		newInit(con),
		newProfile(con),
		newAnalyze(con),
		newRun(con),
		newOrtsweep(con),
		newConvert(con),
		newServe(con),
		newPerf(con),
		newGate(con),
		newExport(con),
		newDoctor(con),
		newRuntime(con),
		newProbe(con),
	}
}
