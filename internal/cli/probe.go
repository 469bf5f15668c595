//go:build !noengine

package cli

import (
	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/ort/addon"
	probing "tuner/ort/provider/probe/child"
	"tuner/ort/sessionoption"
)

// newProbe is the hidden verb that other verbs start in a child process (package provider/probe).
// It prints a probe.Answer as JSON, also for a provider that fails.
func newProbe(con console) *cobra.Command {
	var library, provider, model string
	var beside addon.Libraries
	var o probing.Optimization
	cmd := &cobra.Command{
		Use:    "probe --library FILE [--provider NAME] [--model FILE] [--optimized FILE]",
		Short:  "Try whether an ONNX Runtime library and a provider work (used by doctor, profile and run)",
		Hidden: true,
		Args:   arguments.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.File != "" {
				return writeJSON(con.out, probing.Optimize(library, model, beside, o))
			}
			return writeJSON(con.out, probing.Try(cmd.Context(), library, provider, model, beside))
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "ONNX Runtime library")
	cmd.Flags().StringVar(&provider, "provider", "", "execution provider to create a session with; none: only open the library")
	cmd.Flags().StringVar(&model, "model", "", "model to create the session for; none: a tiny one, which is also run")
	cmd.Flags().StringVar(&beside.Provider, addon.ProviderFlag, "", "library with an execution provider")
	cmd.Flags().StringArrayVar(&beside.Operators, addon.OperatorFlag, nil, "library with operators of the model; may be repeated")
	cmd.Flags().StringVar(&o.File, "optimized", "", "file to write the optimized graph of the model to, instead")
	cmd.Flags().StringVar(&o.Level, "level", sessionoption.Of(sessionoption.GraphOptimization).Default, "level of graph_optimization for that")
	cmd.Flags().BoolVar(&o.External, "external", false, "write the weights into a file of their own")
	return cmd
}
