package planning

import (
	"io"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
)

// New returns the command. It writes to out, and messages to err.
func New(out, err io.Writer) *cobra.Command {
	o := Options{Out: out, Err: err}
	cmd := &cobra.Command{
		Use:   "plan RESULT… --traffic TRAFFIC",
		Short: "Find how many replicas a traffic needs, and their autoscaler",
		Long: `Finds the fleet that serves a traffic at the lowest cost while the requests keep a limit on their latency. The answer is a machine type, a
configuration, the number of replicas, and a HorizontalPodAutoscaler or KEDA's ScaledObject. The command simulates replicas behind a balancer, with the
measured service times and Kubernetes' autoscaling algorithm. It needs no cluster, and measures nothing unless --verify asks for it. A result is the output folder of an analyzed campaign, or its result.json.
Several results are of the same model on several types of machines.

` + trafficHelp + `

docs/how-to/plan.md explains the figures.`,
		Example: `  tuner plan out/minilm --traffic week.csv
  tuner plan out/minilm --traffic "peak 400/s, office hours" --price 0.357 --explain
  tuner plan out/c7i out/c7g --price c7i=0.357 --price c7g=0.29 --traffic week.csv --p99 50ms
  tuner plan out/minilm --traffic week.csv --verify
  tuner plan out/minilm --traffic week.csv --format autoscaler -o autoscaler.yaml`,
		Args: arguments.Usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return Run(cmd.Context(), o, args) },
	}
	o.Flags(cmd.Flags())
	return cmd
}
