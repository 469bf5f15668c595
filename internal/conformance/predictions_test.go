//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/load"
	"tuner/runner"
	"tuner/search/queuesim"
)

// looks is how often a prediction is compared with what is seen, at most: on a machine with neighbours, service times change from one
// second to the next. A simulation of another batcher than the engine's disagrees each time.
const looks = 4

// TestPredictionsOfModel is TestPredictions with the engine as users start it, over gRPC, and a model that computes for the same time
// whatever the batch. Nothing is simulated here but the prediction: client and engine share the machine.
func TestPredictionsOfModel(t *testing.T) {
	var models []Model
	add := func(name string, b queuesim.Batcher) {
		models = append(models, Model{Name: name, File: "constant_time", Versions: []string{"1"},
			Config: configuration(b, `input { name: "INPUT" data_type: TYPE_FP32 dims: [ 16 ] } output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 16 ] }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }`)})
	}
	curves := map[int]queuesim.Curve{} // by instances
	trial := func(instances int) string { return fmt.Sprintf("service_%d", instances) }
	for i, c := range predicted {
		add(fmt.Sprintf("predicted_%d", i), c.batcher)
		if _, there := curves[c.batcher.Instances]; !there {
			curves[c.batcher.Instances] = queuesim.Curve{}
			add(trial(c.batcher.Instances), queuesim.Batcher{Instances: c.batcher.Instances, MaxBatch: 16})
		}
	}
	serving := startModels(t, models)
	study := func(t *testing.T, b queuesim.Batcher) queuesim.Curve {
		return serviceCurve(t, serving(trial(b.Instances)), b, 300*time.Millisecond)
	}
	for i, c := range predicted {
		t.Run(c.name, func(t *testing.T) {
			curve := curves[c.batcher.Instances]
			for look := range looks {
				if look > 0 || len(curve.Sizes) == 0 {
					curve = study(t, c.batcher)
					curves[c.batcher.Instances] = curve
				}
				seen := watch(t, serving(fmt.Sprintf("predicted_%d", i)), c.load, time.Second)
				problems := disagreements(c.batcher, curve, c.load, seen)
				t.Logf("look %d: %+v, seen %+v: %q", look+1, curve, seen, problems)
				if len(problems) == 0 {
					return
				}
			}
			t.Errorf("prediction and engine disagree by more than %v in each of %d looks", agreement, looks)
		})
	}
}

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
				return func(context.Context, int) (load.Conn, error) {
					client, err := api.NewGRPC(e.GRPC)
					if err != nil {
						return nil, err
					}
					request, err := client.Encode(api.InferRequest{Model: name, Inputs: []api.Tensor{
						{Name: "INPUT", Datatype: "FP32", Shape: []int64{int64(rows), 16}, Data: make([]byte, rows*16*4)},
					}})
					if err != nil {
						return nil, err
					}
					return runner.NewConn(client, []*api.Encoded{request}), nil
				}
			},
		}
	}
}
