package onnx_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

func TestExternalDataRoundTrip(t *testing.T) {
	t.Parallel()
	built := build.MLP()
	first, second := t.TempDir(), t.TempDir()
	// A limit of 1 byte moves all tensors of 1 kB and more outside. After another write they stay
	// outside.
	outside := read(t, save(t, built, filepath.Join(first, "m.onnx"), 1))
	moved := read(t, save(t, outside, filepath.Join(second, "n.onnx"), 0))

	for _, m := range []*onnx.Model{outside, moved} {
		if len(m.ExternalFiles()) != 1 || m.ExternalFiles()[0].Location != filepath.Base(m.Path())+".data" {
			t.Fatalf("external files %+v", m.ExternalFiles())
		}
		for i, tensor := range m.Initializers() {
			want, err := built.Data(built.Initializers()[i])
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Data(tensor)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the tensor %q changed", tensor.GetName())
			}
			if isOutside := tensor.GetDataLocation() == onnxpb.TensorProto_EXTERNAL; isOutside != (len(want) >= 1024) {
				t.Errorf("the tensor %q of %d bytes is outside: %v", tensor.GetName(), len(want), isOutside)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(second, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(second, "n.onnx"), filepath.Join(second, "n.onnx.data")}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestDigestCoversExternalData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := read(t, save(t, build.MLP(), filepath.Join(dir, "m.onnx"), 1))
	before := digest(t, m)
	data := m.ExternalFiles()[0].Path
	content, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	writeFile(t, data, content)
	if digest(t, read(t, m.Path())) == before {
		t.Error("a changed weight leaves the digest as it was")
	}
}

func TestReplaceKeepsExternalData(t *testing.T) {
	t.Parallel()
	m := read(t, save(t, build.MLP(), filepath.Join(t.TempDir(), "m.onnx"), 1))
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	p.Graph.Name = proto.String("renamed")
	derived, err := m.Replace(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := derived.Data(derived.Initializers()[0]); err != nil {
		t.Error(err)
	}
	if digest(t, derived) == digest(t, m) {
		t.Error("another content has the same digest")
	}
}

func TestReadChecksExternalData(t *testing.T) {
	t.Parallel()
	check := func(name string, damage func(t *testing.T, dir string, first *onnxpb.TensorProto), want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := read(t, save(t, build.MLP(), filepath.Join(dir, "m.onnx"), 1))
			p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
			damage(t, dir, p.GetGraph().GetInitializer()[0])
			_, err := onnx.Read(writeFile(t, m.Path(), encode(t, p)))
			var problem *onnx.FileError
			if !errors.As(err, &problem) {
				t.Fatalf("error %v is not a *FileError", err)
			}
			for _, w := range want {
				if strings.Count(err.Error(), w) != 1 {
					t.Errorf("error %q does not say %q once", err, w)
				}
			}
		})
	}
	set := func(tensor *onnxpb.TensorProto, key, value string) {
		for _, e := range tensor.GetExternalData() {
			if e.GetKey() == key {
				e.Value = proto.String(value)
			}
		}
	}
	check("missing, once for all tensors", func(t *testing.T, dir string, _ *onnxpb.TensorProto) {
		if err := os.Remove(filepath.Join(dir, "m.onnx.data")); err != nil {
			t.Fatal(err)
		}
	}, "m.onnx.data", "is missing")
	check("truncated", func(t *testing.T, dir string, _ *onnxpb.TensorProto) {
		if err := os.Truncate(filepath.Join(dir, "m.onnx.data"), 40000); err != nil {
			t.Fatal(err)
		}
	}, `"layer1.weight"`)
	check("a folder", func(t *testing.T, dir string, _ *onnxpb.TensorProto) {
		if err := errors.Join(os.Remove(filepath.Join(dir, "m.onnx.data")), os.Mkdir(filepath.Join(dir, "m.onnx.data"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}, "not a regular file")
	check("outside the folder", func(_ *testing.T, _ string, first *onnxpb.TensorProto) { set(first, "location", "../secret") },
		`"../secret"`, "leaves the model's folder")
	check("absolute", func(_ *testing.T, _ string, first *onnxpb.TensorProto) { set(first, "location", "/etc/passwd") },
		"leaves the model's folder")
	check("no location", func(_ *testing.T, _ string, first *onnxpb.TensorProto) { first.ExternalData = nil }, "no location")
	check("bad offset", func(_ *testing.T, _ string, first *onnxpb.TensorProto) { set(first, "offset", "-1") }, `offset "-1"`)
	check("huge offset", func(_ *testing.T, _ string, first *onnxpb.TensorProto) { set(first, "offset", "9223372036854775807") }, "truncated?")
	// layer0.weight is FLOAT[64 128], which takes 32768 bytes.
	check("wrong length", func(_ *testing.T, _ string, first *onnxpb.TensorProto) { set(first, "length", "7") }, "needs 32768 bytes, its external data has 7")
}

func TestWriteLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "m.onnx")
	if err := os.Mkdir(target, 0o755); err != nil { // a file cannot replace a folder
		t.Fatal(err)
	}
	if err := build.MLP().Write(target, 0); err == nil || !strings.Contains(err.Error(), target) {
		t.Errorf("error %v does not name the file", err)
	}
	if err := build.MLP().Write(filepath.Join(dir, "none", "m.onnx"), 0); err == nil {
		t.Error("no error for a missing folder")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Errorf("%d files are left, want the folder alone", len(files))
	}
}

func TestWriteTakesSmallTensorsIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := proto.Clone(build.MLP().Proto()).(*onnxpb.ModelProto)
	bias := p.GetGraph().GetInitializer()[1]
	want := bias.GetRawData()
	if len(want) != 512 { // layer0.bias, FLOAT[128]
		t.Fatalf("%q has %d bytes, the test is about 512", bias.GetName(), len(want))
	}
	writeFile(t, filepath.Join(dir, "bias.bin"), want)
	bias.RawData, bias.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
	bias.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("bias.bin")}}
	outside := read(t, writeFile(t, filepath.Join(dir, "m.onnx"), encode(t, p)))

	inside := read(t, save(t, outside, filepath.Join(t.TempDir(), "n.onnx"), 0))
	if len(inside.ExternalFiles()) > 0 {
		t.Errorf("external files are left: %v", inside.ExternalFiles())
	}
	got, err := inside.Data(inside.Initializer("layer0.bias"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the bias changed")
	}
}
