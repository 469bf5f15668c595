package onnxruntime_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tuner/engine"
	"tuner/engine/sequence"
	"tuner/internal/orttest"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx/build"
	"tuner/ort"
)

// detectorConfig is the configuration of build.StreamingDetector. lead is the batch dimension of the
// model, if it has one.
func detectorConfig(maxBatch int, strategy string) string {
	return fmt.Sprintf(`max_batch_size: %d
		input { name: "chunk" data_type: TYPE_FP32 dims: [ 16 ] } output { name: "probability" data_type: TYPE_FP32 dims: [ 1 ] }
		instance_group { count: 2 kind: KIND_CPU }
		parameters { key: "intra_op_thread_count" value: { string_value: "1" } }
		sequence_batching { %s state { input_name: "state" output_name: "next_state" data_type: TYPE_FP32 dims: [ 2, 8 ] } }`, maxBatch, strategy)
}

// chunk returns the samples of a step of a stream.
func chunk(stream, step int) []byte {
	random := rand.New(rand.NewPCG(uint64(stream), uint64(step)))
	var data []byte
	for range 16 {
		data = appendFloat(data, random.Float32()*2-1)
	}
	return data
}

func appendFloat(data []byte, v float32) []byte {
	b := math.Float32bits(v)
	return append(data, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
}

func floatOf(data []byte) float32 {
	return math.Float32frombits(uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24)
}

// evaluate runs the steps of a stream one after the other, without a server, and passes the state on.
func evaluate(t *testing.T, s *ort.Session, lead []int64, stream, steps int) []float32 {
	t.Helper()
	plan, err := s.NewPlan([]string{"probability", "next_state"})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	state := make([]byte, 2*8*4)
	var out []float32
	for step := range steps {
		if err := plan.Gather(0, append(slices.Clone(lead), 16), [][]byte{chunk(stream, step)}); err != nil {
			t.Fatal(err)
		}
		if err := plan.Gather(1, append(slices.Clone(lead), 2, 8), [][]byte{state}); err != nil {
			t.Fatal(err)
		}
		values, err := plan.Run()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, floatOf(values[0].Bytes()))
		copy(state, values[1].Bytes())
		for i := range values {
			values[i].Close()
		}
	}
	return out
}

// 24 clients each stream twenty chunks at once, through fewer slots than streams. Each probability is
// that of the stream alone, within the rounding of another batch size.
func TestStreamsKeepTheirStates(t *testing.T) {
	const streams, steps = 24, 20
	for name, tc := range map[string]struct {
		maxBatch int
		strategy string
	}{
		"direct":            {4, ``},
		"direct, delayed":   {4, `direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 0.75 }`},
		"oldest":            {4, `oldest { max_candidate_sequences: 8 max_queue_delay_microseconds: 200 }`},
		"without batches":   {0, ``},
		"oldest, unbatched": {0, `oldest { max_candidate_sequences: 3 }`},
	} {
		t.Run(name, func(t *testing.T) {
			m := build.StreamingDetector(tc.maxBatch > 0)
			s := serve(t, m, detectorConfig(tc.maxBatch, tc.strategy))
			direct, err := orttest.Runtime(t).NewSession(filepath.Join(s.dir, "1", "model.onnx"), ort.SessionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			var lead []int64
			if tc.maxBatch > 0 {
				lead = []int64{1}
			}
			want := make([][]float32, streams)
			for i := range want {
				want[i] = evaluate(t, direct, lead, i, steps)
			}
			var clients sync.WaitGroup
			for i := range want {
				clients.Go(func() {
					for step := range steps {
						got, err := sendChunk(t.Context(), s, lead, i, step, step == 0, step == steps-1)
						if err != nil {
							t.Errorf("stream %d, step %d: %v", i, step, err)
							return
						}
						if math.Abs(float64(got-want[i][step])) > 1e-5 {
							t.Errorf("stream %d, step %d: %v, want %v", i, step, got, want[i][step])
						}
					}
				})
			}
			clients.Wait()
			stats, err := s.server.Statistics(s.model, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := stats.ModelStats[0].InferenceCount; got != streams*steps {
				t.Errorf("%d inferences are counted, want %d", got, streams*steps)
			}
		})
	}
}

func sendChunk(ctx context.Context, s *served, lead []int64, stream, step int, start, end bool) (float32, error) {
	r, err := s.server.Infer(ctx, &engine.Request{
		Model: s.model, Sequence: sequence.ID{Number: uint64(stream + 1)}, Start: start, End: end,
		Inputs: []engine.Tensor{{Name: "chunk", DataType: configpb.DataType_TYPE_FP32, Shape: append(slices.Clone(lead), 16), Data: chunk(stream, step)}},
	})
	if err != nil {
		return 0, err
	}
	defer r.Release()
	if len(r.Outputs) != 1 {
		return 0, fmt.Errorf("%d outputs, want the probability alone", len(r.Outputs))
	}
	return floatOf(r.Outputs[0].Data), nil
}

// A reload of another configuration and an unload end the open sequences. A reload of the same does
// not. Requests that have been accepted are answered.
func TestReloadWithOpenSequences(t *testing.T) {
	s := serve(t, build.StreamingDetector(true), detectorConfig(4, ``))
	lead := []int64{1}
	send := func(step int, start bool) error {
		_, err := sendChunk(t.Context(), s, lead, 0, step, start, false)
		return err
	}
	notStarted := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "must specify the START flag") {
			t.Errorf("%s: %v, want that the sequence must start", what, err)
		}
	}
	if err := send(0, true); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Load(t.Context(), s.model, engine.Override{}); err != nil {
		t.Fatal(err)
	}
	if err := send(1, false); err != nil {
		t.Errorf("after a load of what serves: %v", err)
	}
	override := engine.Override{Config: `{"max_batch_size":4,"backend":"onnxruntime","input":[{"name":"chunk","data_type":"TYPE_FP32","dims":[16]}],"output":[{"name":"probability","data_type":"TYPE_FP32","dims":[1]}],
		"sequence_batching":{"oldest":{"max_candidate_sequences":2},"state":[{"input_name":"state","output_name":"next_state","data_type":"TYPE_FP32","dims":[2,8]}]}}`}
	if err := s.server.Load(t.Context(), s.model, override); err != nil {
		t.Fatal(err)
	}
	notStarted("after another configuration", send(2, false))
	if err := send(0, true); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Unload(s.model); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Load(t.Context(), s.model, engine.Override{}); err != nil {
		t.Fatal(err)
	}
	notStarted("after an unload", send(1, false))
}
