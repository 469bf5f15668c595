//go:build noengine

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// newServe reports that this build has no engine.
func newServe(console) *cobra.Command {
	return verb(&cobra.Command{
		Use:                "serve",
		Short:              "Serve models (left out of this build)",
		Long:               "This tuner was built without its serving engine (build tag noengine).",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this tuner was built without its serving engine (build tag noengine): use another build, or a server of the same protocol")
		},
	})
}
