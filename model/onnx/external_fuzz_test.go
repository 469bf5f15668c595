package onnx_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// FuzzExternal reads a model whose file gives the places of its weights. For every such file, only
// files in the model's folder are read, and not more bytes than they have.
func FuzzExternal(f *testing.F) {
	f.Add("w.data", "0", "16", int64(4))
	f.Add("../outside", "0", "", int64(4))
	f.Add("link", "", "", int64(4))
	f.Add("./a/../w.data", "9223372036854775807", "1", int64(1<<62))
	f.Add("w.data\x00x", "-1", "0x10", int64(-1))
	folder := f.TempDir()
	dir := filepath.Join(folder, "model")
	secret := strings.Repeat("secret", 10)
	if err := os.Mkdir(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(folder, "outside"): secret, filepath.Join(dir, "w.data"): strings.Repeat("weight", 10)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "link")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, location, offset, length string, size int64) {
		entry := func(key, value string) *onnxpb.StringStringEntryProto {
			return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
		}
		data, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: &onnxpb.GraphProto{
			Initializer: []*onnxpb.TensorProto{{
				Name: proto.String("w"), DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{size}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
				ExternalData: []*onnxpb.StringStringEntryProto{entry("location", location), entry("offset", offset), entry("length", length)},
			}},
		}})
		if err != nil {
			return // not UTF-8, which every model file is
		}
		defer alloctest.Bound(t, len(data))()
		m, err := onnx.Parse(filepath.Join(dir, "m.onnx"), data)
		if err != nil {
			return
		}
		for _, file := range m.ExternalFiles() {
			if at, err := filepath.EvalSymlinks(file.Path); err != nil || filepath.Dir(at) != dir {
				t.Errorf("location %q is %q, %v", location, at, err)
			}
		}
		if w, err := m.Data(m.Initializer("w")); err == nil && (strings.Contains(string(w), "secret") || int64(len(w)) != 4*size) {
			t.Errorf("location %q gives %q", location, w)
		}
	})
}
