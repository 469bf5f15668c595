//go:build !noengine

package cli

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

	"github.com/spf13/cobra"

	"tuner/modelconfig"
	"tuner/ort"
)

// probeModel adds and subtracts two tensors: the smallest thing that a provider can run.
//
//go:embed probe.onnx
var probeModel []byte

// newProbe is the hidden verb that doctor, profile and run start in a child process: a library or provider that crashes must not
// take them along. Its answer, a probeAnswer, is JSON on stdout; a provider that fails is an answer too.
func newProbe(con console) *cobra.Command {
	var library, provider, model string
	var o optimization
	cmd := &cobra.Command{
		Use:    "probe --library FILE [--provider NAME] [--model FILE] [--optimized FILE]",
		Short:  "Try whether an ONNX Runtime library and a provider work (used by doctor, profile and run)",
		Hidden: true,
		Args:   usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.file != "" {
				return writeJSON(con.out, optimizeModel(library, model, o))
			}
			return writeJSON(con.out, probe(cmd.Context(), library, provider, model))
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "ONNX Runtime library")
	cmd.Flags().StringVar(&provider, "provider", "", "execution provider to create a session with; none: only open the library")
	cmd.Flags().StringVar(&model, "model", "", "model to create the session for; none: a tiny one, which is also run")
	cmd.Flags().StringVar(&o.file, "optimized", "", "file to write the optimized graph of the model to, instead")
	cmd.Flags().IntVar(&o.level, "level", 0, "graph level (modelconfig.GraphLevel)")
	cmd.Flags().BoolVar(&o.external, "external", false, "write the weights into a file of their own")
	return cmd
}

// optimization says how the optimized graph of a model is written.
type optimization struct {
	file     string
	level    int // a modelconfig.GraphLevel
	external bool
}

// optimizeModel writes the graph that ONNX Runtime serves a model with on cpu, and opens the file again, with nothing left to
// optimize: a graph with operators that this build cannot read back is of no use.
func optimizeModel(library, model string, o optimization) probeAnswer {
	runtime, err := ort.Open(library)
	if err != nil {
		return probeAnswer{Error: err.Error()}
	}
	defer runtime.Close()
	options := ort.SessionOptions{IntraOpThreads: 1, LogSeverity: ort.LogFatal, OptimizedModelPath: o.file}
	switch modelconfig.GraphLevel(o.level) {
	case modelconfig.GraphExtended:
		options.GraphOptimization = ort.OptimizeExtended
	case modelconfig.GraphBasic:
		options.GraphOptimization = ort.OptimizeBasic
	case modelconfig.GraphDisabled:
		options.GraphOptimization = ort.OptimizeNothing
	}
	if o.external {
		options.Entries = map[string]string{"session.optimized_model_external_initializers_file_name": filepath.Base(o.file) + ".data",
			"session.optimized_model_external_initializers_min_size_in_bytes": "1024"}
	}
	for _, step := range []struct {
		path    string
		options ort.SessionOptions
	}{{model, options}, {o.file, ort.SessionOptions{IntraOpThreads: 1, LogSeverity: ort.LogFatal, GraphOptimization: ort.OptimizeNothing}}} {
		session, err := runtime.NewSession(step.path, step.options)
		if err == nil {
			err = session.Close()
		}
		if err != nil {
			return probeAnswer{Version: runtime.Version(), Error: err.Error()}
		}
	}
	return probeAnswer{Version: runtime.Version()}
}

// probe opens the library, and creates a session with the provider unless that is "".
func probe(ctx context.Context, library, provider, model string) probeAnswer {
	runtime, err := ort.Open(library)
	if err != nil {
		return probeAnswer{Error: err.Error()}
	}
	defer runtime.Close()
	// The azure provider only forwards to a remote service; it is no way to run a model here.
	providers := slices.DeleteFunc(runtime.Providers(), func(name string) bool { return name == "azure" })
	answer := probeAnswer{Version: runtime.Version(), Providers: providers}
	if provider == "" {
		return answer
	}
	start := time.Now()
	assigned, unassigned, err := trySession(ctx, runtime, provider, model)
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	answer.Milliseconds = float64(time.Since(start).Microseconds()) / 1000
	answer.Assigned, answer.Unassigned = assigned, unassigned
	return answer
}

// trySession creates a session as the engine does, and tells which provider took which nodes, or why nobody knows.
func trySession(ctx context.Context, runtime *ort.Runtime, provider, model string) (nodes []assignedNodes, unknown string, err error) {
	options := ort.SessionOptions{IntraOpThreads: 1, LogSeverity: ort.LogFatal, RecordAssignment: true, Providers: []ort.Provider{{Name: provider}}}
	if provider == "tensorrt" {
		options.Providers = append(options.Providers, ort.Provider{Name: "cuda"})
	}
	if model == "" {
		return nil, "", tryProbeModel(ctx, runtime, options)
	}
	session, err := runtime.NewSession(model, options)
	if err != nil {
		return nil, "", err
	}
	defer session.Close()
	assigned, err := session.Assignment()
	if err != nil {
		return nil, err.Error(), nil // the provider works all the same
	}
	for _, a := range assigned {
		nodes = append(nodes, assignedNodes(a))
	}
	return nodes, "", nil
}

// tryProbeModel creates a session for the tiny model and runs it.
func tryProbeModel(ctx context.Context, runtime *ort.Runtime, options ort.SessionOptions) error {
	dir, err := os.MkdirTemp("", "tuner-probe-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "probe.onnx")
	if err := os.WriteFile(path, probeModel, 0o600); err != nil {
		return err
	}
	session, err := runtime.NewSession(path, options)
	if err != nil {
		return err
	}
	defer session.Close()
	return runProbeModel(ctx, runtime, session)
}

// runProbeModel computes 1+1 four times and checks the sums.
func runProbeModel(ctx context.Context, runtime *ort.Runtime, session *ort.Session) error {
	numbers := func(v float32) []byte {
		return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)), 4)
	}
	one, err := runtime.NewTensor(ort.Float32, []int64{1, 4}, numbers(1))
	if err != nil {
		return err
	}
	defer one.Close()
	outputs, err := session.Run(ctx, []*ort.Tensor{one, one}, []string{"sum"})
	if err != nil {
		return err
	}
	defer outputs[0].Close()
	if !bytes.Equal(outputs[0].Bytes(), numbers(2)) {
		return fmt.Errorf("it computes 1 + 1 = %v", outputs[0].Bytes())
	}
	return nil
}
