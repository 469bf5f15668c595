package ort

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/sessionoption"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if r, err := shared(); err == nil {
		for range 2 { // a second Close is safe
			if err := r.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// A process can open the library only once, so all integration tests share it.
var shared = sync.OnceValues(func() (*Runtime, error) { return Open(os.Getenv("TUNER_ORT_LIBRARY")) })

func testRuntime(t testing.TB) *Runtime {
	t.Helper()
	if os.Getenv("TUNER_ORT_LIBRARY") == "" {
		t.Skip("needs ONNX Runtime: run 'make test', or set TUNER_ORT_LIBRARY to the library's path")
	}
	r, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func model(name string) string { return filepath.Join("..", "testdata", "ort", name+".onnx") }

func testSession(t testing.TB, name string, o SessionOptions) *Session {
	t.Helper()
	s, err := testRuntime(t).NewSession(model(name), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func testTensor(t *testing.T, elementType ElementType, shape []int64, data []byte) *Tensor {
	t.Helper()
	tensor, err := testRuntime(t).NewTensor(elementType, shape, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tensor.Close)
	return tensor
}

func floats(values ...float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

func run(t *testing.T, s *Session, inputs []*Tensor, outputs ...string) []*Tensor {
	t.Helper()
	results, err := s.Run(context.Background(), inputs, outputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Cleanup(r.Close)
	}
	return results
}

// Not parallel: it must run before the parallel tests open the library.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "libonnxruntime.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{filepath.Join(dir, "absent.so"), "no such file; install a working one with 'tuner runtime install cpu'"},
		{dir, "it is a folder"},
		{text, "tuner runtime install cpu"},
	}
	for _, tt := range tests {
		_, err := Open(tt.path)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("Open(%q): error %v, want one with %q", tt.path, err, tt.want)
		}
	}
}

func TestSessionDescribesItsModel(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	// The file declares diff as [m, 4]. ONNX Runtime has inferred the shape, but keeps unknown
	// dimensions unknown.
	wantInputs := []TensorInfo{{"x", Float32, []int64{-1, 4}}, {"y", Float32, []int64{-1, 4}}}
	wantOutputs := []TensorInfo{{"sum", Float32, []int64{-1, 4}}, {"diff", Float32, []int64{-1, 4}}}
	if diff := cmp.Diff(wantInputs, s.Inputs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantOutputs, s.Outputs()); diff != "" {
		t.Error(diff)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	x := testTensor(t, Float32, []int64{1, 4}, floats(1, 2, 3, 4))
	y := testTensor(t, Float32, []int64{1, 4}, floats(10, 20, 30, 40))
	outputs := run(t, s, []*Tensor{x, y}, "diff", "sum")
	if diff := cmp.Diff(floats(-9, -18, -27, -36), outputs[0].Bytes()); diff != "" {
		t.Errorf("diff: %s", diff)
	}
	if diff := cmp.Diff(floats(11, 22, 33, 44), outputs[1].Bytes()); diff != "" {
		t.Errorf("sum: %s", diff)
	}
	if diff := cmp.Diff([]int64{1, 4}, outputs[1].Shape()); diff != "" {
		t.Errorf("shape: %s", diff)
	}
}

// The test fills one buffer for each run. The tensor always has the current content.
func TestRunReusesBuffer(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	buffer, err := NewBuffer(32)
	if err != nil {
		t.Fatal(err)
	}
	defer buffer.Close()
	x := testTensor(t, Float32, []int64{1, 4}, buffer.Bytes()[:16])
	y := testTensor(t, Float32, []int64{1, 4}, buffer.Bytes()[16:])
	for round := range 3 {
		v := float32(round)
		copy(buffer.Bytes(), floats(v, v, v, v, 1, 1, 1, 1))
		if diff := cmp.Diff(floats(v+1, v+1, v+1, v+1), run(t, s, []*Tensor{x, y}, "sum")[0].Bytes()); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
}

func TestIdentityOfEachType(t *testing.T) {
	t.Parallel()
	s := testSession(t, "identities", SessionOptions{})
	for _, length := range []int{0, 3} {
		data := make([]byte, 3*8)
		for i := range data {
			data[i] = byte(i % 2) // any bit pattern, except for bool, which has only 0 and 1
		}
		words := []string{"", "a\x00b\xff", "grüße"}[:length]
		var inputs []*Tensor
		var names []string
		for _, info := range s.Inputs() {
			names = append(names, info.Name+"_out")
			if info.Type != String {
				inputs = append(inputs, testTensor(t, info.Type, []int64{int64(length)}, data[:length*info.Type.Size()]))
				continue
			}
			tensor, err := testRuntime(t).NewStringTensor([]int64{int64(length)}, [][]byte{wire(words...)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tensor.Close)
			inputs = append(inputs, tensor)
		}
		for i, output := range run(t, s, inputs, names...) {
			if output.Type() != inputs[i].Type() || output.Shape()[0] != int64(length) {
				t.Errorf("%s: type %v, shape %v", names[i], output.Type(), output.Shape())
			}
			if diff := cmp.Diff(string(inputs[i].Bytes()), string(output.Bytes())); diff != "" {
				t.Errorf("%s: %s", names[i], diff)
			}
			if output.Type() != String {
				continue
			}
			got, err := output.Strings()
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(string(wire(words...)), string(got)); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// wire returns strings in the form that tensors have.
func wire(texts ...string) []byte {
	var b []byte
	for _, text := range texts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return b
}

// For any number of strings, Go allocates only the tensor, and for an output twice. ONNX Runtime
// allocates the memory of the strings.
func TestStringsAllocateLittle(t *testing.T) {
	r := testRuntime(t)
	for _, count := range []int{10, 10_000} {
		shape, parts := []int64{int64(count)}, [][]byte{make([]byte, 4*count)}
		var tensor *Tensor
		in := testing.AllocsPerRun(10, func() {
			var err error
			if tensor, err = r.NewStringTensor(shape, parts); err != nil {
				t.Fatal(err)
			}
			tensor.Close()
		})
		tensor, err := r.NewStringTensor(shape, parts)
		if err != nil {
			t.Fatal(err)
		}
		out := testing.AllocsPerRun(10, func() {
			if got, err := tensor.Strings(); err != nil || len(got) != 4*count {
				t.Fatal(err, len(got))
			}
		})
		tensor.Close()
		if in > 8 || out > 4 {
			t.Errorf("%d strings: %v allocations to make a tensor of them, %v to read it", count, in, out)
		}
	}
}

func TestScalar(t *testing.T) {
	t.Parallel()
	s := testSession(t, "scalar", SessionOptions{})
	output := run(t, s, []*Tensor{testTensor(t, Float32, nil, floats(3))}, "y")[0]
	if diff := cmp.Diff(floats(-3), output.Bytes()); diff != "" || len(output.Shape()) != 0 {
		t.Errorf("shape %v: %s", output.Shape(), diff)
	}
}

// Unaligned bytes give the same result. A tensor in the middle of a request body may be unaligned.
func TestUnalignedInput(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	body := append([]byte{0}, floats(1, 2, 3, 4)...)
	x := testTensor(t, Float32, []int64{1, 4}, body[1:])
	if diff := cmp.Diff(floats(2, 4, 6, 8), run(t, s, []*Tensor{x, x}, "sum")[0].Bytes()); diff != "" {
		t.Error(diff)
	}
}

func TestExternalData(t *testing.T) {
	t.Parallel()
	s := testSession(t, "external", SessionOptions{})
	x := testTensor(t, Float32, []int64{1, 4}, floats(0, 0, 0, 0))
	if diff := cmp.Diff(floats(1, 2, 3, 4), run(t, s, []*Tensor{x}, "y")[0].Bytes()); diff != "" {
		t.Error(diff)
	}
}

func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 50 {
				v := float32(g*1000 + i)
				x, err := s.runtime.NewTensor(Float32, []int64{1, 4}, floats(v, v, v, v))
				if err != nil {
					t.Error(err)
					return
				}
				outputs, err := s.Run(context.Background(), []*Tensor{x, x}, []string{"sum"})
				if err != nil {
					t.Error(err)
					return
				}
				if diff := cmp.Diff(floats(2*v, 2*v, 2*v, 2*v), outputs[0].Bytes()); diff != "" {
					t.Error(diff)
				}
				outputs[0].Close()
				x.Close()
			}
		})
	}
	wait.Wait()
}

// Close waits for runs in progress. Later runs fail cleanly.
func TestCloseDuringRuns(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
	x := testTensor(t, Float32, []int64{1, 4}, floats(1, 2, 3, 4))
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				outputs, err := s.Run(context.Background(), []*Tensor{x, x}, []string{"sum"})
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				outputs[0].Close()
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()
}

func TestCancelledRun(t *testing.T) {
	t.Parallel()
	s := testSession(t, "count", SessionOptions{})
	forever := binary.LittleEndian.AppendUint64(nil, math.MaxInt64)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Run(ctx, []*Tensor{testTensor(t, Int64, nil, forever)}, []string{"y"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestNewSessionErrors(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	garbage := filepath.Join(t.TempDir(), "garbage.onnx")
	if err := os.WriteFile(garbage, []byte("not an ONNX file"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		options    SessionOptions
		code       ErrorCode // 0: not an error of ONNX Runtime
		want       string
	}{
		{"no file", "missing.onnx", SessionOptions{}, CodeNoSuchFile, "missing.onnx"},
		{"no model", garbage, SessionOptions{}, CodeInvalidProtobuf, "onnx runtime error 7: Load model from " + garbage + " failed:Protobuf parsing failed."},
		{"sequence", model("sequence"), SessionOptions{}, 0, `Unsupported ONNX Type 'ONNX_TYPE_SEQUENCE' for I/O 's'`},
		{"threads", model("add_sub"), SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "-1"}}, 0, `cannot set intra_op_threads to "-1"`},
		{"provider", model("add_sub"), SessionOptions{Providers: []Provider{{Name: "abacus"}}}, 0, `cannot use execution provider "abacus"`},
		{"cpu options", model("add_sub"), SessionOptions{Providers: []Provider{{Name: "cpu", Options: map[string]string{"a": "b"}}}}, 0, "takes no options"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := r.NewSession(tt.path, tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want one with %q", err, tt.want)
			}
			var native *Error
			if isNative := errors.As(err, &native); isNative != (tt.code != 0) || isNative && native.Code != tt.code {
				t.Errorf("error %#v, want code %d", err, tt.code)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	s := testSession(t, "gather", SessionOptions{})
	index := func(i uint64) *Tensor {
		return testTensor(t, Int64, []int64{1}, binary.LittleEndian.AppendUint64(nil, i))
	}
	closed := index(0)
	closed.Close()
	tests := []struct {
		name   string
		inputs []*Tensor
		output string
		want   string
	}{
		{"no inputs", nil, "y", "it has 1 inputs, found 0"},
		{"closed tensor", []*Tensor{closed}, "y", `the tensor for input "i" is closed`},
		{"unknown output", []*Tensor{index(0)}, "z", `it has no output "z"`},
		{"wrong type", []*Tensor{testTensor(t, Float32, []int64{1}, floats(1))}, "y", "onnx runtime error 2: Unexpected input data type"},
		{"index too large", []*Tensor{index(7)}, "y", "onnx runtime error 2: Non-zero status code returned while running Gather node."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Run(context.Background(), tt.inputs, []string{tt.output})
			if err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "cannot run the model: "), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	s := testSession(t, "add_sub", SessionOptions{})
	x := testTensor(t, Float32, []int64{1, 4}, floats(1, 2, 3, 4))
	buffer, err := NewBuffer(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		x.Close()
		buffer.Close()
	}
	y := testTensor(t, Float32, []int64{1, 4}, floats(1, 2, 3, 4))
	if _, err := s.Run(context.Background(), []*Tensor{y, y}, []string{"sum"}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

func TestRuntime(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	if !strings.HasPrefix(r.Version(), "1.") {
		t.Errorf("version %q", r.Version())
	}
	if providers := r.Providers(); len(providers) == 0 || providers[len(providers)-1] != "cpu" {
		t.Errorf("providers %q, want cpu at the end", providers)
	}
	if _, err := Open(r.Library()); err == nil || !strings.Contains(err.Error(), "opened one already") {
		t.Errorf("second Open: error %v", err)
	}
}

// BenchmarkRun measures the cost of a run beside the computing: two tensors, a tiny model, two
// outputs.
func BenchmarkRun(b *testing.B) {
	if os.Getenv("TUNER_ORT_LIBRARY") == "" {
		b.Skip("needs ONNX Runtime: set TUNER_ORT_LIBRARY to the library's path")
	}
	r, err := shared()
	if err != nil {
		b.Fatal(err)
	}
	s, err := r.NewSession(model("add_sub"), SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	data := floats(1, 2, 3, 4)
	b.ReportAllocs()
	for b.Loop() {
		x, err := r.NewTensor(Float32, []int64{1, 4}, data)
		if err != nil {
			b.Fatal(err)
		}
		outputs, err := s.Run(context.Background(), []*Tensor{x, x}, []string{"sum", "diff"})
		if err != nil {
			b.Fatal(err)
		}
		outputs[0].Close()
		outputs[1].Close()
		x.Close()
	}
}
