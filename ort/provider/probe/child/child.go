// Package child is the child process's side of package probe. It opens an ONNX Runtime library and
// tries one of its execution providers. A broken library may crash the process, so only the hidden
// verb `tuner probe` calls this package.
package child

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tuner/internal/durable"
	"tuner/ort"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/ort/provider/probe"
	"tuner/ort/sessionoption"
)

// tinyModel convolves a tensor with the weight 1, and adds the tensor to the result. The
// convolution is there because ONNX Runtime opens cuDNN only when the first operator needs it.
// Without one, a machine without cuDNN passed, and every request of a model failed later.
//
//go:embed probe.onnx
var tinyModel []byte

// Optimization describes the output of an optimized graph.
type Optimization struct {
	File     string // path of the file to write
	Level    string // of graph_optimization
	External bool   // the weights go into a separate file
}

// Optimize writes the graph with which ONNX Runtime serves a model on cpu. It then opens the
// written file without optimization, since the graph may have operators that this build cannot
// read. beside are the libraries beside ONNX Runtime.
func Optimize(library, model string, beside addon.Libraries, o Optimization) probe.Answer {
	runtime, err := ort.Open(library)
	if err != nil {
		return probe.Answer{Error: err.Error()}
	}
	defer runtime.Close()
	oneThread := sessionoption.Settings{sessionoption.IntraOpThreads: "1"}
	options := ort.SessionOptions{Settings: oneThread.With(sessionoption.GraphOptimization, o.Level), LogSeverity: ort.LogFatal,
		OptimizedModelPath: o.File, OpLibraries: beside.Operators}
	unchanged := ort.SessionOptions{Settings: oneThread.With(sessionoption.GraphOptimization, sessionoption.Disabled), LogSeverity: ort.LogFatal,
		OpLibraries: beside.Operators}
	if o.External {
		options.Entries = map[string]string{"session.optimized_model_external_initializers_file_name": filepath.Base(o.File) + ".data",
			"session.optimized_model_external_initializers_min_size_in_bytes": "1024"}
	}
	for _, step := range []struct {
		path    string
		options ort.SessionOptions
	}{{model, options}, {o.File, unchanged}} {
		session, err := runtime.NewSession(step.path, step.options)
		if err == nil {
			err = session.Close()
		}
		if err != nil {
			return probe.Answer{Version: runtime.Version(), Error: err.Error()}
		}
	}
	return probe.Answer{Version: runtime.Version()}
}

// Try opens the library. Unless the provider is "", it also creates a session with it for the
// model. If the model is "", it uses a tiny one. beside are the libraries beside ONNX Runtime.
func Try(ctx context.Context, library, of, model string, beside addon.Libraries) probe.Answer {
	runtime, err := ort.Open(library)
	if err != nil {
		return probe.Answer{Error: err.Error()}
	}
	defer runtime.Close()
	if beside.Provider != "" {
		if err := runtime.PlugIn(beside.Provider); err != nil {
			return probe.Answer{Version: runtime.Version(), Error: err.Error()}
		}
	}
	providers := slices.DeleteFunc(runtime.Providers(), func(name string) bool { return provider.Of(name).Remote })
	answer := probe.Answer{Version: runtime.Version(), Providers: providers}
	if of == "" {
		return answer
	}
	start := time.Now()
	if err := trySession(ctx, runtime, of, model, beside.Operators, &answer); err != nil {
		answer.Error = err.Error()
		return answer
	}
	answer.Milliseconds = float64(time.Since(start).Microseconds()) / 1000
	return answer
}

// trySession creates a session as the engine does. It adds to the answer the outputs of the model,
// and which provider took which nodes, or the reason why that is unknown.
func trySession(ctx context.Context, runtime *ort.Runtime, of, model string, operators []string, answer *probe.Answer) error {
	options := ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, LogSeverity: ort.LogFatal,
		RecordAssignment: true, Providers: []ort.Provider{{Name: of}}, OpLibraries: operators}
	if behind := provider.Of(of).Behind; behind != "" {
		options.Providers = append(options.Providers, ort.Provider{Name: behind})
	}
	if model == "" {
		return tryTinyModel(ctx, runtime, options)
	}
	session, err := runtime.NewSession(model, options)
	if err != nil {
		return err
	}
	defer session.Close()
	for _, out := range session.Outputs() {
		answer.Outputs = append(answer.Outputs, probe.Output{Name: out.Name, Shape: out.Shape})
	}
	assigned, err := session.Assignment()
	if err != nil {
		answer.Unassigned = err.Error() // the provider works all the same
		return nil
	}
	for _, a := range assigned {
		answer.Assigned = append(answer.Assigned, probe.Nodes(a))
	}
	return nil
}

// tryTinyModel creates a session for the tiny model and runs it.
func tryTinyModel(ctx context.Context, runtime *ort.Runtime, options ort.SessionOptions) error {
	scratch, err := durable.NewScratch("", "tuner-probe-")
	if err != nil {
		return err
	}
	defer scratch.Close() // what stays is removed by the next probe
	path := filepath.Join(scratch.Dir, "probe.onnx")
	if err := os.WriteFile(path, tinyModel, 0o600); err != nil {
		return err
	}
	session, err := runtime.NewSession(path, options)
	if err != nil {
		return err
	}
	defer session.Close()
	return runTinyModel(ctx, runtime, session)
}

// runTinyModel computes 1·1 + 1 four times and checks the sums.
func runTinyModel(ctx context.Context, runtime *ort.Runtime, session *ort.Session) error {
	numbers := func(v float32) []byte {
		return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)), 4)
	}
	one, err := runtime.NewTensor(ort.Float32, []int64{1, 1, 2, 2}, numbers(1))
	if err != nil {
		return err
	}
	defer one.Close()
	outputs, err := session.Run(ctx, []*ort.Tensor{one}, []string{"sum"})
	if err != nil {
		return err
	}
	defer outputs[0].Close()
	if !bytes.Equal(outputs[0].Bytes(), numbers(2)) {
		return fmt.Errorf("it computes 1·1 + 1 = %v", outputs[0].Bytes())
	}
	return nil
}
