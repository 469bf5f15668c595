package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"tuner/onnx"
	"tuner/onnx/build"
	"tuner/ort"
)

// workload is one comparison: a model, how many sessions of it with how many threads run, and the rows of a full batch.
type workload struct {
	label     string
	path      string // of the model
	batch     int
	instances int
	threads   int // of each instance
}

func (w workload) name() string {
	return fmt.Sprintf("InProcess/model=%s/batch=%d/instances=%d/threads=%d", w.label, w.batch, w.instances, w.threads)
}

func (w workload) options() ort.SessionOptions { return ort.SessionOptions{IntraOpThreads: w.threads} }

// clients is enough for every instance to have a full batch waiting while it runs one.
func (w workload) clients() int { return 2 * w.instances * w.batch }

// prepare lists the workloads, and makes the small model in dir.
func prepare(r *ort.Runtime, dir, minilm string) ([]workload, error) {
	var out []workload
	if minilm != "" {
		out = append(out, workload{"minilm", minilm, 16, 2, 1}, workload{"minilm", minilm, 16, 1, 2})
	}
	small := workload{"100us", filepath.Join(dir, "small.onnx"), 8, 1, 1}
	if err := calibrate(r, small, 100*time.Microsecond); err != nil {
		return nil, fmt.Errorf("cannot make the small model: %w", err)
	}
	twice := small
	twice.instances = 2
	return append(out, small, twice), nil
}

// calibrate writes a perceptron that has so many layers that a run of one batch takes about target.
func calibrate(r *ort.Runtime, w workload, target time.Duration) error {
	few, many := 2, 12
	short, err := runTime(r, w, few)
	if err != nil {
		return err
	}
	long, err := runTime(r, w, many)
	if err != nil {
		return err
	}
	perLayer := (long - short) / time.Duration(many-few)
	if perLayer <= 0 {
		return errors.New("its run time does not grow with its layers: the machine is too busy")
	}
	layers := few + int(math.Round(float64(target-short)/float64(perLayer)))
	return perceptron(max(1, layers)).Write(w.path, 0)
}

// runTime is the shortest of many runs of a perceptron.
func runTime(r *ort.Runtime, w workload, layers int) (time.Duration, error) {
	if err := perceptron(layers).Write(w.path, 0); err != nil {
		return 0, err
	}
	s, err := newSession(r, w)
	if err != nil {
		return 0, err
	}
	defer s.close()
	best := time.Hour
	for range 500 {
		begin := time.Now()
		if err := s.run(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(begin))
	}
	return best, nil
}

// perceptron has layers of 128 × 128 weights: INPUT FLOAT[batch, 128] → OUTPUT FLOAT[batch, 128].
func perceptron(layers int) *onnx.Model {
	const width = 128
	weights := make([]float32, width*width)
	for i := range weights {
		weights[i] = float32(i%7-3) / width // any numbers that neither vanish nor grow
	}
	g := build.NewGraph("perceptron")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(width)}
	x := g.Input("INPUT", onnx.Float, shape...)
	for i := range layers {
		x = g.Node("Relu", []string{g.Node("MatMul", []string{x, g.Floats(fmt.Sprintf("weights%d", i), weights, width, width)})})
	}
	g.OutputAs("OUTPUT", x, onnx.Float, shape...)
	return g.Model()
}

// shape is that of rows of an input; a dimension of any size, but the batch, is 32, MiniLM's usual length.
func shape(info ort.TensorInfo, rows int) []int64 {
	out := []int64{int64(rows)}
	for _, d := range info.Shape[1:] {
		if d < 0 {
			d = 32
		}
		out = append(out, d)
	}
	return out
}

// ones is rows of an input, all ones.
func ones(info ort.TensorInfo, rows int) ([]byte, error) {
	elements := 1
	for _, d := range shape(info, rows) {
		elements *= int(d)
	}
	var data []byte
	for range elements {
		switch info.Type {
		case ort.Int64:
			data = binary.LittleEndian.AppendUint64(data, 1)
		case ort.Float32:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(1))
		default:
			return nil, fmt.Errorf("input %q is %v: only INT64 and FP32 are known here", info.Name, info.Type)
		}
	}
	return data, nil
}
