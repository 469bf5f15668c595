package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"tuner/internal/exit"
)

// usageArgs makes wrong arguments end the program with exit code 2.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.Usagef("%v\nSee '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// fileByFlag refuses arguments, and names the flag of a verb's file.
func fileByFlag(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: the file is given as -f %s", args[0], args[0])
	}
	return nil
}
