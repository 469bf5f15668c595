package payload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

const (
	// Variety is the number of different random requests that are sent in turn: too many for a cache
	// of values to help.
	Variety = 32
	// MostMemory bounds the bytes of all requests, which are encoded once and kept. Large requests are
	// fewer.
	MostMemory = 256 << 20

	mostTensor   = 1 << 30 // bytes; a larger shape is probably a mistake
	stringLength = 128     // bytes of a random text element, as in perf_analyzer
)

// letters are the characters of random text, as in perf_analyzer.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .?!"

// generate makes requests of random values, or one request of zeros. notes describe the values.
func (k *maker) generate() (requests []Request, notes []string) {
	list := k.distributions()
	if len(k.problems) > 0 {
		return nil, nil
	}
	for _, in := range list {
		notes = append(notes, fmt.Sprintf("%s: %s", find(k.in, in.Name), in.Reason))
	}
	name, count := Random, Variety
	if slices.Contains(k.source.Data, Zero) {
		name, count = Zero, 1
	}
	for i, size := 0, 0; i < count && size <= MostMemory; i++ {
		values := inputs.Generate(list, k.source.Batch, k.source.Seed+uint64(i))
		r := Request{Infer: k.infer(), Origin: fmt.Sprintf("%s request %d", name, i)}
		for _, in := range list {
			t := values[in.Name]
			if name == Zero {
				clear(t.Data)
			}
			if k.invents(t) {
				k.write(t.Strings, rand.New(rand.NewPCG(k.source.Seed, uint64(i))))
			}
			wire := Wire(in.Name, t)
			r.Infer.Inputs, size = append(r.Infer.Inputs, wire), size+len(wire.Data)
		}
		requests = append(requests, r)
	}
	return requests, notes
}

// invents reports whether text is made here instead of derived from the model file.
func (k *maker) invents(t inputs.Tensor) bool {
	return t.Type == onnx.String && (k.model.Graph == nil || k.source.StringLength > 0 || k.source.StringData != "")
}

// write fills the elements of a text tensor.
func (k *maker) write(elements [][]byte, r *rand.Rand) {
	for i := range elements {
		if k.source.StringData != "" {
			elements[i] = []byte(k.source.StringData)
			continue
		}
		elements[i] = make([]byte, cmp.Or(k.source.StringLength, stringLength))
		for j := range elements[i] {
			elements[i][j] = letters[r.IntN(len(letters))]
		}
	}
}

// distributions returns the distribution of each input's values. It leaves out optional inputs
// whose shape is open.
func (k *maker) distributions() []inputs.Input {
	derived := k.derive()
	var list []inputs.Input
	for _, s := range k.in {
		if s.isOpen() {
			if !s.optional {
				k.problem("the shape of input %s is open: give it%s with --shape %s:SIZE,…", s, k.withoutBatch(), s.Name)
			}
			continue
		}
		in := inputs.Input{Name: s.Name, Type: s.Type, Dims: s.Dims, Batched: k.model.Batches()}
		from := guess(s.Type)
		if i := slices.IndexFunc(derived, func(d inputs.Input) bool { return d.Name == s.Name }); i >= 0 {
			from = derived[i]
		}
		if given, ok := k.source.Ranges[s.Name]; ok {
			from = inputs.Input{Distribution: inputs.Uniform, Range: given, Reason: fmt.Sprintf("from %d to below %d, as given", given.Lo, given.Hi)}
		}
		in.Distribution, in.Range, in.Reason = from.Distribution, from.Range, from.Reason
		switch {
		case k.invents(inputs.Tensor{Type: s.Type}):
			in.Reason = "text"
		case slices.Contains(k.source.Data, Zero):
			in.Reason = "zeros"
		}
		k.checkSize(s)
		list = append(list, in)
	}
	return list
}

// derive gets the values of the inputs from the model file; nil without a file.
func (k *maker) derive() []inputs.Input {
	if k.model.Graph == nil {
		return nil
	}
	shapes := map[string][]int64{}
	for _, v := range k.model.Graph.Inputs() { // the shapes of the others are in the file, or not needed
		if s := find(k.in, v.Name); s != nil && !v.Ranked {
			// any shape will do, since only the values matter
			shapes[v.Name] = slices.Repeat([]int64{1}, len(s.Dims))
		}
	}
	derived, err := inputs.Derive(k.model.Graph, inputs.Options{Shape: shapes, Default: 1})
	if err != nil {
		k.problem("%v", err)
	}
	return derived
}

// guess returns values that are valid for most models, if only the type is known.
func guess(t onnx.DataType) inputs.Input {
	switch {
	case t == onnx.String:
		return inputs.Input{Distribution: inputs.Text, Range: inputs.Range{Lo: 0, Hi: 100}}
	case t == onnx.Bool:
		return inputs.Input{Distribution: inputs.Uniform, Range: inputs.Range{Lo: 0, Hi: 2}, Reason: "false or true"}
	case t.IsFloat():
		return inputs.Input{Distribution: inputs.Normal, Reason: "random numbers of mean 0 and deviation 1"}
	default: // valid for masks, and for every table of two rows or more
		return inputs.Input{
			Distribution: inputs.Uniform, Range: inputs.Range{Lo: 0, Hi: 2},
			Reason: "0 or 1; give --model-file, or --input-range NAME:LO:HI for other values",
		}
	}
}

// checkSize refuses shapes that are too large for a request.
func (k *maker) checkSize(s spec) {
	each := s.Type.Size()
	if s.Type == onnx.String {
		each = 4 + int64(max(cmp.Or(k.source.StringLength, stringLength), len(k.source.StringData)))
	}
	n, ok := onnx.Elements(s.Dims)
	if !ok || n > mostTensor/each/int64(k.source.Batch) {
		k.problem("input %s would exceed %d bytes in a request of batch size %d", s, mostTensor, k.source.Batch)
	}
}
