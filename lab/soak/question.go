package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"tuner/engine/api"
)

// question is a request with a known answer.
type question struct {
	request api.InferRequest
	place   place
	check   func([]api.Tensor) error
}

// place is that of a request in a sequence. The zero value is no sequence.
type place struct {
	id         uint64
	start, end bool
}

// ask makes a random question for a model.
func (s *site) ask(model string, r *rand.Rand) question {
	switch model {
	case minilm:
		return s.askMiniLM(r)
	case text:
		return askText(r)
	case wide:
		return askWide(r)
	case cached: // few enough questions that some come again
		return askSimple(model, rand.New(rand.NewPCG(r.Uint64N(differentOnes), 1)))
	default:
		return askSimple(model, r)
	}
}

const (
	maxRows       = 4  // of a question
	differentOnes = 64 // questions to the model with a cache
)

// askSimple asks for the sums and differences of 16 numbers per row, once or by several steps.
func askSimple(model string, r *rand.Rand) question {
	rows := 1 + r.IntN(maxRows)
	var a, b, sum, difference []byte
	for range 16 * rows {
		x, y := r.Int32N(1<<20), r.Int32N(1<<20)
		first, second := x+y, x-y
		for range map[string]int{chained: 1, nested: 2}[model] {
			first, second = first+second, first-second
		}
		for data, value := range map[*[]byte]int32{&a: x, &b: y, &sum: first, &difference: second} {
			*data = binary.LittleEndian.AppendUint32(*data, uint32(value))
		}
	}
	shape := []int64{int64(rows), 16}
	return question{
		request: api.InferRequest{Model: model, ID: strconv.Itoa(r.Int()), Inputs: []api.Tensor{
			{Name: "INPUT0", Datatype: "INT32", Shape: shape, Data: a}, {Name: "INPUT1", Datatype: "INT32", Shape: shape, Data: b},
		}},
		check: func(got []api.Tensor) error {
			return same(got, map[string]api.Tensor{
				"OUTPUT0": {Datatype: "INT32", Shape: shape, Data: sum}, "OUTPUT1": {Datatype: "INT32", Shape: shape, Data: difference},
			})
		},
	}
}

// askText asks for its own strings. Some are empty, and some are long.
func askText(r *rand.Rand) question {
	rows := 1 + r.IntN(maxRows)
	var data []byte
	for range rows {
		var length int
		switch r.IntN(20) {
		case 0:
		case 1:
			length = r.IntN(100_000)
		default:
			length = r.IntN(40)
		}
		data = binary.LittleEndian.AppendUint32(data, uint32(length))
		for range length {
			data = append(data, byte('a'+r.IntN(26)))
		}
	}
	return returned(text, r, api.Tensor{Datatype: "BYTES", Shape: []int64{int64(rows), 1}, Data: data})
}

// askWide asks for its own numbers: up to a megabyte.
func askWide(r *rand.Rand) question {
	const mostBytes = 256 << 10 // of a row
	shape := []int64{1 + r.Int64N(maxRows), 1 + r.Int64N(mostBytes/4)}
	data := make([]byte, 4*shape[0]*shape[1])
	for i := range data {
		data[i] = byte(r.Uint32()) // identity changes no bit
	}
	return returned(wide, r, api.Tensor{Datatype: "FP32", Shape: shape, Data: data})
}

// returned is a question to a model that returns its input.
func returned(model string, r *rand.Rand, t api.Tensor) question {
	in, out := t, t
	in.Name, out.Name = "INPUT0", "OUTPUT0"
	return question{
		request: api.InferRequest{Model: model, ID: strconv.Itoa(r.Int()), Inputs: []api.Tensor{in}},
		check:   func(got []api.Tensor) error { return same(got, map[string]api.Tensor{out.Name: out}) },
	}
}

// same returns an error that describes the difference of outputs from the right ones.
func same(got []api.Tensor, want map[string]api.Tensor) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for _, t := range got {
		w, known := want[t.Name]
		switch {
		case !known:
			return fmt.Errorf("output %q was not asked for", t.Name)
		case t.Datatype != w.Datatype || !slices.Equal(t.Shape, w.Shape):
			return fmt.Errorf("output %s is %s %v, want %s %v", t.Name, t.Datatype, t.Shape, w.Datatype, w.Shape)
		case !bytes.Equal(t.Data, w.Data):
			return fmt.Errorf("output %s differs: got %s, want %s", t.Name, excerpt(t.Data), excerpt(w.Data))
		}
	}
	return nil
}

func excerpt(data []byte) string {
	const most = 64
	if len(data) > most {
		return fmt.Sprintf("%x… (%d bytes)", data[:most], len(data))
	}
	return fmt.Sprintf("%x", data)
}

// sentence is a sentence with its embedding by an otherwise idle MiniLM.
type sentence struct {
	tokens    []int64
	embedding []float32
}

const (
	sentences  = 16
	sequence   = 32 // tokens of a sentence
	dimensions = 384
	tolerance  = 1e-5 // of an element: other batch sizes round differently
)

// learn asks MiniLM for the embeddings of the sentences, one by one.
func learn(ctx context.Context, c *api.HTTPClient) ([]sentence, error) {
	r := rand.New(rand.NewPCG(7, 7))
	var known []sentence
	for range sentences {
		one := sentence{}
		for range sequence {
			one.tokens = append(one.tokens, 1+r.Int64N(30000))
		}
		encoded, err := c.Encode(sentenceRequest([]sentence{one}))
		if err != nil {
			return nil, err
		}
		answer, err := c.Infer(ctx, encoded)
		if err != nil {
			return nil, fmt.Errorf("cannot learn an answer of MiniLM: %w", err)
		}
		outputs, err := answer.Outputs()
		if err != nil {
			return nil, fmt.Errorf("cannot learn an answer of MiniLM: %w", err)
		}
		if len(outputs) != 1 || len(outputs[0].Data) != 4*dimensions {
			return nil, fmt.Errorf("MiniLM answers %d outputs, want one of %d elements", len(outputs), dimensions)
		}
		one.embedding = floats(outputs[0].Data)
		known = append(known, one)
	}
	return known, nil
}

func sentenceRequest(batch []sentence) api.InferRequest {
	shape := []int64{int64(len(batch)), sequence}
	var ids, mask, types []byte
	for _, one := range batch {
		for _, token := range one.tokens {
			ids = binary.LittleEndian.AppendUint64(ids, uint64(token))
			mask = binary.LittleEndian.AppendUint64(mask, 1)
			types = binary.LittleEndian.AppendUint64(types, 0)
		}
	}
	return api.InferRequest{Model: minilm, Inputs: []api.Tensor{
		{Name: "input_ids", Datatype: "INT64", Shape: shape, Data: ids},
		{Name: "attention_mask", Datatype: "INT64", Shape: shape, Data: mask},
		{Name: "token_type_ids", Datatype: "INT64", Shape: shape, Data: types},
	}}
}

func (s *site) askMiniLM(r *rand.Rand) question {
	var batch []sentence
	for range 1 + r.IntN(maxRows) {
		batch = append(batch, s.known[r.IntN(len(s.known))])
	}
	return question{request: sentenceRequest(batch), check: func(got []api.Tensor) error {
		if len(got) != 1 || got[0].Datatype != "FP32" || !slices.Equal(got[0].Shape, []int64{int64(len(batch)), dimensions}) {
			return fmt.Errorf("got %s, want one output FP32 [%d,%d]", describe(got), len(batch), dimensions)
		}
		values := floats(got[0].Data)
		for i, v := range values {
			if want := batch[i/dimensions].embedding[i%dimensions]; !(math.Abs(float64(v-want)) <= tolerance) {
				return fmt.Errorf("row %d of %d, element %d is %v, want %v", i/dimensions, len(batch), i%dimensions, v, want)
			}
		}
		return nil
	}}
}

func describe(tensors []api.Tensor) string {
	var parts []string
	for _, t := range tensors {
		parts = append(parts, fmt.Sprintf("%s %s %v", t.Name, t.Datatype, t.Shape))
	}
	return strings.Join(parts, ", ")
}

func floats(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}
