package arguments

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tuner/internal/exit"
)

// variableOf returns the environment variable of a flag: TUNER_IN_NAMES for --in-names.
func variableOf(flag string) string {
	return "TUNER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FromEnvironment sets flags that are not on the command line from their environment variables. It
// omits --ort-library: package ortlib reads TUNER_ORT_LIBRARY itself, if nothing else names a
// build. A bad value is a usage error that names the variable.
func FromEnvironment(cmd *cobra.Command) error {
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
