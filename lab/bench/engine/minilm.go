package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"tuner/engine/api"
)

// minilm is the name of the sentence encoder, in repositories.
const minilm = "minilm"

// sequence is the number of tokens of each request.
const sequence = 32

// setting holds the variable part of MiniLM's configuration.
type setting struct {
	Instances int
	Threads   int // of each instance
	MaxBatch  int
	Delay     time.Duration
}

func (s setting) String() string {
	text := fmt.Sprintf("%d × %d, batch %d", s.Instances, s.Threads, s.MaxBatch)
	if s.Delay > 0 {
		text += fmt.Sprintf(", %v", s.Delay)
	}
	return text
}

// config returns the setting as config.pbtxt.
func (s setting) config() string {
	batching := ""
	if s.MaxBatch > 1 {
		batching = fmt.Sprintf("dynamic_batching { max_queue_delay_microseconds: %d }", s.Delay.Microseconds())
	}
	return fmt.Sprintf(`
name: %q
backend: "onnxruntime"
max_batch_size: %d
input [
  { name: "input_ids" data_type: TYPE_INT64 dims: [ %[3]d ] },
  { name: "attention_mask" data_type: TYPE_INT64 dims: [ %[3]d ] },
  { name: "token_type_ids" data_type: TYPE_INT64 dims: [ %[3]d ] }
]
output [ { name: "embedding" data_type: TYPE_FP32 dims: [ 384 ] } ]
%[4]s
instance_group [ { count: %[5]d kind: KIND_CPU } ]
parameters { key: "intra_op_thread_count" value { string_value: "%[6]d" } }
`, minilm, s.MaxBatch, sequence, batching, s.Instances, s.Threads)
}

// minilmRequest returns an inference of one sentence, with tokens from the whole vocabulary and no
// padding.
func minilmRequest() api.InferRequest {
	const vocabulary = 30522
	tensor := func(name string, element func(i int) int64) api.Tensor {
		t := api.Tensor{Name: name, Datatype: "INT64", Shape: []int64{1, sequence}}
		for i := range sequence {
			t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(element(i)))
		}
		return t
	}
	return api.InferRequest{Model: minilm, Inputs: []api.Tensor{
		tensor("input_ids", func(i int) int64 { return int64(7919*i) % vocabulary }),
		tensor("attention_mask", func(int) int64 { return 1 }),
		tensor("token_type_ids", func(int) int64 { return 0 }),
	}}
}
