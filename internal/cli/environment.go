package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tuner/internal/exit"
)

// variableOf is the environment variable of a flag: TUNER_IN_NAMES for --in-names.
func variableOf(flag string) string {
	return "TUNER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets flags that the command line does not give from their environment variables. It leaves out
// --ort-library: package ortlib reads TUNER_ORT_LIBRARY itself, where nothing else names a build. A bad value is a usage
// error that names the variable.
func fromEnvironment(cmd *cobra.Command) error {
	var failed error
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, set := os.LookupEnv(variableOf(f.Name))
		if f.Changed || !set || value == "" || failed != nil || f.Name == "ort-library" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			failed = exit.Usagef("environment variable %s: %v", variableOf(f.Name), err)
		}
	})
	return failed
}
