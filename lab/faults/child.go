package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/onnxruntime"
	"tuner/internal/cli"
	"tuner/internal/exit"
	"tuner/lab/mutation"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite/batch"
	"tuner/model/onnx/rewrite/float16"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/precision"
	"tuner/ort"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
)

// role makes the program a child of itself, which processes the mutations of a batch.
const role = "child"

// addressSpace is the size of a child's address space. A mutation that makes it larger fails, as on
// a machine with too little memory.
const addressSpace = 8 << 30

// line is a child's message about a mutation: first its begin, without a verdict, and then its
// result.
type line struct {
	Number  int
	What    string   `json:",omitempty"` // description of the change
	Verdict string   `json:",omitempty"`
	Faults  []string `json:",omitempty"` // wrong results, and refusals without the required text
	Peak    int64    `json:",omitempty"` // resident memory, in bytes
}

// The verdicts.
const (
	refused = "refused"
	served  = "served"  // the answer equals ONNX Runtime's
	failing = "failing" // loaded, and both refuse the inference
)

// runChild processes the mutations of its arguments, one after the other.
func runChild(ctx context.Context, args []string, out, _ io.Writer) error {
	var model string
	var from, to int
	var seed uint64
	f := flag.NewFlagSet(role, flag.ContinueOnError)
	f.StringVar(&model, "model", "", "model file")
	f.IntVar(&from, "from", 0, "number of the first mutation")
	f.IntVar(&to, "to", 0, "number after the last mutation")
	f.Uint64Var(&seed, "seed", 0, "of the mutations")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: addressSpace, Max: addressSpace}); err != nil {
		return fmt.Errorf("cannot bound the memory: %w", err)
	}
	data, err := os.ReadFile(model)
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	s, err := newSubject(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	lines := json.NewEncoder(out)
	for n := from; n < to; n++ {
		m := mutation.Of(data, seed, n)
		if err := lines.Encode(line{Number: n, What: m.What}); err != nil {
			return err
		}
		result, err := s.try(ctx, m.Data)
		if err != nil {
			return err
		}
		result.Number = n
		if err := lines.Encode(result); err != nil {
			return err
		}
	}
	return nil
}

// subject holds the inputs of a mutation's checks.
type subject struct {
	dir     string // folder of all files
	library *ort.Runtime
	server  *engine.Server
}

func newSubject(ctx context.Context) (*subject, error) {
	build, err := ortlib.Resolve("")
	if err != nil {
		return nil, err
	}
	s := &subject{}
	if s.library, err = ort.Open(build.Library); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "faults-*"); err != nil {
		return nil, fmt.Errorf("cannot make a folder to work in: %w", err)
	}
	if err := os.MkdirAll(s.version(), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make a model repository: %w", err)
	}
	s.server, err = engine.Open(ctx, engine.Options{
		Repositories: []string{filepath.Join(s.dir, "repository")}, Explicit: true, Backend: onnxruntime.New(s.library), Log: slog.New(slog.DiscardHandler),
	})
	return s, err
}

func (s *subject) version() string { return filepath.Join(s.dir, "repository", "m", "1") }
func (s *subject) path() string    { return filepath.Join(s.version(), "model.onnx") }

func (s *subject) close() {
	s.server.Close()
	_ = s.library.Close()
	_ = os.RemoveAll(s.dir)
}

// try runs all checks on a damaged model.
func (s *subject) try(ctx context.Context, data []byte) (line, error) {
	if err := os.WriteFile(s.path(), data, 0o644); err != nil {
		return line{}, fmt.Errorf("cannot write the model: %w", err)
	}
	resetPeak()
	var l line
	l.Faults = append(l.Faults, s.tryInit()...)
	l.Faults = append(l.Faults, s.tryConvert()...)
	verdict, faults := s.tryServe(ctx)
	l.Verdict, l.Faults = verdict, append(l.Faults, faults...)
	l.Peak = peak()
	return l, nil
}

// tryInit runs `tuner init`.
func (s *subject) tryInit() []string {
	out := filepath.Join(s.dir, "init")
	defer os.RemoveAll(out)
	var messages bytes.Buffer
	code := cli.Main([]string{"init", s.path(), "-o", out}, strings.NewReader(""), io.Discard, &messages)
	switch {
	case code == exit.OK:
		return nil
	case code != exit.Usage:
		return []string{fmt.Sprintf("init ends with exit code %d: %s", code, messages.String())}
	case !strings.Contains(messages.String(), s.path()):
		return []string{"init does not name the file: " + messages.String()}
	}
	if left, err := os.ReadDir(out); err == nil && len(left) > 0 {
		return []string{fmt.Sprintf("init refuses the model and leaves %v", left)}
	}
	return nil
}

// tryConvert makes the variants that need no data, and reads them again.
func (s *subject) tryConvert() (faults []string) {
	m, err := onnx.Read(s.path())
	if err != nil {
		return s.named("reading", err)
	}
	if err := precision.CheckSource(m, addon.Libraries{}); err != nil {
		return s.named("checking", err)
	}
	conversions := map[string]func() (*onnx.Model, error){
		"batch": func() (*onnx.Model, error) { return batch.Symbolic(m) },
		"fp16": func() (*onnx.Model, error) {
			v, _, err := float16.Convert(m, float16.Options{})
			return v, err
		},
		"int8": func() (*onnx.Model, error) {
			v, _, err := quantization.Dynamic(m, quantization.Options{})
			return v, err
		},
	}
	path := filepath.Join(s.dir, "variant.onnx")
	for name, convert := range conversions {
		v, err := convert()
		if err != nil {
			if err.Error() == "" {
				faults = append(faults, name+": an error without words")
			}
			continue
		}
		if err := v.Write(path, 0); err != nil {
			faults = append(faults, fmt.Sprintf("%s cannot be written: %v", name, err))
			continue
		}
		if _, err := onnx.Read(path); err != nil {
			faults = append(faults, fmt.Sprintf("%s is not read again: %v", name, err))
		}
	}
	return faults
}

// named returns a fault if an error does not name the model's file.
func (s *subject) named(what string, err error) []string {
	if strings.Contains(err.Error(), s.path()) {
		return nil
	}
	return []string{fmt.Sprintf("%s does not name the file: %v", what, err)}
}

// tryServe loads the model into the engine and sends one request. ONNX Runtime alone gets the same
// request.
func (s *subject) tryServe(ctx context.Context) (verdict string, faults []string) {
	if err := s.server.Load(ctx, "m", engine.Override{}); err != nil {
		if !strings.Contains(err.Error(), "'m'") && !strings.Contains(err.Error(), `"m"`) {
			faults = append(faults, "the refusal to load does not name the model: "+err.Error())
		}
		return refused, faults
	}
	defer func() {
		if err := s.server.Unload("m"); err != nil {
			faults = append(faults, "cannot unload: "+err.Error())
		}
	}()
	request, err := s.request()
	if err != nil {
		return failing, nil // its inputs are unknown
	}
	answer, err := s.server.Infer(ctx, request)
	if err == nil {
		defer answer.Release()
	}
	want, wantErr := s.alone(ctx, request)
	switch {
	case err != nil && wantErr != nil:
		return failing, faults
	case err != nil && strings.Contains(err.Error(), "expected a first dimension of"):
		// The configuration of a model that batches promises a batch dimension, which ONNX Runtime
		// does not check.
		return failing, faults
	case err != nil:
		return failing, append(faults, "the engine refuses what ONNX Runtime computes: "+err.Error())
	case wantErr != nil:
		return served, append(faults, "the engine computes what ONNX Runtime refuses: "+wantErr.Error())
	}
	for _, o := range answer.Outputs {
		if w := want[o.Name]; w.Data != nil && (!slices.Equal(w.Shape, o.Shape) || !near(o.DataType, w.Data, o.Data)) {
			faults = append(faults, fmt.Sprintf("output %q differs from ONNX Runtime's", o.Name))
		}
	}
	return served, faults
}

// request makes an inference request from the model's declared inputs.
func (s *subject) request() (*engine.Request, error) {
	metadata, err := s.server.ModelMetadata("m", 0)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Read(s.path())
	if err != nil {
		return nil, err
	}
	derived, err := inputs.Derive(m, inputs.Options{Default: 4})
	if err != nil {
		return nil, err
	}
	values := inputs.Generate(derived, 1, 7)
	r := &engine.Request{Model: "m"}
	for _, in := range metadata.Inputs {
		t, err := tensor(in, values[in.Name])
		if err != nil {
			return nil, err
		}
		r.Inputs = append(r.Inputs, t)
	}
	return r, nil
}

func tensor(in api.TensorMetadata, v inputs.Tensor) (engine.Tensor, error) {
	t, err := modelconfig.DataTypeOf(in.Datatype)
	if err != nil {
		return engine.Tensor{}, err
	}
	if v.Data == nil {
		return engine.Tensor{}, errors.New("no values")
	}
	return engine.Tensor{Name: in.Name, DataType: t, Shape: v.Shape, Data: v.Data}, nil
}

// alone computes a request with ONNX Runtime alone.
func (s *subject) alone(ctx context.Context, r *engine.Request) (map[string]engine.Tensor, error) {
	session, err := s.library.NewSession(s.path(), ort.SessionOptions{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	var feeds []*ort.Tensor
	for _, info := range session.Inputs() {
		i := slices.IndexFunc(r.Inputs, func(t engine.Tensor) bool { return t.Name == info.Name })
		if i < 0 {
			return nil, fmt.Errorf("no input %q", info.Name)
		}
		feed, err := s.library.NewTensor(info.Type, r.Inputs[i].Shape, r.Inputs[i].Data)
		if err != nil {
			return nil, err
		}
		defer feed.Close()
		feeds = append(feeds, feed)
	}
	var names []string
	for _, info := range session.Outputs() {
		names = append(names, info.Name)
	}
	outputs, err := session.Run(ctx, feeds, names)
	if err != nil {
		return nil, err
	}
	results := map[string]engine.Tensor{}
	for i, o := range outputs {
		results[names[i]] = engine.Tensor{Shape: slices.Clone(o.Shape()), Data: slices.Clone(o.Bytes())}
		o.Close()
	}
	return results, nil
}
