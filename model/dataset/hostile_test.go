package dataset_test

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/alloctest"
	"tuner/model/dataset"
	"tuner/model/onnx"
)

// bomb writes an .npz file whose arrays have the given headers and contain zeros. The file is a
// thousandth of its unpacked size.
func bomb(t *testing.T, size int, headers map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bomb.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for name, header := range headers {
		entry, err := w.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		header = "\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), byte(len(header) >> 8)}) + header
		for _, part := range []string{header, strings.Repeat("\x00", size)} {
			if _, err := entry.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func header(descr, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
}

// An array that does not match the model, or that unpacks to far more than its file, costs only its
// header.
func TestBombsAreNotUnpacked(t *testing.T) {
	const size = 4 << 20 // bytes of the data
	batch, text := onnx.Symbol("batch"), oneInput(onnx.String, onnx.Symbol("batch"), onnx.Symbol("words"))
	number := oneInput(onnx.Float, batch, onnx.Fixed(4))
	check := func(what string, m *onnx.Model, headers map[string]string, want string) {
		path := bomb(t, size, headers)
		var err error
		if n := alloctest.Bytes(func() { _, err = dataset.Read(path, m) }); n > 2<<20 {
			t.Errorf("%s: %d bytes were allocated", what, n)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
	}
	check("text for numbers", number, map[string]string{"x": header("|S1", "(1048576, 4)")}, "it is STRING instead of FLOAT")
	check("another name", number, map[string]string{"x": header("<f4", "(262144, 4)"), "z": header("<f4", "(262144, 4)")}, `the array "z" is not one of the model's inputs`)
	check("another shape", number, map[string]string{"x": header("<f4", "(524288, 2)")}, "its shape [524288 2] does not fit")
	check("no labels", number, map[string]string{"x": header("<f4", "(262144, 4)"), "label": header("<f4", "(1048576,)")}, `the array "label"`)
	check("text without end", text, map[string]string{"x": header("|S1", "(2048, 2048)")}, "np.savez")
}

// A text element costs its bytes and their position.
func TestTextIsStoredOnce(t *testing.T) {
	const n = 1 << 18
	for descr, width := range map[string]int{"|S1": 1, "<U1": 4} {
		path := bomb(t, n*width, map[string]string{"x": header(descr, "(512, 512)")})
		var err error
		used := alloctest.Bytes(func() { _, err = dataset.Read(path, oneInput(onnx.String, onnx.Symbol("batch"), onnx.Symbol("words"))) })
		if most := uint64(n*(24+3*width) + 1<<20); err != nil || used > most {
			t.Errorf("%s: %d bytes for %d elements, want %d at most (%v)", descr, used, n, most, err)
		}
	}
}

// An archive with many arrays gives a message with a few of them.
func TestManyNames(t *testing.T) {
	t.Parallel()
	headers := map[string]string{}
	for i := range 5000 {
		headers[fmt.Sprint("array_", i)] = header("<f4", "(0, 4)")
	}
	_, err := dataset.Read(bomb(t, 0, headers), oneInput(onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4)))
	if err == nil || len(err.Error()) > 5000 || !strings.Contains(err.Error(), "more") {
		t.Errorf("%d bytes: %.300v", len(fmt.Sprint(err)), err)
	}
}
