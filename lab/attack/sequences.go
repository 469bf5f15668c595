package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
	"tuner/model/onnx/build"
)

// openOnes sequences are open at the same time.
const openOnes = 100_000

// sequences: a great many that are begun, and not ended.
func sequences() []attack {
	return []attack{
		{"C5", "100,000 open sequences that wait for one slot", "each waits or is refused, others are served meanwhile within 1 GiB, the queue is empty 20 s after they are cancelled", waitingSequences},
		{"C5", "100,000 open sequences with a slot each, two requests to each", "each answer is the sum of its sequence, others are served meanwhile, memory bounded", servedSequences},
		{"C5", "2,147,483,647 slots, states of 2^62 bytes", "refused, others are served", hugeSlots},
	}
}

// accumulates configures a model that answers the sum of a sequence's inputs.
func accumulates(strategy string) string {
	return `max_batch_size: 64
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  control_input [ { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "SUM" output_name: "NEXT_SUM" data_type: TYPE_INT32 dims: [ 1 ] initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]
  ` + strategy + "\n}\n"
}

// step is a request of a sequence.
func step(id int64, start bool, value byte) *pb.ModelInferRequest {
	m := message("sum", "INPUT", "INT32", []int64{1, 1}, []byte{value, 0, 0, 0})
	m.Parameters = map[string]*pb.InferParameter{
		"sequence_id": {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: id}}, "sequence_start": {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: start}},
	}
	return m
}

// summing serves the model sum with a strategy, and simple.
func (s *scene) summing(ctx context.Context, limits, strategy string) (*server, error) {
	if err := errors.Join(s.add("simple", "simple", ""), s.put("sum", marshal(build.Accumulator()), accumulates(strategy))); err != nil {
		return nil, err
	}
	return s.serve(ctx, limits, []string{"simple", "sum"})
}

// waitingSequences opens sequences by requests that wait. A connection has 16,384 calls at most.
func waitingSequences(ctx context.Context, s *scene) (string, error) {
	limits, err := s.pod()
	if err != nil {
		return "", err
	}
	v, err := s.summing(ctx, limits, "oldest { max_candidate_sequences: 1 }")
	if err != nil {
		return "", err
	}
	const connections = 10
	var refused, settled atomic.Int64
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	var calls errgroup.Group
	for i := range connections {
		conn, err := dialGRPC(v.at.GRPC)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		client := pb.NewGRPCInferenceServiceClient(conn)
		for k := range openOnes / connections {
			calls.Go(func() error {
				_, err := client.ModelInfer(life, step(int64(1+i*openOnes/connections+k), true, 1))
				switch status.Code(err) {
				case codes.OK:
					settled.Add(1)
				case codes.ResourceExhausted, codes.Unavailable: // refused, or its connection was closed
					settled.Add(1)
					refused.Add(1)
				case codes.Canceled:
				default:
					return err
				}
				return nil
			})
		}
	}
	var over atomic.Bool
	var others errgroup.Group
	longest := time.Duration(0)
	others.Go(func() (err error) {
		_, longest, err = v.steady(ctx, &over)
		return err
	})
	waiting := 0
	for err == nil && waiting+int(settled.Load()) < openOnes {
		time.Sleep(100 * time.Millisecond)
		waiting, err = v.pending(ctx, "sum")
	}
	seen, errBound := v.bounded(podMemory)
	over.Store(true)
	cancel()
	if err := errors.Join(err, errBound, others.Wait(), calls.Wait()); err != nil {
		return "", err
	}
	empty, err := v.drains(ctx, "sum", 20*time.Second)
	return fmt.Sprintf("%d wait, %d refused, %s, others' longest answer after %v, %s", waiting, refused.Load(), seen, longest.Round(time.Millisecond), empty), err
}

// servedSequences opens sequences that have a slot each.
func servedSequences(ctx context.Context, s *scene) (string, error) {
	v, err := s.summing(ctx, "", fmt.Sprintf("oldest { max_candidate_sequences: %d }", openOnes))
	if err != nil {
		return "", err
	}
	var over atomic.Bool
	var others, clients errgroup.Group
	others.Go(func() error {
		_, _, err := v.steady(ctx, &over)
		return err
	})
	const streams = 20
	for i := range int64(streams) {
		clients.Go(func() error {
			conn, err := dialGRPC(v.at.GRPC)
			if err != nil {
				return err
			}
			defer conn.Close()
			client := pb.NewGRPCInferenceServiceClient(conn)
			for round, sum := range []byte{3, 10} {
				for id := i + 1; id <= openOnes; id += streams {
					answer, err := client.ModelInfer(ctx, step(id, round == 0, []byte{3, 7}[round]))
					if err != nil {
						return fmt.Errorf("sequence %d, request %d: %w", id, round+1, err)
					}
					if got := answer.GetRawOutputContents(); len(got) != 1 || len(got[0]) != 4 || got[0][0] != sum {
						return fmt.Errorf("sequence %d, request %d: the sum is %v, not %d", id, round+1, got, sum)
					}
				}
			}
			return nil
		})
	}
	err = clients.Wait()
	over.Store(true)
	if err := errors.Join(err, others.Wait(), v.serves(ctx)); err != nil {
		return "", err
	}
	seen, err := v.bounded(1 << 30)
	return fmt.Sprintf("%d right sums, %s", 2*openOnes, seen), err
}

func hugeSlots(ctx context.Context, s *scene) (string, error) {
	v, err := s.summing(ctx, "", "direct { }")
	if err != nil {
		return "", err
	}
	config := func(slots int64, dims, width string) string {
		return fmt.Sprintf(`{"backend":"onnxruntime","max_batch_size":64,"input":[{"name":"INPUT","data_type":"TYPE_INT32","dims":[1]}],"output":[{"name":"OUTPUT","data_type":"TYPE_INT32","dims":[1]}],`+
			`"sequence_batching":{"oldest":{"max_candidate_sequences":%d},"control_input":[{"name":"READY","control":[{"kind":"CONTROL_SEQUENCE_READY","int32_false_true":[0,1]}]}],`+
			`"state":[{"input_name":"SUM","output_name":"NEXT_SUM","data_type":"TYPE_INT32","dims":%s,"initial_state":[{"name":"zero","data_type":"TYPE_INT32","dims":%s,"zero_data":true}]}]}}`, slots, dims, width)
	}
	for _, c := range []string{config(1<<31-1, "[1]", "[1]"), config(2<<20, "[1]", "[1]"), config(4, "[4611686018427387904]", "[4611686018427387904]"),
		config(4, "[4294967296,4294967296]", "[4294967296,4294967296]"), config(1<<20, "[1048576]", "[1048576]")} {
		if err := v.LoadModel(ctx, "sum", c); err == nil {
			return "", fmt.Errorf("a load was taken: %s", c)
		}
	}
	seen, err := v.bounded(1 << 30)
	return "5 refused, " + seen, errors.Join(err, v.serves(ctx))
}
