package cli

import (
	"github.com/spf13/cobra"

	"tuner/internal/cli/fleets"
)

func newFleet(con console) *cobra.Command {
	cmd := fleets.New(fleets.Console{Out: con.out, Err: con.err, Version: toolVersion()})
	for _, c := range cmd.Commands() {
		verb(c)
	}
	return verb(cmd)
}
