//go:build linux && !noengine

package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/precision/conversion"
)

// bench is a folder for conversions, with its own cache. The test is skipped without ONNX Runtime.
type bench struct {
	t   *testing.T
	dir string
}

func newBench(t *testing.T) bench {
	t.Helper()
	if os.Getenv("TUNER_ORT_LIBRARY") == "" {
		t.Skip("needs ONNX Runtime: run 'make test', which sets TUNER_ORT_LIBRARY")
	}
	return bench{t, t.TempDir()}
}

// convert runs tuner convert in the folder, checks the exit code, and returns the output.
func (b bench) convert(want int, args ...string) (stdout, stderr string) {
	b.t.Helper()
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), tuner, append([]string{"convert"}, args...)...)
	var out, errors bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, &out, &errors
	cmd.Env = append(os.Environ(), "TUNER_CACHE="+filepath.Join(b.dir, "cache"))
	if err := cmd.Run(); cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		b.t.Fatalf("tuner convert %s: exit code %d, want %d; stderr:\n%s\nstdout:\n%s", strings.Join(args, " "), code, want, &errors, &out)
	}
	return out.String(), errors.String()
}

// convertJSON is convert --format json.
func (b bench) convertJSON(want int, args ...string) conversion.Document {
	b.t.Helper()
	stdout, _ := b.convert(want, append(args, "--output", "json")...)
	var d conversion.Document
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		b.t.Fatalf("%v in:\n%s", err, stdout)
	}
	return d
}

// Each model that cannot be converted is refused with exit code 2. The message names the problem
// and the remedy.
func TestConvertBadModels(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		model  *onnx.Model
		change func(p *onnxpb.ModelProto)
		size   int64 // of the file; 0: unchanged
		want   []string
	}{
		"custom": {build.Simple(), func(p *onnxpb.ModelProto) { p.Graph.Node[0].Domain = proto.String("my.ops") }, 0,
			[]string{`custom.onnx`, "custom operator my.ops:", "export the model with ONNX's operators alone"}},
		"dynamic_rank": {build.Identity(onnx.Float), func(p *onnxpb.ModelProto) { p.Graph.Input[0].GetType().GetTensorType().Shape = nil }, 0,
			[]string{"dynamic_rank.onnx", "has no shape", "fixed rank"}},
		"old": {build.MLP(), func(p *onnxpb.ModelProto) { p.OpsetImport[0].Version = proto.Int64(9) }, 0,
			[]string{"version 9 of ONNX's operator set", "need 11 or newer", "opset_version="}},
		"new": {build.MLP(), func(p *onnxpb.ModelProto) { p.OpsetImport[0].Version = proto.Int64(99) }, 0,
			[]string{"new.onnx", "does not run it on cpu", "99"}},
		"nan": {build.MLP(), poison, 0, []string{"NaN"}},
		"nothing": {build.Simple(), nil, 0,
			[]string{"int8: cannot convert the model to int8: there is nothing to rewrite"}},
		"huge": {build.MLP(), nil, 1 << 31,
			[]string{"huge.onnx", "more than the 2 GiB", "save it with external data"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bench{t, b.dir}
			p := proto.Clone(c.model.Proto()).(*onnxpb.ModelProto)
			if c.change != nil {
				c.change(p)
			}
			file := name + ".onnx"
			if err := onnx.New(p).Write(filepath.Join(b.dir, file), 0); err != nil {
				t.Fatal(err)
			}
			if c.size > 0 {
				if err := os.Truncate(filepath.Join(b.dir, file), c.size); err != nil {
					t.Skipf("needs a file system with holes: %v", err)
				}
			}
			_, stderr := b.convert(exit.Usage, file, "--precision", "int8", "-o", "out")
			expect(t, stderr, c.want...)
			if _, err := os.Stat(filepath.Join(b.dir, "out", name+".int8.onnx")); err == nil {
				t.Error("a file was written all the same")
			}
		})
	}
}

// poison makes the first element of the largest weight NaN.
func poison(p *onnxpb.ModelProto) {
	largest := slices.MaxFunc(p.Graph.Initializer, func(a, b *onnxpb.TensorProto) int { return len(a.GetRawData()) - len(b.GetRawData()) })
	binary.LittleEndian.PutUint32(largest.RawData, math.Float32bits(float32(math.NaN())))
}

// One element per row has no cosine. This is reported before operators are kept in fp32, with the
// metrics that apply.
func TestConvertLimitThatNothingHas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := build.NewGraph("regression")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	w := g.Floats("w", []float32{1, -2, 3, -4}, 4, 1)
	g.OutputAs("y", g.Node("MatMul", []string{x, w}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1))
	if err := g.Model().Write(filepath.Join(b.dir, "regression.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	stdout, _ := b.convert(exit.Infeasible, "regression.onnx", "--precision", "int8", "--min", "0.99")
	expect(t, strings.Join(strings.Fields(stdout), " "), "no output has the metric of the limit cosine ≥ 0.99; set a limit on one of max_abs_error, ", "(--metric, or constraints.accuracy in a profile)")
	d := b.convertJSON(exit.OK, "regression.onnx", "--precision", "int8", "--metric", "max_abs_error", "--max", "1")
	if v := d.Variants[0]; v.Path == "" || len(v.Rejected) != 0 {
		t.Errorf("%+v", v)
	}
}

// A variant of a model with external data is complete. A model without its external data is
// refused.
func TestConvertExternalData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := filepath.Join(b.dir, "mlp.onnx")
	if err := build.MLP().Write(path, 1); err != nil {
		t.Fatal(err)
	}
	d := b.convertJSON(exit.OK, "mlp.onnx", "--precision", "int8", "--min", "0.99")
	if v := d.Variants[0]; v.Path != "mlp.int8.onnx" || v.Converted == 0 || !d.Synthetic || d.Rows != 64 || len(v.Rejected) != 0 {
		t.Errorf("%+v", d)
	}
	if _, err := onnx.Read(filepath.Join(b.dir, "mlp.int8.onnx")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path + ".data"); err != nil {
		t.Fatal(err)
	}
	_, stderr := b.convert(exit.Usage, "mlp.onnx", "--precision", "int8", "--force")
	expect(t, stderr, "mlp.onnx.data", "is missing; put it beside the model")
}

// fp32 alone makes the batch dimension symbolic. If it is symbolic already, there is nothing to
// write.
func TestConvertFixedBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := build.CNN(1).Write(filepath.Join(b.dir, "cnn.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	stdout, _ := b.convert(exit.OK, "cnn.onnx", "--precision", "fp32", "--min", "0.9999")
	expect(t, stdout, "synthetic data", "cnn.fp32.onnx", "its batch dimension is symbolic now", "accepted")
	m, err := onnx.Read(filepath.Join(b.dir, "cnn.fp32.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Inputs()[0].Shape[0].IsFixed() {
		t.Errorf("the input is %s", m.Inputs()[0])
	}
	stdout, _ = b.convert(exit.OK, "cnn.fp32.onnx", "--precision", "fp32", "-o", "again")
	expect(t, stdout, "the original")
	if _, err := os.Stat(filepath.Join(b.dir, "again")); err == nil {
		t.Error("the original was written again")
	}
}

// Calibration also runs the original, with its own data. fp16 keeps the types of inputs and outputs
// if requested.
func TestConvertStatic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := build.CNN(-1).Write(filepath.Join(b.dir, "cnn.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	d := b.convertJSON(exit.OK, "cnn.onnx", "--precision", "int8_static,fp16", "--keep-io", "--min", "0.99", "--calibration-method", "percentile")
	for _, v := range d.Variants {
		if v.Converted == 0 || len(v.Rejected) != 0 || v.Path != "cnn."+v.Precision+".onnx" {
			t.Errorf("%+v", v)
		}
		m, err := onnx.Read(filepath.Join(b.dir, v.Path))
		if err != nil {
			t.Error(err)
		} else if m.Inputs()[0].Type != onnx.Float || m.Outputs()[0].Type != onnx.Float {
			t.Errorf("%s: %s to %s", v.Precision, m.Inputs()[0], m.Outputs()[0])
		}
	}
	for _, f := range d.Repeats.Outputs {
		if f.NonFinite != 0 || f.MaxAbs > 1e-3 { // two runs of a sound model agree, except for rounding
			t.Errorf("the original compared with itself: %+v", f)
		}
	}
	// If types are not kept, the data is converted to the variant's types.
	d = b.convertJSON(exit.OK, "cnn.onnx", "--precision", "fp16", "--min", "0.99", "-o", "half")
	m, err := onnx.Read(filepath.Join(b.dir, "half", "cnn.fp16.onnx"))
	if err != nil || m.Inputs()[0].Type != onnx.Float16 {
		t.Errorf("%+v: %v", d.Variants, err)
	}
}

// A provider that this machine lacks is a reason for rejection. Without another provider there is
// nothing to write.
func TestConvertProvider(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := build.MLP().Write(filepath.Join(b.dir, "mlp.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	stdout, _ := b.convert(exit.OK, "mlp.onnx", "--precision", "int8", "--ep", "coreml,cpu")
	expect(t, stdout, "int8 on coreml is rejected: ", "int8: mlp.int8.onnx")
	_, stderr := b.convert(exit.Infeasible, "mlp.onnx", "--precision", "int8", "--ep", "coreml", "-o", "none")
	expect(t, stderr, "no variant is accepted on coreml; nothing was written")
}

// Existing files stay, unless they may be replaced. Files with the same content are not rewritten.
func TestConvertKeepsFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := build.MLP().Write(filepath.Join(b.dir, "mlp.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(b.dir, "mlp.int8.onnx")
	if err := os.WriteFile(target, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr := b.convert(exit.Usage, "mlp.onnx", "--precision", "fp16,int8")
	expect(t, stderr, `cannot write "mlp.int8.onnx": it exists; replace it with --force`)
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("the file is now %.20q (%v)", text, err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "cache")); err == nil {
		t.Error("there was work before the file was found")
	}
	b.convert(exit.OK, "mlp.onnx", "--precision", "int8", "--force")
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	d := b.convertJSON(exit.OK, "mlp.onnx", "--precision", "int8", "--force")
	if after, err := os.Stat(target); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same content was written again (%v)", err)
	}
	if v := d.Variants[0]; v.Path != "mlp.int8.onnx" || !v.FromCache {
		t.Errorf("%+v", v)
	}
}

// Files that were made before a failure are written and reported.
func TestConvertFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := build.MLP().Write(filepath.Join(b.dir, "mlp.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	once := "test -e called && echo no more >&2 && exit 1; touch called; echo 0.5"
	if err := os.WriteFile(filepath.Join(b.dir, "metric.sh"), []byte(once), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := b.convert(exit.Usage, "mlp.onnx", "--precision", "int8,fp16", "--metric-command", "sh metric.sh", "--min", "0.5")
	expect(t, stdout, "int8: mlp.int8.onnx", "int8 on cpu is accepted: command is 0.5 (limit: `sh metric.sh` ≥ 0.5)")
	expect(t, stderr, `cannot compute the metric with the command "sh metric.sh": exit status 1: no more`)
	if _, err := onnx.Read(filepath.Join(b.dir, "mlp.int8.onnx")); err != nil {
		t.Error(err)
	}
}

// This is the real model with real sentences. Per-channel int8 has a mean cosine of about 0.993. So
// 0.99 holds directly, 0.995 with some nodes in fp32, and 0.99999 not with two of them.
func TestConvertMiniLM(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	model := filepath.Join(os.Getenv("TUNER_MODELS"), "minilm.onnx")
	data, err := filepath.Abs("../../testdata/accuracy/minilm_sentences.npz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(model); err != nil {
		t.Skip("needs the MiniLM model: run 'make test'")
	}
	args := func(least string, more ...string) []string {
		return append([]string{model, "--precision", "int8", "--data", data, "--min", least}, more...)
	}
	few := "--rows=32" // faster with many variants; the limits leave room for other means

	first := b.convertJSON(exit.OK, args("0.99")...)
	v := first.Variants[0]
	if f := v.Accuracy["cpu"].Outputs["embedding"]; v.Path == "" || v.Converted != 36 || len(v.Kept) != 0 || first.Synthetic || first.Rows != 240 {
		t.Errorf("at 0.99: %+v with %+v", v, f)
	}
	again := b.convertJSON(exit.OK, args("0.99", "--force")...)
	if !again.Variants[0].FromCache || again.Variants[0].Digest != v.Digest {
		t.Errorf("the second time: %+v", again.Variants[0])
	}

	rescued := b.convertJSON(exit.OK, args("0.995", few, "--force")...).Variants[0]
	if n := len(rescued.Kept); n == 0 || n > 9 || rescued.Converted != 36-n || rescued.Bytes <= v.Bytes {
		t.Errorf("at 0.995: %d of 36 nodes are kept, %d converted", n, rescued.Converted)
	}

	stdout, stderr := b.convert(exit.Infeasible, args("0.99999", few, "-o", "rejected", "--max-kept", "6%")...)
	unfolded := strings.ReplaceAll(stdout, "\n  ", " ") // long lines are folded
	expect(t, unfolded, "rejected: cosine is 0.99", "less than 0.99999", "with the 2 most sensitive of 36 nodes in fp32 it is 0.99")
	expect(t, stderr, "no variant is accepted on cpu")
	if _, err := os.Stat(filepath.Join(b.dir, "rejected")); err == nil {
		t.Error("a rejected variant was written")
	}
}
