package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"tuner/dataset"
	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/ort"
	"tuner/precision/accuracy"
	"tuner/stats"
)

// bench is what every comparison needs.
type bench struct {
	runtime *ort.Runtime
	rows    dataset.Dataset
	options
}

// served is a variant with its session and its figures.
type served struct {
	variant
	session *ort.Session
	outputs []string
	speed   map[int][]float64 // rows per second of each round, by batch
	report  accuracy.Report   // against the original
}

// compare measures the variants and prints the tables.
func compare(ctx context.Context, b bench, variants []variant, out io.Writer) (err error) {
	var all []*served
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.session.Close())
		}
	}()
	for _, v := range variants {
		s, err := b.open(v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		all = append(all, s)
	}
	if err := b.judge(ctx, all); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, batch := range batches() {
		for round := range b.rounds + 1 {
			for _, i := range random.Perm(len(all)) {
				speed, err := b.speed(ctx, all[i], batch)
				if err != nil {
					return fmt.Errorf("%s: %w", all[i].name, err)
				}
				if round > 0 { // the first has warmed it up
					all[i].speed[batch] = append(all[i].speed[batch], speed)
				}
			}
		}
	}
	return write(out, all)
}

func (b bench) open(v variant) (*served, error) {
	session, err := b.runtime.NewSession(v.path, ort.SessionOptions{IntraOpThreads: 1})
	if err != nil {
		return nil, err
	}
	s := &served{variant: v, session: session, speed: map[int][]float64{}}
	for _, info := range session.Outputs() {
		s.outputs = append(s.outputs, info.Name)
	}
	return s, nil
}

// judge compares what the variants compute with what the first one does.
func (b bench) judge(ctx context.Context, all []*served) error {
	const batch = 8
	computed := make([]accuracy.Outputs, len(all))
	for i, s := range all {
		for from := 0; from < b.rows.Rows; from += batch {
			values, err := b.infer(ctx, s, b.rows.Slice(from, min(from+batch, b.rows.Rows)))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			computed[i] = append(computed[i], values)
		}
		var err error
		if s.report, err = accuracy.Compare(computed[0], computed[i], b.rows.Labels); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// infer runs a variant once.
func (b bench) infer(ctx context.Context, s *served, request map[string]inputs.Tensor) (values map[string]inputs.Tensor, err error) {
	tensors, err := b.tensors(s, request)
	defer closeAll(tensors)
	if err != nil {
		return nil, err
	}
	outputs, err := s.session.Run(ctx, tensors, s.outputs)
	if err != nil {
		return nil, err
	}
	defer closeAll(outputs)
	values = map[string]inputs.Tensor{}
	for i, info := range s.session.Outputs() {
		values[info.Name] = inputs.Tensor{Type: onnx.DataType(info.Type), Shape: outputs[i].Shape(), Data: append([]byte(nil), outputs[i].Bytes()...)}
	}
	return values, nil
}

// tensors makes ONNX Runtime's tensors of a request. They must be closed, also after an error.
func (b bench) tensors(s *served, request map[string]inputs.Tensor) ([]*ort.Tensor, error) {
	var list []*ort.Tensor
	for _, info := range s.session.Inputs() {
		in := request[info.Name]
		t, err := b.runtime.NewTensor(info.Type, in.Shape, in.Data)
		if err != nil {
			return list, err
		}
		list = append(list, t)
	}
	return list, nil
}

func closeAll(tensors []*ort.Tensor) {
	for _, t := range tensors {
		t.Close()
	}
}

// speed runs a variant over and over for a window, and returns the rows per second.
func (b bench) speed(ctx context.Context, s *served, batch int) (float64, error) {
	tensors, err := b.tensors(s, b.rows.Slice(0, batch))
	defer closeAll(tensors)
	if err != nil {
		return 0, err
	}
	begin, n := time.Now(), 0
	for time.Since(begin) < b.window {
		outputs, err := s.session.Run(ctx, tensors, s.outputs)
		if err != nil {
			return 0, err
		}
		closeAll(outputs)
		n += batch
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

// write prints a table of the variants, and their speeds relative to each other.
func write(out io.Writer, all []*served) error {
	text := "\n| variant | MB | batch | rows/s, median | × fp32 | 95 % interval | cosine mean | 1st percentile | minimum | same neighbour |\n|---|---|---|---|---|---|---|---|---|---|\n"
	for _, batch := range batches() {
		for _, s := range all {
			ratio := stats.PairedRatio(s.speed[batch], all[0].speed[batch])
			f := worst(s.report)
			text += fmt.Sprintf("| %s | %.1f | %d | %.1f | **%.2f** | %.2f–%.2f | %.4f | %.4f | %.4f | %.0f %% |\n", s.name, float64(s.bytes)/1e6, batch,
				stats.Median(s.speed[batch]), ratio.Value, ratio.Lo, ratio.Hi, f.CosineMean, f.CosineP1, f.CosineMin, 100*f.Neighbour)
		}
	}
	if len(all) > 2 {
		text += "\n| tuner's int8 against onnxruntime.quantization's | ratio | 95 % interval | goal |\n|---|---|---|---|\n"
		for _, batch := range batches() {
			ratio := stats.PairedRatio(all[1].speed[batch], all[2].speed[batch])
			text += fmt.Sprintf("| speed at batch %d | **%.3f** | %.3f–%.3f | ≥ 0.97 |\n", batch, ratio.Value, ratio.Lo, ratio.Hi)
		}
		text += fmt.Sprintf("| size | **%.3f** | | ≤ 1.03 |\n", float64(all[1].bytes)/float64(all[2].bytes))
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("cannot print the figures: %w", err)
	}
	return nil
}

// worst is the figures of the output with the least cosine.
func worst(r accuracy.Report) accuracy.Figures {
	least := accuracy.Figures{CosineMean: 2}
	for _, f := range r.Outputs {
		if f.CosineMean < least.CosineMean {
			least = f
		}
	}
	return least
}
