package onnx_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

func encode(t testing.TB, p proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// changed returns a modified copy of the MLP.
func changed(t testing.TB, change func(*onnxpb.ModelProto)) []byte {
	t.Helper()
	p := proto.Clone(build.MLP().Proto()).(*onnxpb.ModelProto)
	change(p)
	return encode(t, p)
}

func TestReadRefusesWhatIsNoModel(t *testing.T) {
	t.Parallel()
	check := func(name, file string, content []byte, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, filepath.Join(t.TempDir(), file), content)
			_, err := onnx.Read(path)
			var problem *onnx.FileError
			if !errors.As(err, &problem) {
				t.Fatalf("error %v is not a *FileError", err)
			}
			for _, w := range append(want, path) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
	mlp := encode(t, build.MLP().Proto())
	check("empty", "m.onnx", nil, "it is empty")
	check("text", "m.onnx", []byte("Größe: this is a text\nwith lines\n"), "text")
	check("json", "m.onnx", []byte(`{"model": 1}`), "text")
	check("text whose letters are tags", "m.onnx", []byte("rest\n"), "text")
	check("git lfs", "m.onnx", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "Git LFS pointer", "git lfs pull")
	check("zip, PyTorch", "m.pt", []byte("PK\x03\x04\x00\x00model/data.pkl"), "zip archive", "torch.onnx.export")
	check("pickle", "m.pth", []byte("\x80\x02}q\x00."), "pickle", "torch.onnx.export")
	check("keras", "m.h5", []byte("\x89HDF\r\n\x1a\n\x00"), "HDF5")
	check("gzip", "m.onnx.gz", []byte("\x1f\x8b\x08\x00\x00"), "gzip")
	check("tflite", "m.tflite", []byte("\x1c\x00\x00\x00TFL3\x00"), "TensorFlow Lite")
	check("ort format", "m.ort", []byte("\x18\x00\x00\x00ORTM\x00"), ".ort")
	check("safetensors", "m.safetensors", append(binary.LittleEndian.AppendUint64(nil, 20), `{"a":{"dtype":"F32"}}`...), "safetensors")
	check("random bytes", "m.onnx", []byte{0xff, 0xfe, 0x00, 0x9c, 0x13}, "not an ONNX file")

	// A frozen TensorFlow graph begins with a node: field 1, a message. Its fields 1 and 2 are name
	// and operator.
	node := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "x")
	node = protowire.AppendString(protowire.AppendTag(node, 2, protowire.BytesType), "Placeholder")
	check("TensorFlow", "frozen.pb", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), node), "TensorFlow", "tf2onnx")

	check("truncated", "m.onnx", mlp[:len(mlp)/2], "truncated")
	check("cut between fields", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.OpsetImport = nil }), "opset_import", "cut off")
	check("damaged", "m.onnx", append([]byte{8, 8, 0x3a, 2, 0x0a, 9}, mlp[len(mlp)-20:]...), "")
	check("no graph", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph = nil }), "no graph")
	check("empty graph", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Node = nil }), "empty")
	check("no outputs", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Output = nil }), "no outputs")
	check("value defined twice", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Node = append(p.Graph.Node, p.Graph.Node[0]) }), "twice")
	check("unnamed input", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Input[0].Name = nil }), "input 0 has no name")
	check("input twice", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Input = append(p.Graph.Input, p.Graph.Input[0]) }), `two inputs "INPUT"`)
	check("input not in UTF-8", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Input[0].Name = proto.String("x\xff") }), `input "x\xff" is not UTF-8`)
	check("output not in UTF-8", "m.onnx", changed(t, func(p *onnxpb.ModelProto) { p.Graph.Output[0].Name = proto.String("y\xff") }), `output "y\xff" is not UTF-8`)
	check("sequence input", "m.onnx", encode(t, build.SequenceInput().Proto()), `"INPUT"`, "(sequence)", "tensors only")
	check("complex output", "m.onnx", changed(t, func(p *onnxpb.ModelProto) {
		p.Graph.Output[0].Type.GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_COMPLEX64))
	}), `output "OUTPUT"`, "COMPLEX64")
}

func TestReadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(want string) {
		t.Helper()
		if _, err := onnx.Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	check("it is a folder; name the .onnx file")
	writeFile(t, filepath.Join(dir, "saved_model.pb"), []byte{8, 1})
	check("SavedModel")
	if err := os.Mkdir(filepath.Join(dir, "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	check("SavedModel")
	inside := writeFile(t, filepath.Join(dir, "1", "model.onnx"), nil)
	check("did you mean \"" + inside)
}

func TestReadMissingFile(t *testing.T) {
	t.Parallel()
	if _, err := onnx.Read(filepath.Join(t.TempDir(), "none.onnx")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

// No input makes Parse or the graph view panic or use too much memory. Every accepted model
// survives writing and reading.
func FuzzParse(f *testing.F) {
	for _, m := range []*onnx.Model{build.Simple(), build.ConstantTime(2), build.SequenceInput(), build.Identity(onnx.String)} {
		data := encode(f, m.Proto())
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add(changed(f, func(p *onnxpb.ModelProto) {
		t := p.Graph.Initializer[0]
		t.RawData, t.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
		t.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("../x")}}
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m *onnx.Model
		var err error
		// The limit is twice the memory of a file's parts: the graph view comes on top, and memory
		// that grew counts twice.
		if used := alloctest.Bytes(func() { m, err = onnx.Parse("/nonexistent/model.onnx", data) }); used > uint64(2*(64<<20+32*len(data))) {
			t.Errorf("%d bytes took %d", len(data), used)
		}
		if err != nil {
			return
		}
		for _, v := range append(m.Inputs(), m.Outputs()...) {
			_ = v.String()
			m.Consumers(v.Name)
		}
		for _, i := range m.Initializers() {
			if raw, err := m.Data(i); err == nil && len(raw) > len(data)*16 {
				t.Errorf("the tensor %q has %d bytes, the whole file %d", i.GetName(), len(raw), len(data))
			}
		}
		again, err := onnx.Parse("/nonexistent/model.onnx", encode(t, m.Proto()))
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		// The comparison uses bytes. proto.Equal would treat two NaNs as equal, but is slow on deep
		// graphs.
		if string(encode(t, again.Proto())) != string(encode(t, m.Proto())) {
			t.Error("the model changed by writing and reading")
		}
	})
}

// A file beyond protobuf's limit is refused before it is read. The test file is sparse.
func TestReadTooLarge(t *testing.T) {
	t.Parallel()
	path := writeFile(t, filepath.Join(t.TempDir(), "m.onnx"), encode(t, build.MLP().Proto()))
	if err := os.Truncate(path, 1<<31); err != nil {
		t.Skipf("needs a file system with holes: %v", err)
	}
	_, err := onnx.Read(path)
	var file *onnx.FileError
	if !errors.As(err, &file) || !strings.Contains(err.Error(), "it has 2147483648 bytes, more than the 2 GiB") || !strings.Contains(err.Error(), "save_as_external_data") {
		t.Errorf("error %v", err)
	}
}
