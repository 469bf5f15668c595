package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"tuner/internal/buildfacts"
	"tuner/internal/cli/arguments"
)

// newVersion makes the verb that many users try first. --version prints the same.
func newVersion(con console) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Prints the version of this program and how it was built, as --version does.",
		Args:  arguments.Usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(con.out, buildfacts.Text())
			return err
		},
	})
}

// toolVersion names this build: the module's version, or its commit.
func toolVersion() string { return buildfacts.Version() }
