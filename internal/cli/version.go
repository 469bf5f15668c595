package cli

import (
	"fmt"
	"runtime/debug"

	"tuner/internal/cli/arguments"

	"github.com/spf13/cobra"
)

// newVersion makes the verb that many users try first. --version prints the same.
func newVersion(con console) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Prints the version of this program, as --version does.",
		Args:  arguments.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(con.out, "tuner version %s\n", cmd.Root().Version)
			return err
		},
	})
}

// toolVersion names this build: the module's version, or its commit.
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	if version == "" {
		return "devel"
	}
	return version
}
