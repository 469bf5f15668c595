// Package adapting is what `tuner adapt` does: it reads a table of configurations, and steers a model on a
// running Triton by it.
package adapting

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"tuner/adaptive"
	"tuner/adaptive/steering"
	"tuner/adaptive/triton"
	"tuner/engine/api"
	"tuner/internal/cli/arguments"
	"tuner/internal/durable"
	"tuner/internal/exit"
)

// New returns the command, which writes to messages.
func New(messages io.Writer) *cobra.Command {
	url := "localhost:8000"
	cmd := &cobra.Command{
		Use:   "adapt TABLE",
		Short: "Change the configuration of a model on a running Triton with its load",
		Long: `Does on a Triton what 'tuner serve --adaptive' does by itself. It counts a model's requests each second. It loads the model with another
configuration of the table when that is certainly faster at this load. It changes nothing where the table says that changing does not pay.
TABLE is the file of 'tuner plan --format adaptive'. The server needs --model-control-mode=explicit, and --load-model for the model. The command runs
until it is interrupted, such as in the pod of the server. The model keeps the configuration that it has then.`,
		Example: "  tuner plan out/minilm --traffic week.csv --max-replicas 1 --format adaptive -o adaptive.json\n  tuner adapt adaptive.json --url localhost:8000",
		Args:    arguments.Usage(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), messages, args[0], url) },
	}
	cmd.Flags().StringVarP(&url, "url", "u", url, "`HOST:PORT` of the server's HTTP interface")
	return cmd
}

// run steers until ctx ends, or at once if changing does not pay.
func run(ctx context.Context, messages io.Writer, file, url string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return exit.Usagef("cannot read the table %q: %w", file, durable.Cause(err))
	}
	t, err := adaptive.Parse(file, text)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	server := triton.Open(url, api.Access{})
	defer server.Close()
	w, err := steering.New(ctx, server, &t, slog.New(slog.NewTextHandler(messages, nil)))
	if err != nil {
		return exit.OrInterrupted(ctx, err)
	}
	if w != nil {
		w.Run(ctx)
	}
	return nil
}
