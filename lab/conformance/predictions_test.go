//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/measure/stats"
	"tuner/runner/load"
	"tuner/runner/wire"
	"tuner/search/queuesim"
)

// looks is the largest number of windows that are added until the median of all agrees with the
// prediction. Other work on the machine delays instances and clients.
const looks = 5

// TestPredictionsOfModel compares the simulation with the engine as users start it, over gRPC. The
// model computes for the same time at any batch size. That time is read from the same windows as
// the throughput. A machine's speed changes from one second to the next, and the test leaves it out.
func TestPredictionsOfModel(t *testing.T) {
	var models []Model
	for i, c := range predicted {
		models = append(models, Model{Name: modelOf(i), File: "slow_constant_time", Versions: []string{"1"},
			Config: configuration(c.batcher, `input { name: "INPUT" data_type: TYPE_FP32 dims: [ 16 ] } output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 16 ] }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }`)})
	}
	serving := startModels(t, models)
	for i, c := range predicted {
		t.Run(c.name, func(t *testing.T) {
			if c.batcher.Instances >= runtime.NumCPU() {
				t.Skip("the instances would share cores with the front end and the clients, of whose part the statistics do not tell")
			}
			var throughput, latency, batch []float64
			for range looks {
				for _, seen := range watch(t, serving(modelOf(i)), c.load, 2*time.Second) {
					curve := queuesim.ServiceCurve{Sizes: []int{1, 16}, Alone: []float64{seen.compute, seen.compute}, Overhead: seen.outside, Spread: 0.1}
					errors := relativeErrors(c.batcher, curve, c.load, seen)
					throughput = append(throughput, errors.throughput)
					latency = append(latency, errors.latency)
					batch = append(batch, errors.batch)
				}
				errors := deviations{stats.Median(throughput), stats.Median(latency), stats.Median(batch)}
				t.Logf("predictions are off by %+.3f", errors)
				if errors.agree() {
					return
				}
			}
			t.Errorf("prediction and engine disagree by more than %v", agreement)
		})
	}
}

// modelOf returns the name of the model with the configuration of a case.
func modelOf(i int) string { return fmt.Sprintf("predicted_%d", i) }

// startModels serves models until the test ends.
func startModels(t *testing.T, models []Model) func(name string) server {
	t.Helper()
	repository := t.TempDir()
	if err := WriteRepository(models, repository, environment(t, "TUNER_MODELS")); err != nil {
		t.Fatal(err)
	}
	e, err := find(t).StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, e)
	control, err := api.NewGRPC(e.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() })
	return func(name string) server {
		return server{
			statistics: func(ctx context.Context) (api.Statistics, error) { return control.Statistics(ctx, name) },
			dial: func(rows int) func(context.Context, int) (load.Conn, error) {
				target := wire.Target{Options: wire.Options{Address: e.GRPC, Protocol: wire.GRPC}}
				prepared, err := wire.Prepare(target.Options, api.InferRequest{Model: name, Inputs: []api.Tensor{
					{Name: "INPUT", Datatype: "FP32", Shape: []int64{int64(rows), 16}, Data: make([]byte, rows*16*4)},
				}}, wire.Format{}, nil)
				target.Requests = []*wire.Prepared{prepared}
				return func(ctx context.Context, _ int) (load.Conn, error) {
					if err != nil {
						return nil, err
					}
					return target.Dial(ctx, 0) // a connection for each request
				}
			},
		}
	}
}
