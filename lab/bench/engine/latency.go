package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/lab/bench/sidebyside"
)

// latency compares the time that the servers add to a single inference. It is the client's median
// latency minus the mean time inside ONNX Runtime by the server's statistics.
func (b *bench) latency(ctx context.Context) (err error) {
	o := b.or(10, time.Second)
	if err := b.quantized(ctx); err != nil {
		return err
	}
	s := setting{Instances: 1, Threads: 1, MaxBatch: 16}
	c, err := b.serve(ctx, fileInt8, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	var lines []comparison
	var failed error
	for _, way := range []struct{ name, protocol string }{{"HTTP", sidebyside.HTTP}, {"gRPC", sidebyside.GRPC}} {
		rounds, err := c.alternate(ctx, o.rounds, b.perfAnalyzer(minilm, way.protocol, 1, o.window))
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", way.name, err))
			continue
		}
		lines = append(lines,
			comparison{way.name + ": added median latency" + disturbed(rounds), "µs", rounds, added, 1e6, "≤ 0.7"},
			comparison{way.name + ": added mean latency", "µs", rounds, addedMean, 1e6, ""},
			comparison{way.name + ": queue, input and output by the server's statistics", "µs", rounds, around, 1e6, ""},
			comparison{way.name + ": time inside ONNX Runtime", "µs", rounds, infer, 1e6, ""})
		fmt.Fprintf(b.messages, "latency: %s done\n", way.name)
	}
	return errors.Join(failed, b.report(fmt.Sprintf("### Latency: MiniLM int8, %v, concurrency 1, perf_analyzer", s), lines))
}

// disturbed prints the number of rounds in which the model's own time exceeded the latency, on
// either side. In these the figure is shortestAdded.
func disturbed(rounds []round) string {
	n := 0
	for _, r := range rounds {
		if min(added(r.Tuner), added(r.Triton)) == shortestAdded {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d rounds disturbed)", n, len(rounds))
}
