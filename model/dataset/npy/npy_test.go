package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// file makes a .npy file of version 1 with a header text.
func file(header string, data ...byte) []byte {
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(out, header...), data...)
}

// dict makes the text of a usual header.
func dict(descr, order, shape string) string {
	return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }"
}

func read(data []byte) (inputs.Tensor, error) {
	return npy.Read(bytes.NewReader(data), int64(len(data)))
}

func TestRead(t *testing.T) {
	t.Parallel()
	check := func(name string, data []byte, want inputs.Tensor) {
		got, err := read(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	numbers := func(typ onnx.DataType, data []byte, shape ...int64) inputs.Tensor {
		return inputs.Tensor{Type: typ, Shape: shape, Data: data}
	}
	text := func(values ...string) inputs.Tensor {
		out := inputs.Tensor{Type: onnx.String, Shape: []int64{int64(len(values))}}
		for _, v := range values {
			out.Strings = append(out.Strings, []byte(v))
		}
		return out
	}
	check("bytes", file(dict("|u1", "False", "(2, 3)"), 1, 2, 3, 4, 5, 6), numbers(onnx.Uint8, []byte{1, 2, 3, 4, 5, 6}, 2, 3))
	check("a row", file(dict("<i2", "False", "(2,)"), 1, 0, 255, 255), numbers(onnx.Int16, []byte{1, 0, 255, 255}, 2))
	check("big-endian", file(dict(">i4", "False", "(1,)"), 1, 2, 3, 4), numbers(onnx.Int32, []byte{4, 3, 2, 1}, 1))
	check("half", file(dict("<f2", "False", "(1,)"), 0, 0x3c), numbers(onnx.Float16, []byte{0, 0x3c}, 1))
	check("truths", file(dict("|b1", "False", "(3,)"), 0, 1, 7), numbers(onnx.Bool, []byte{0, 1, 1}, 3))
	check("a scalar", file(dict("<u2", "False", "()"), 9, 0), inputs.Tensor{Type: onnx.Uint16, Shape: []int64{}, Data: []byte{9, 0}})
	check("empty", file(dict("<f4", "False", "(0, 4)")), numbers(onnx.Float, []byte{}, 0, 4))
	check("Python 2", file(dict("<u1", "False", "(1L, 2L)"), 1, 2), numbers(onnx.Uint8, []byte{1, 2}, 1, 2))
	check("other spacing", file(`{"shape":(2,),"fortran_order":False,"descr":"u1"}`+"   \n", 1, 2), numbers(onnx.Uint8, []byte{1, 2}, 2))
	// [[1 2 3] [4 5 6]] column by column. With one index, both orders are the same.
	check("columns first", file(dict("|i1", "True", "(2, 3)"), 1, 4, 2, 5, 3, 6), numbers(onnx.Int8, []byte{1, 2, 3, 4, 5, 6}, 2, 3))
	check("columns first, one index", file(dict("|i1", "True", "(3,)"), 1, 2, 3), numbers(onnx.Int8, []byte{1, 2, 3}, 3))
	// a[i][j][k] = 4i + 2j + k, with the first index fastest, as two big-endian bytes.
	check("first index fastest, big-endian", file(dict(">u2", "True", "(2, 2, 2)"), 0, 0, 0, 4, 0, 2, 0, 6, 0, 1, 0, 5, 0, 3, 0, 7),
		numbers(onnx.Uint16, []byte{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0}, 2, 2, 2))
	check("bytes as text", file(dict("|S3", "False", "(2,)"), 'a', 'b', 'c', 'd', 0, 0), text("abc", "d"))
	check("text", file(dict("<U2", "False", "(2,)"), 0xe9, 0, 0, 0, 'x', 0, 0, 0, 0x17, 0x53, 0, 0, 0, 0, 0, 0), text("éx", "北"))
	check("text, big-endian", file(dict(">U1", "False", "(1,)"), 0, 0, 0x53, 0x17), text("北"))
}

func TestReadVersions(t *testing.T) {
	t.Parallel()
	header := dict("|u1", "False", "(1,)")
	for _, version := range []byte{2, 3} {
		data := append([]byte("\x93NUMPY"), version, 0)
		data = binary.LittleEndian.AppendUint32(data, uint32(len(header)))
		data = append(append(data, header...), 42)
		got, err := read(data)
		if err != nil || !cmp.Equal(got.Data, []byte{42}) {
			t.Errorf("version %d: %v, %v", version, got, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	refuse := func(name string, data []byte, want string) {
		if _, err := read(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refuse("nothing", nil, "it is not a NumPy array file")
	refuse("another file", []byte("PK\x03\x04 and so on"), "it is not a NumPy array file")
	refuse("a new version", []byte("\x93NUMPY\x09\x00\x00\x00"), "its format version 9")
	refuse("torn header", file(dict("<f4", "False", "(1,)"))[:20], "truncated")
	refuse("torn length", []byte("\x93NUMPY\x01\x00\x00"), "truncated")
	refuse("a giant header", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "its header of 4294967295 bytes is longer")
	refuse("torn data", file(dict("<f4", "False", "(2,)"), 0, 0, 0, 0), "announces 8 bytes (shape [2]), but the file has 4")
	refuse("more data", file(dict("|u1", "False", "(1,)"), 1, 2), "announces 1 bytes (shape [1]), but the file has 2")
	refuse("a giant array", file(dict("<f4", "False", "(1000000, 1000000)")), "announces 4000000000000 bytes")
	refuse("an impossible shape", file(dict("<f4", "False", "(9223372036854775807, 9)")), "impossible")
	refuse("an impossible size", file(dict("<f8", "False", "(9223372036854775807,)")), "impossible")
	refuse("a number that is none", file(dict("<f4", "False", "(99999999999999999999,)")), "in place of a size")
	refuse("objects", file(dict("|O", "False", "(1,)")), "Python objects")
	refuse("records", file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"), "structured dtype")
	refuse("complex", file(dict("<c8", "False", "(1,)")), `no model takes its type "<c8"`)
	refuse("times", file(dict("<M8[ns]", "False", "(1,)")), `no model takes its type "<M8[ns]"`)
	refuse("text of no length", file(dict("<U0", "False", "(1000000000,)")), "text of length 0")
	refuse("no type", file(dict("", "False", "(1,)")), "has no type")
	refuse("no Unicode", file(dict("<U1", "False", "(1,)"), 0, 0xd8, 0, 0), "invalid character 0xd800")
	refuse("a missing key", file("{'descr': '<f4', 'shape': (1,)}"), "lacks one of")
	refuse("a key twice", file("{'descr': '<f4', 'descr': '<f4'}"), `"descr" twice`)
	refuse("an unknown key", file("{'order': 'C'}"), `unknown key "order"`)
	refuse("a truth that is none", file("{'fortran_order': 1}"), "in place of True or False")
	refuse("no end", file("{'descr': '<f4"), "does not end")
	refuse("no comma", file("{'descr': '<f4' 'shape': ()}"), "in place of '}'")
	refuse("more after the end", file(dict("<f4", "False", "()")+"x", 0, 0, 0, 0), "has text after its end")
}

// NumPy wrote this archive. testdata/make.py has its content.
func TestRealNumPy(t *testing.T) {
	t.Parallel()
	got, err := npy.ReadArchive("testdata/numpy.npz", npy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	six := []byte{0, 1, 2, 3, 4, 5}
	want := map[string]inputs.Tensor{
		"fortran": {Type: onnx.Uint8, Shape: []int64{2, 3}, Data: six},
		"half":    {Type: onnx.Float16, Shape: []int64{2}, Data: []byte{0x00, 0x3c, 0x00, 0xc0}}, // 1, -2
		"big":     {Type: onnx.Int32, Shape: []int64{1, 2}, Data: []byte{1, 0, 0, 0, 254, 255, 255, 255}},
		"truth":   {Type: onnx.Bool, Shape: []int64{2}, Data: []byte{1, 0}},
		"bytes":   {Type: onnx.String, Shape: []int64{2}, Strings: [][]byte{[]byte("ab"), []byte("c")}},
		"text":    {Type: onnx.String, Shape: []int64{2}, Strings: [][]byte{[]byte("Größe"), []byte("北京")}},
		"scalar":  {Type: onnx.Int64, Shape: []int64{}, Data: []byte{7, 0, 0, 0, 0, 0, 0, 0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// archive makes a zip file. entries are name, content, name, content …
func archive(t *testing.T, entries ...string) string {
	t.Helper()
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	for i := 0; i < len(entries); i += 2 {
		entry, err := w.Create(entries[i])
		if err == nil {
			_, err = entry.Write([]byte(entries[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.npz")
	if err := os.WriteFile(path, buffer.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadArchiveRefuses(t *testing.T) {
	t.Parallel()
	good := string(file(dict("|u1", "False", "(1,)"), 1))
	refuse := func(name, path string, want ...string) {
		_, err := npy.ReadArchive(path, npy.Options{})
		for _, part := range append(want, path) {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", name, err, part)
			}
		}
	}
	refuse("twice", archive(t, "a.npy", good, "a.npy", good), `the array "a" is in it twice`)
	refuse("another file", archive(t, "a.npy", good, "readme.txt", "hello"), `"readme.txt" in it is not a .npy file`)
	refuse("every bad one", archive(t, "a.npy", "x", "b.npy", good[:15]), `array "a": it is not a NumPy`, `array "b": it ends within`)
	refuse("no file", filepath.Join(t.TempDir(), "none.npz"))
	plain := filepath.Join(t.TempDir(), "plain.npz")
	if err := os.WriteFile(plain, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("no archive", plain, "it is not an .npz archive")
	refuse("a bad checksum", damaged(t, archive(t, "a.npy", good)), "checksum")
}

// damaged changes the last byte of an archive's only array, which is stored without compression.
func damaged(t *testing.T, path string) string {
	t.Helper()
	var stored bytes.Buffer
	if err := npy.WriteArchive(&stored, map[string]inputs.Tensor{"a": {Type: onnx.Uint8, Shape: []int64{1}, Data: []byte{200}}}); err != nil {
		t.Fatal(err)
	}
	content := stored.Bytes()
	content[bytes.LastIndexByte(content, 200)]++
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Refused arrays are never read.
func TestCheckSeesOutlines(t *testing.T) {
	t.Parallel()
	refusal := errors.New("not this one")
	path := archive(t, "a.npy", string(file(dict("<f4", "False", "(2, 1)"), 0, 0, 0, 0, 0, 0, 0, 0)), "b.npy", string(file(dict("|S2", "False", "(1,)"), 'a', 'b')))
	var seen map[string]npy.Outline
	_, err := npy.ReadArchive(path, npy.Options{Check: func(outlines map[string]npy.Outline) error { seen = outlines; return refusal }})
	if !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	want := map[string]npy.Outline{"a": {Type: onnx.Float, Shape: []int64{2, 1}}, "b": {Type: onnx.String, Shape: []int64{1}}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The numbers take 8 bytes, the text takes 24 and its own 2.
	if _, err := npy.ReadArchive(path, npy.Options{Memory: 34}); err != nil {
		t.Errorf("enough memory: %v", err)
	}
	if _, err := npy.ReadArchive(path, npy.Options{Memory: 33}); err == nil || !strings.Contains(err.Error(), "would take 34 bytes, more than the 33") {
		t.Errorf("too little memory: %v", err)
	}
}

// mostMemory is the memory limit for a file of n bytes: ten times its size, and 64 MiB.
func mostMemory(n int) uint64 { return uint64(10*n) + 64<<20 }

// checkMemory runs a function and checks its allocations. Fuzzing runs one input at a time in each
// process.
func checkMemory(t *testing.T, n int, run func()) {
	t.Helper()
	// total of all allocations, in which a buffer that grew counts twice
	if used := alloctest.Bytes(run); used > 2*mostMemory(n) {
		t.Errorf("%d bytes of file took %d", n, used)
	}
}

// Reading any archive ends, and takes memory in proportion to its size.
func FuzzReadArchive(f *testing.F) {
	content, err := os.ReadFile("testdata/numpy.npz")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	var stored bytes.Buffer
	if err := npy.WriteArchive(&stored, map[string]inputs.Tensor{"a": {Type: onnx.Uint8, Shape: []int64{3}, Data: []byte{1, 2, 3}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(stored.Bytes())
	f.Add(stored.Bytes()[:stored.Len()-10])
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		path := filepath.Join(t.TempDir(), "data.npz")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		checkMemory(t, len(data), func() {
			arrays, err := npy.ReadArchive(path, npy.Options{})
			if err != nil {
				return
			}
			for name, a := range arrays {
				n, ok := onnx.Elements(a.Shape)
				if have := int64(len(a.Strings)); a.Type != onnx.String {
					if ok = ok && n*a.Type.Size() == int64(len(a.Data)); !ok {
						t.Errorf("%q: %d bytes of shape %v", name, len(a.Data), a.Shape)
					}
				} else if !ok || n != have {
					t.Errorf("%q: %d texts of shape %v", name, have, a.Shape)
				}
			}
		})
	})
}

func TestArchiveRoundTrip(t *testing.T) {
	t.Parallel()
	want := map[string]inputs.Tensor{
		"model/x:0": {Type: onnx.Float, Shape: []int64{1, 2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 64}},
		"names":     {Type: onnx.String, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), []byte("bc")}},
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := npy.WriteArchive(w, want); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same arrays make different files")
	}
	path := filepath.Join(t.TempDir(), "out.npz")
	if err := os.WriteFile(path, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := npy.ReadArchive(path, npy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	for want, tensor := range map[string]inputs.Tensor{
		"no type for BFLOAT16": {Type: onnx.BFloat16, Shape: []int64{1}, Data: []byte{0, 0}},
		"lose the zero byte":   {Type: onnx.String, Shape: []int64{1}, Strings: [][]byte{{'a', 0}}},
	} {
		if err := npy.Write(&bytes.Buffer{}, tensor); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A readable array survives writing and reading. Its data begins at a multiple of 64 bytes.
func FuzzRead(f *testing.F) {
	f.Add(file(dict("<f4", "False", "(1, 2)"), 0, 0, 128, 63, 0, 0, 0, 64))
	f.Add(file(dict(">i2", "True", "(2, 2)"), 0, 1, 0, 2, 0, 3, 0, 4))
	f.Add(file(dict("|b1", "False", "()"), 1))
	f.Add(file(dict("|S3", "False", "(2,)"), 'a', 'b', 'c', 'd', 0, 0))
	f.Add(file(dict("<U1", "False", "(1,)"), 0x17, 0x53, 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		var first inputs.Tensor
		var err error
		checkMemory(t, len(data), func() { first, err = read(data) })
		if err != nil {
			return
		}
		var buffer bytes.Buffer
		if err := npy.Write(&buffer, first); err != nil {
			t.Fatal(err)
		}
		second, err := read(buffer.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("-first +second:\n%s", diff)
		}
		if start := buffer.Len() - len(second.Data); second.Type != onnx.String && start%64 != 0 {
			t.Errorf("the data starts at %d", start)
		}
	})
}
