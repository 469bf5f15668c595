package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"tuner/engine/api"
	"tuner/lab/peers"
	"tuner/model/dataset/elements"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile"
	"tuner/runner/payload"
	"tuner/spec"
	"tuner/spec/draft"
)

// The comparison's numbers.
const (
	rounds      = 3    // requests with different values
	tolerance   = 1e-3 // largest relative difference of two numbers
	ofLargest   = 1e-5 // difference that counts as none, relative to the largest number of the output
	requestTime = 30 * time.Second
)

// compare lets tuner's engine and a real Triton serve the repository of a run, and compares their
// outputs of the same requests. It returns the number of outputs, and why they are not equal.
func (k keeper) compare(ctx context.Context, folder string) (outputs int, different string) {
	root, requests, err := requestsFor(folder)
	if err != nil {
		return 0, err.Error()
	}
	ours, err := answers(ctx, requests, func() (*peers.Server, error) { return k.peers.StartTuner(ctx, k.options.tuner, root) })
	if err != nil {
		return 0, "tuner's engine: " + err.Error()
	}
	theirs, err := answers(ctx, requests, func() (*peers.Server, error) { return k.peers.StartTriton(ctx, root) })
	if err != nil {
		return 0, "Triton: " + err.Error()
	}
	for i := range ours {
		if len(ours[i]) != len(theirs[i]) {
			return outputs, fmt.Sprintf("%d outputs, Triton has %d", len(ours[i]), len(theirs[i]))
		}
		for _, t := range theirs[i] {
			at := slices.IndexFunc(ours[i], func(o api.Tensor) bool { return o.Name == t.Name })
			if at < 0 {
				return outputs, fmt.Sprintf("there is no output %q", t.Name)
			}
			if reason := difference(ours[i][at], t); reason != "" {
				return outputs, fmt.Sprintf("output %q: %s", t.Name, reason)
			}
			outputs++
		}
	}
	return outputs, ""
}

// requestsFor makes requests in the shapes of a run for its repository.
func requestsFor(folder string) (root string, requests []api.InferRequest, err error) {
	root, served, err := repository(folder)
	if err != nil {
		return "", nil, err
	}
	p, err := spec.ReadProfile(filepath.Join(folder, draft.ProfileName))
	if err != nil {
		return "", nil, err
	}
	config, err := served.Config()
	if err != nil {
		return "", nil, err
	}
	file, err := served.ModelFile()
	if err != nil {
		return "", nil, err
	}
	model, err := onnx.Read(file)
	if err != nil {
		return "", nil, err
	}
	model = withOutputs(model, config)
	subject := profile.Subject{Name: served.Name, Model: model, Config: config}
	derived, err := inputs.Derive(model, subject.InputOptions(p))
	if err != nil {
		return "", nil, err
	}
	for i := range rounds {
		requests = append(requests, payload.Fill(served.Name, config, derived, inputs.Generate(derived, 1, uint64(i))))
	}
	return root, requests, nil
}

// withOutputs returns the model with the shapes of outputs that its configuration has. Some files
// declare outputs as scalars, from which nobody can tell whether the model batches.
func withOutputs(model *onnx.Model, config *modelconfig.Config) *onnx.Model {
	shapes := map[string][]int64{}
	for _, out := range config.GetOutput() {
		if shapes[out.GetName()] = out.GetDims(); config.GetMaxBatchSize() > 0 {
			shapes[out.GetName()] = append([]int64{-1}, out.GetDims()...)
		}
	}
	return model.WithOutputShapes(shapes)
}

// answers sends requests to a server, and stops it.
func answers(ctx context.Context, requests []api.InferRequest, start func() (*peers.Server, error)) (list [][]api.Tensor, err error) {
	server, err := start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := api.NewGRPC(server.GRPC)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, r := range requests {
		encoded, err := client.Encode(r)
		if err != nil {
			return nil, err
		}
		limited, cancel := context.WithTimeout(ctx, requestTime)
		answer, err := client.Infer(limited, encoded)
		cancel()
		if err != nil {
			return nil, err
		}
		outputs, err := answer.Outputs()
		if err != nil {
			return nil, err
		}
		list = append(list, outputs)
	}
	return list, nil
}

// difference says why two outputs are not equal; "" if they are. Numbers may differ by the
// tolerance, and everything else by nothing.
func difference(a, b api.Tensor) string {
	if a.Datatype != b.Datatype || !slices.Equal(a.Shape, b.Shape) {
		return fmt.Sprintf("%s %v, Triton has %s %v", a.Datatype, a.Shape, b.Datatype, b.Shape)
	}
	datatype, isInexact := inexact(a.Datatype)
	if !isInexact {
		if !slices.Equal(a.Data, b.Data) {
			return fmt.Sprintf("other values of %s", a.Datatype)
		}
		return ""
	}
	x := elements.Floats(inputs.Tensor{Type: datatype, Data: a.Data})
	y := elements.Floats(inputs.Tensor{Type: datatype, Data: b.Data})
	if len(x) != len(y) {
		return fmt.Sprintf("%d numbers, Triton has %d", len(x), len(y))
	}
	largest := 0.0
	for _, v := range y {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			largest = max(largest, math.Abs(v))
		}
	}
	for i := range x {
		if x[i] == y[i] || math.IsNaN(x[i]) && math.IsNaN(y[i]) {
			continue
		}
		d, size := math.Abs(x[i]-y[i]), max(math.Abs(x[i]), math.Abs(y[i]))
		if isNear := d <= tolerance*size || d <= ofLargest*largest; !isNear || math.IsInf(size, 0) {
			return fmt.Sprintf("number %d is %g, Triton has %g", i, x[i], y[i])
		}
	}
	return ""
}

// inexact returns a floating-point type whose numbers may differ; false for another type.
func inexact(datatype string) (onnx.DataType, bool) {
	switch datatype {
	case "FP32":
		return onnx.Float, true
	case "FP64":
		return onnx.Double, true
	}
	return 0, false
}
