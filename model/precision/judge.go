package precision

import (
	"context"
	"errors"
	"fmt"

	"tuner/model/dataset"
	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

// batchRows is the number of rows in one inference of a model that batches.
const batchRows = 8

// judge compares the outputs of a model on a provider with the reference. miss describes how it
// misses the limit; "" if it keeps it, or without a limit. A *RefusedError means that the provider
// does not run it.
func (k *Maker) judge(ctx context.Context, m *onnx.Model, provider string) (report accuracy.Report, miss string, err error) {
	reference, err := k.original(ctx)
	if err != nil {
		return accuracy.Report{}, "", err
	}
	outputs, err := k.outputs(ctx, m, provider)
	if err != nil {
		return accuracy.Report{}, "", err
	}
	if report, err = k.compare(ctx, reference, outputs); err != nil {
		return accuracy.Report{}, "", err
	}
	switch {
	case k.unfit != "":
		miss = k.unfit
	case k.options.Limit != nil:
		_, miss = k.options.Limit.Check(report)
	}
	return report, miss, nil
}

// compare is accuracy.Compare, with the user's own metric if there is one. Outputs that are not
// finite miss every limit, so the command is not run for them.
func (k *Maker) compare(ctx context.Context, reference, variant accuracy.Outputs) (accuracy.Report, error) {
	report, err := accuracy.Compare(reference, variant, k.labels)
	if err != nil {
		return accuracy.Report{}, &RefusedError{"its outputs cannot be compared with the original's: " + err.Error()}
	}
	report.Synthetic = k.options.Data.Synthetic
	if limit := k.options.Limit; limit != nil && limit.Command != "" && report.IsFinite() {
		value, err := runMetric(ctx, limit.Command, k.options.Data.Order(), reference, variant)
		if err != nil {
			return accuracy.Report{}, err
		}
		report.Command = &value
	}
	return report, nil
}

// original returns the outputs of the source on cpu. They are computed once.
func (k *Maker) original(ctx context.Context) (accuracy.Outputs, error) {
	if k.reference != nil {
		return k.reference, nil
	}
	k.progress("running the original on %d rows", k.options.Data.Rows)
	outputs, err := k.outputs(ctx, k.source, cpu)
	if err != nil {
		return nil, k.sourceError(err)
	}
	if err := k.checkReference(outputs); err != nil {
		return nil, &SourceError{Path: k.source.Path(), Err: fmt.Errorf("on the data %q, %w", k.options.Data.Name, err), Random: k.options.Data.Synthetic}
	}
	k.reference = outputs
	return outputs, nil
}

// checkReference returns the reason why variants cannot be compared with the source's outputs. It
// keeps the labels if they match an output.
//
// It records the reason if the limit applies to no output. Every variant misses such a limit, so
// keeping nodes in fp32 is pointless. The default limit is one for an output with one number per
// row.
func (k *Maker) checkReference(outputs accuracy.Outputs) error {
	if err := accuracy.CheckFinite(outputs); err != nil {
		return fmt.Errorf("%w: there is nothing to compare variants with; look for inputs that the model was not made for", err)
	}
	limit := k.options.Limit
	if labels := k.options.Data.Labels; labels != nil {
		switch err := accuracy.CheckLabels(outputs, labels); {
		case err == nil:
			k.labels = labels
		case limit != nil && limit.NeedsLabels():
			return fmt.Errorf("%w; correct the array of labels, or set a limit on another metric", err)
		}
	}
	if limit == nil {
		return nil
	}
	if err := limit.CheckReference(outputs, k.labels); err != nil {
		k.unfit = fmt.Sprintf("%v (--metric, or constraints.accuracy in a profile)", err)
	}
	return nil
}

// sourceError turns a refusal of the source on cpu into a mistake in the source, since nothing can
// be compared with it.
func (k *Maker) sourceError(err error) error {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	return &SourceError{Path: k.source.Path(), Err: fmt.Errorf("ONNX Runtime does not run it on %s, so there is nothing to compare variants with: %s", cpu, refused.Reason)}
}

// outputs runs a model over the data.
func (k *Maker) outputs(ctx context.Context, m *onnx.Model, provider string) (accuracy.Outputs, error) {
	if k.freed && inputs.Batches(m) {
		return k.inPairs(ctx, m, provider)
	}
	var outputs accuracy.Outputs
	data, held := k.options.Data, volume{}
	err := k.eachBatch(ctx, m, provider, data, func(_, out map[string]inputs.Tensor) error {
		if m == k.source {
			held.add(out, data)
			if err := k.checkMemory(held, data, 2); err != nil { // the original's, and a variant's beside them
				return err
			}
		}
		outputs = append(outputs, k.asRows(out))
		return nil
	})
	return outputs, err
}

// inPairs is outputs of a model whose batch dimension became symbolic. Two requests share an inference, as
// on a server, and have the outputs of each, as the source.
func (k *Maker) inPairs(ctx context.Context, m *onnx.Model, provider string) (accuracy.Outputs, error) {
	session, err := k.open.Open(ctx, m, provider)
	if err != nil {
		return nil, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	var outputs accuracy.Outputs
	data := k.options.Data.AsBatches()
	for from, to := 0, 0; from < data.Rows; from = to {
		to = data.End(from, 2)
		requests := data.Slice(from, to)
		for name, t := range requests {
			t.Shape = append([]int64{t.Shape[0] * t.Shape[1]}, t.Shape[2:]...)
			requests[name] = t
		}
		in, err := adapt(m, requests)
		if err != nil {
			return nil, err
		}
		out, err := session.Infer(ctx, in)
		if err != nil {
			return nil, err
		}
		answers := dataset.Dataset{Rows: to - from, Inputs: out}
		for name, t := range out {
			if len(t.Shape) == 0 || t.Shape[0]%int64(answers.Rows) != 0 {
				return nil, &RefusedError{fmt.Sprintf("its output %q has the shape %v for %d requests", name, t.Shape, answers.Rows)}
			}
			t.Shape = append([]int64{int64(answers.Rows), t.Shape[0] / int64(answers.Rows)}, t.Shape[1:]...)
			out[name] = t
		}
		for i := range answers.Rows {
			outputs = append(outputs, k.asRows(answers.Slice(i, i+1)))
		}
	}
	return outputs, nil
}

// volume is the size of the outputs for the first rows of a dataset.
type volume struct {
	rows  int
	bytes int64
}

// add adds the outputs of the next batch.
func (v *volume) add(out map[string]inputs.Tensor, data dataset.Dataset) {
	v.rows = data.End(v.rows, batchRows)
	for _, t := range out {
		v.bytes += int64(len(t.Data))
		for _, text := range t.Strings {
			v.bytes += int64(len(text))
		}
	}
}

// checkMemory returns an error if copies of the source's outputs would take more than half of this
// process's possible memory. copies is their number. It estimates from the outputs so far, and is
// called after each batch: of rows of several shapes the smallest come first, and say little about
// the last. The rest is for the engine and everything else.
func (k *Maker) checkMemory(held volume, data dataset.Dataset, copies int64) error {
	needed := held.bytes * int64(data.Rows) / int64(held.rows) * copies
	if k.memory == 0 || needed <= k.memory/2 {
		return nil
	}
	const gibibyte = 1 << 30
	return &SourceError{Path: k.source.Path(), Err: fmt.Errorf("comparing the outputs of %d rows of %q takes about %.3g GiB of memory, more than half of the machine's %.3g GiB; "+
		"compare fewer rows (--rows N, or accuracy.rows in a profile)", data.Rows, data.Name, float64(needed)/gibibyte, float64(k.memory)/gibibyte)}
}

// asRows turns each output of a model that does not batch into one row, as package accuracy counts
// them. With a fixed batch, an output with that many rows does not change.
func (k *Maker) asRows(out map[string]inputs.Tensor) map[string]inputs.Tensor {
	if k.options.Data.Batched {
		return out
	}
	for name, t := range out {
		if len(t.Shape) > 0 && t.Shape[0] != 1 && t.Shape[0] != k.batch {
			t.Shape = append([]int64{1}, t.Shape...)
			out[name] = t
		}
	}
	return out
}

// fixedBatch returns the fixed first dimension that all inputs of a model share, or 1.
func fixedBatch(m *onnx.Model) int64 {
	var size int64
	for _, v := range m.Inputs() {
		if len(v.Shape) == 0 || !v.Shape[0].IsFixed() || size != 0 && v.Shape[0].Size != size {
			return 1
		}
		size = v.Shape[0].Size
	}
	return max(1, size)
}

// visitor receives the inputs and outputs of an inference.
type visitor func(in, out map[string]inputs.Tensor) error

// eachBatch runs a model over data, in batches if it batches, and calls visit with each, in order.
func (k *Maker) eachBatch(ctx context.Context, m *onnx.Model, provider string, data dataset.Dataset, visit visitor) error {
	session, err := k.open.Open(ctx, m, provider)
	if err != nil {
		return err
	}
	defer session.Close(context.WithoutCancel(ctx))
	return inBatches(ctx, session, m, data, batchRows, visit)
}

// inBatches is eachBatch in an open session, with a given batch size.
func inBatches(ctx context.Context, s Session, m *onnx.Model, data dataset.Dataset, rows int, visit visitor) error {
	for from := 0; from < data.Rows; from = data.End(from, rows) {
		in, err := adapt(m, data.Slice(from, data.End(from, rows)))
		if err != nil {
			return err
		}
		out, err := s.Infer(ctx, in)
		if err != nil {
			return err
		}
		if err := visit(in, out); err != nil {
			return err
		}
	}
	return nil
}

// adapt converts inputs to the types of a model: a variant may need half precision where the
// original needs single precision.
func adapt(m *onnx.Model, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	adapted := make(map[string]inputs.Tensor, len(in))
	for _, v := range m.Inputs() {
		t, ok := in[v.Name]
		if !ok {
			return nil, &RefusedError{fmt.Sprintf("it has the input %q, which the original does not have", v.Name)}
		}
		converted, err := elements.Convert(t, v.Type)
		if err != nil {
			return nil, &RefusedError{fmt.Sprintf("its input %q does not take the data: %v", v.Name, err)}
		}
		adapted[v.Name] = converted
	}
	return adapted, nil
}

// determinismRuns is the number of runs in Determinism.
const determinismRuns = 3

// Determinism runs the source three times on a provider, twice in one launch and once in another,
// with the first rows of the data. It compares the first outputs with the others, and returns the
// report with the larger difference. The result is cached. A *RefusedError means that the provider
// does not run the source.
func (k *Maker) Determinism(ctx context.Context, provider string) (accuracy.Report, error) {
	store, err := newCache(k.options.Cache, key{Format: cacheFormat, Precision: "determinism", Source: k.digest, Data: k.data, Tool: k.options.Tool})
	if err != nil {
		return accuracy.Report{}, err
	}
	e := store.findReceipt()
	if e == nil {
		e = newEntry(k.source)
	}
	if report, known := e.Reports[provider]; known {
		return report, nil
	}
	k.progress("running the original on %s several times", provider)
	report, err := k.repeated(ctx, provider)
	if provider == cpu {
		err = k.sourceError(err)
	}
	if err != nil {
		return accuracy.Report{}, err
	}
	e.addReport(provider, report, "")
	return report, store.update(e)
}

// repeated is Determinism without the cache.
func (k *Maker) repeated(ctx context.Context, provider string) (accuracy.Report, error) {
	runs, err := k.repeat(ctx, provider, determinismRuns-1)
	if err != nil {
		return accuracy.Report{}, err
	}
	again, err := k.repeat(ctx, provider, 1)
	if err != nil {
		return accuracy.Report{}, err
	}
	report, err := farthest(runs[0], append(runs[1:], again...))
	report.Synthetic = k.options.Data.Synthetic
	return report, err
}

// repeat runs the source several times over the first rows of the data, in one session.
func (k *Maker) repeat(ctx context.Context, provider string, times int) ([]accuracy.Outputs, error) {
	session, err := k.open.Open(ctx, k.source, provider)
	if err != nil {
		return nil, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	runs := make([]accuracy.Outputs, times)
	data := k.options.Data.Head(probeRows)
	for i := range runs {
		held := volume{}
		err := inBatches(ctx, session, k.source, data, batchRows, func(_, out map[string]inputs.Tensor) error {
			held.add(out, data)
			if err := k.checkMemory(held, data, determinismRuns); err != nil {
				return err
			}
			runs[i] = append(runs[i], k.asRows(out))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// farthest compares a run with others and returns the report of the one that differs most. It
// compares in both directions, since the figures count only elements that are not finite on the
// second side.
func farthest(run accuracy.Outputs, others []accuracy.Outputs) (accuracy.Report, error) {
	var far accuracy.Report
	largest := -1.0
	for _, other := range others {
		for _, sides := range [][2]accuracy.Outputs{{run, other}, {other, run}} {
			report, err := accuracy.Compare(sides[0], sides[1], nil)
			if err != nil {
				return accuracy.Report{}, fmt.Errorf("cannot compare two runs on the same inputs: %w", err)
			}
			if difference := report.Difference(); difference > largest {
				far, largest = report, difference
			}
		}
	}
	return far, nil
}
