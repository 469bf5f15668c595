package precision

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision/accuracy"
)

// lab makes fake variants of a tiny model and runs them. A variant's producer name describes it:
// "int8 a,b" keeps nodes a and b in fp32. Its output is the original's, plus the errors of the
// nodes that it does not keep.
type lab struct {
	t      *testing.T
	errors map[string]float64 // by candidate node: what its conversion adds to the output
	refuse map[string]string  // by "producer's name on provider", or only provider: why it does not run
	factor map[string]float64 // by provider: factor of the errors, by default 1
	fail   map[string]error   // by "producer's name on provider": error of opening a session
	wobble float64            // each run adds this amount to the output of the run before

	opened []string // "producer's name on provider"
	runs   int
}

// sourceName is the producer name of the original.
const sourceName = "source"

// newLab makes a lab whose model has these nodes with these errors.
func newLab(t *testing.T, errors map[string]float64) *lab {
	return &lab{t: t, errors: errors, refuse: map[string]string{}, factor: map[string]float64{}}
}

// source writes the original, with x: FLOAT[batch,2] → y: FLOAT[batch,2], and reads it.
func (l *lab) source() *onnx.Model {
	l.t.Helper()
	g := build.NewGraph("tiny")
	batch := onnx.Symbol("batch")
	g.Input("x", onnx.Float, batch, onnx.Fixed(2))
	g.OutputAs("y", "x", onnx.Float, batch, onnx.Fixed(2))
	path := filepath.Join(l.t.TempDir(), "tiny.onnx")
	if err := named(g.Model(), sourceName).Write(path, 0); err != nil {
		l.t.Fatal(err)
	}
	m, err := onnx.Read(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return m
}

// named returns a model with another producer name.
func named(m *onnx.Model, producer string) *onnx.Model {
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	p.ProducerName = proto.String(producer)
	return onnx.New(p)
}

// rows makes data with n rows: row i is [1, i].
func rows(n int) dataset.Dataset {
	values := make([]float32, 0, 2*n)
	for i := range n {
		values = append(values, 1, float32(i))
	}
	return dataset.Dataset{Name: "rows", Rows: n, Batched: true, Inputs: map[string]inputs.Tensor{"x": floats(values, int64(n), 2)}}
}

func floats(values []float32, shape ...int64) inputs.Tensor {
	t := inputs.Tensor{Type: onnx.Float, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

// maker makes a Maker of the lab with its fake recipes, for 20 rows. largest is the limit on the
// largest error; 0: no limit.
func (l *lab) maker(largest float64, change func(*Options)) *Maker {
	l.t.Helper()
	o := Options{Data: rows(20), MaxKept: DefaultMaxKept, Tool: "test", WeightBits: 8}
	if largest > 0 {
		o.Limit = &accuracy.Limit{Metric: "max_abs_error", Max: &largest}
	}
	if change != nil {
		change(&o)
	}
	if o.Cache == "" {
		o.Cache = filepath.Join(l.t.TempDir(), "cache")
	}
	k, err := NewMaker(l.source(), l, o)
	if err != nil {
		l.t.Fatal(err)
	}
	k.rewriters = func(_ context.Context, precision string) (rewriter, error) { return l.recipe(k, precision), nil }
	return k
}

// recipe makes the fake recipe of a precision. fp16 has no probe.
func (l *lab) recipe(k *Maker, precision string) rewriter {
	r := rewriter{convert: func(keep []string) (*onnx.Model, rewrite.Summary, error) {
		if len(l.errors) == 0 {
			return nil, rewrite.Summary{}, fmt.Errorf("%w: it has no nodes", rewrite.ErrNothing)
		}
		s := rewrite.Summary{Notes: []string{"a note"}, Kept: []rewrite.Kept{{Node: "odd", Op: "Gemm", Reason: "its alpha is 2"}}}
		for node := range l.errors {
			if slices.Contains(keep, node) {
				s.Kept = append(s.Kept, rewrite.Kept{Node: node, Op: "MatMul", Reason: "kept on request"})
			} else {
				s.Converted = append(s.Converted, node)
			}
		}
		if len(s.Converted) == 0 {
			return nil, s, fmt.Errorf("%w: every node is kept", rewrite.ErrNothing)
		}
		slices.Sort(keep)
		return named(k.base, precision+" "+strings.Join(keep, ",")), s, nil
	}}
	if precision != "fp16" {
		r.probe = func() (*onnx.Model, map[string]string, error) {
			outputs := map[string]string{}
			for node := range l.errors {
				outputs[node] = node + "_error"
			}
			return named(k.base, "probe"), outputs, nil
		}
	}
	return r
}

// Open implements Opener.
func (l *lab) Open(_ context.Context, m *onnx.Model, provider string) (Session, error) {
	producer := m.Proto().GetProducerName()
	name := producer + " on " + provider
	l.opened = append(l.opened, name)
	if err := l.fail[name]; err != nil {
		return nil, err
	}
	for _, reason := range []string{l.refuse[name], l.refuse[provider]} {
		if reason != "" {
			return nil, &RefusedError{reason}
		}
	}
	return &fakeSession{l, producer, provider}, nil
}

type fakeSession struct {
	*lab
	producer, provider string
}

// Infer implements Session.
func (s *fakeSession) Infer(ctx context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := map[string]inputs.Tensor{"y": in["x"]}
	precision, kept, _ := strings.Cut(s.producer, " ")
	switch precision {
	case "probe":
		for node, e := range s.errors {
			out[node+"_error"] = floats([]float32{float32(e)}, 1)
		}
		return out, nil
	case sourceName:
		s.runs++
		out["y"] = shifted(in["x"], float32(float64(s.runs-1)*s.wobble))
		return out, nil
	}
	sum := 0.0
	for node, e := range s.errors {
		if !slices.Contains(strings.Split(kept, ","), node) {
			sum += e
		}
	}
	if f, ok := s.factor[s.provider]; ok {
		sum *= f
	}
	out["y"] = shifted(in["x"], float32(sum))
	return out, nil
}

// shifted adds v to every element.
func shifted(t inputs.Tensor, v float32) inputs.Tensor {
	shifted := inputs.Tensor{Type: t.Type, Shape: t.Shape}
	for data := t.Data; len(data) > 0; data = data[4:] {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data)) + v
		shifted.Data = binary.LittleEndian.AppendUint32(shifted.Data, math.Float32bits(x))
	}
	return shifted
}

// Close implements Session.
func (s *fakeSession) Close(context.Context) {}

// eight returns eight nodes whose errors are powers of two. If the n worst are kept, the remaining
// error is 2^(3-n) - 1/32.
func eight() map[string]float64 {
	return map[string]float64{"a": 4, "b": 2, "c": 1, "d": .5, "e": .25, "f": .125, "g": .0625, "h": .03125}
}

var errBroken = errors.New("broken")
