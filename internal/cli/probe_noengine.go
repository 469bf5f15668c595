//go:build noengine

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// newProbe reports that this build has no engine, so it cannot open ONNX Runtime.
func newProbe(console) *cobra.Command {
	return &cobra.Command{
		Use:                "probe",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this tuner was built without its serving engine (build tag noengine) and cannot open ONNX Runtime")
		},
	}
}
