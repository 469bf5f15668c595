package planning

import (
	"fmt"

	"github.com/spf13/pflag"

	"tuner/capacity"
	"tuner/export/scaling"
	"tuner/internal/terminal"
	"tuner/search/queuesim"
)

// Flags defines the flags.
func (o *Options) Flags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&o.Traffic, "traffic", "", "the `traffic`: a file, a curve, or words")
	flags.DurationVar(&o.P99, "p99", 0, "`limit` that 99 % of the requests must keep (default: the result's own limit on a percentile)")
	flags.StringArrayVar(&o.Prices, "price", nil, "`price` of a replica per hour, or NAME=PRICE with the name of a result's folder; may be repeated (default: the result's)")
	flags.StringVar(&o.Autoscaler, "autoscaler", string(capacity.HPA), "what changes the number of replicas: hpa, keda or fixed")
	flags.StringVar(&o.Balancer, "balancer", string(queuesim.Random), "how requests are spread: random (a Service of Kubernetes), round_robin (gRPC clients) or least_requests (a mesh)")
	flags.DurationVar(&o.Startup, "startup", -1, fmt.Sprintf("`time` from the wish for a pod to its first request (default: the measured launch and %v)", capacity.PodOverhead))
	flags.Lookup("startup").DefValue = ""
	flags.DurationVar(&o.Window, "metric-window", capacity.DefaultWindow, "`time` over which the autoscaler's metric is a mean")
	flags.IntVar(&o.Min, "min-replicas", 1, "least `number` of replicas")
	flags.IntVar(&o.Max, "max-replicas", capacity.DefaultMax, "largest `number` of replicas")
	flags.BoolVar(&o.DefaultTolerance, "default-tolerance", false, "keep the autoscaler's tolerance of 10 %, for clusters before Kubernetes 1.35")
	flags.StringVar(&o.Name, "name", "", "`name` of the Deployment in the autoscaler (default: as 'tuner export' names it)")
	flags.StringVar(&o.Prometheus, "prometheus", scaling.DefaultPrometheus, "`address` of Prometheus, for KEDA")
	flags.BoolVar(&o.Verify, "verify", false, "replay a piece of the worst hour on servers of this machine, and compare the latencies with the simulated ones")
	flags.DurationVar(&o.Replay, "verify-time", DefaultReplay, "`time` of the replayed piece")
	flags.IntVar(&o.Engines, "verify-engines", 0, "`number` of servers of the replay (default: 2, or 3 where the machine has the cores)")
	flags.StringVar(&o.Server, "verify-server", "", "tritonserver's `program` for the replay (default: the bundled engine)")
	flags.StringVar(&o.ORTLibrary, "ort-library", "", "ONNX Runtime `library` of the replay, or flavour[@version] of an installed one (default: the campaign's)")
	flags.BoolVar(&o.Explain, "explain", false, "also show the configurations, the simulation beside what was measured, and what is assumed")
	terminal.AddFormat(flags, &o.Format, "`format` of the plan: text, markdown, json, autoscaler (the object's YAML), adaptive (the table of 'tuner serve --adaptive') or html (a page that answers other questions)")
	flags.StringVarP(&o.File, "output-file", "o", "", "`file` to write in place of stdout")
}
