package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/doctor"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/ort/provider/probe"
)

func newDoctor(con console) *cobra.Command {
	var output, model string
	cmd := verb(&cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, and say how to fix what is missing",
		Long: `Shows what decides how a model can be served here: cores and quota, CPU features, memory, NUMA and GPUs. Measures how much other
processes disturb measurements. Lists the ONNX Runtime builds, and tries each of their execution providers. Each trial is a process
of its own, since a broken provider may crash.`,
		Example: "  tuner doctor\n  tuner doctor --model model.onnx\n  tuner doctor --format json",
		Args:    arguments.Usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), con, output, model) },
	})
	terminal.AddFormat(cmd.Flags(), &output, "`format` on stdout: text or json")
	cmd.Flags().StringVar(&model, "model", "", "ONNX `file` to try the providers on (default: a tiny model)")
	return cmd
}

func runDoctor(ctx context.Context, con console, output, model string) error {
	if err := arguments.CheckFormat(output); err != nil {
		return err
	}
	if _, err := os.Stat(model); model != "" && err != nil {
		return exit.Usagef("cannot read the model %q: %v", model, durable.Cause(err))
	}
	p, err := probe.New()
	if err != nil {
		return err
	}
	d, err := doctor.Diagnose(ctx, p.Try, model)
	if err != nil {
		return exit.OrInterrupted(ctx, exit.OfFiles(err))
	}
	if output == "json" {
		return writeJSON(con.out, d)
	}
	return doctor.Write(con.out, d)
}
