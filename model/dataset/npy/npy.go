// Package npy reads and writes NumPy's array files, .npy, and archives of them, .npz, as tensors.
// Users' data enters through it, and arrays for their programs leave through it. The format is
// numpy.lib.format's (versions 1 to 3). It never unpickles, and refuses arrays of Python objects.
// It checks a file's declarations against its size before it allocates memory.
//
// It is our own reader because available ones read one value at a time through reflection and trust
// the declared shape. They also lack float16 and other orders of bytes and dimensions.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Read reads one array. size is the number of bytes in r, from the file system or the archive.
// Numbers become little-endian with the last index fastest. Bytes (dtype S) and text (dtype U, as
// UTF-8) become a STRING tensor. NumPy pads both with zero bytes, so zero bytes at an element's end
// are lost.
func Read(r io.Reader, size int64) (inputs.Tensor, error) {
	t, err := read(r, size)
	if err != nil {
		return inputs.Tensor{}, fmt.Errorf("cannot read the array: %w", err)
	}
	return t, nil
}

func read(r io.Reader, size int64) (inputs.Tensor, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return inputs.Tensor{}, err
	}
	data, err := readExactly(r, h.data)
	if err != nil {
		return inputs.Tensor{}, err
	}
	return h.tensor(data)
}

// firstRead is the memory that is allocated before anything was read, in bytes. A file system or an
// archive's directory can give wrong sizes, so memory grows only with the bytes that arrive.
const firstRead = 1 << 20

// readExactly reads the want bytes in r.
func readExactly(r io.Reader, want int64) ([]byte, error) {
	data := make([]byte, 0, min(want, firstRead))
	for int64(len(data)) < want {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(want, 2*int64(cap(data)))), data...)
		}
		n, err := io.ReadFull(r, data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("it has less than the %d bytes that its header announces: it is truncated", want)
		case err != nil:
			return nil, err
		}
	}
	switch _, err := io.ReadFull(r, make([]byte, 1)); { // an archive checks its checksum at the end
	case err == nil:
		return nil, fmt.Errorf("it has more than the %d bytes that its header announces", want)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return data, nil
}

// tensor converts the data into a tensor's form.
func (h header) tensor(data []byte) (inputs.Tensor, error) {
	e := h.element
	if e.big && e.unit > 1 {
		for unit := range slices.Chunk(data, int(e.unit)) {
			slices.Reverse(unit)
		}
	}
	if h.fortran && len(h.shape) > 1 {
		data = lastFastest(data, h.shape, e.width)
	}
	t := inputs.Tensor{Type: e.kind, Shape: h.shape, Data: data}
	switch {
	case e.kind == onnx.Bool:
		for i, b := range data { // NumPy treats every non-zero byte as true
			data[i] = min(b, 1)
		}
	case e.kind == onnx.String:
		t.Data, t.Strings = nil, make([][]byte, 0, len(data)/int(e.width))
		for raw := range slices.Chunk(data, int(e.width)) {
			text, err := e.text(raw)
			if err != nil {
				return inputs.Tensor{}, err
			}
			t.Strings = append(t.Strings, slices.Clip(text))
		}
	}
	return t, nil
}

// text returns the content of a text element, in the memory of the element. No character takes more
// bytes in UTF-8 than in UTF-32.
func (e element) text(raw []byte) ([]byte, error) {
	if !e.wide {
		return bytes.TrimRight(raw, "\x00"), nil
	}
	text := raw[:0]
	for ; len(raw) > 0; raw = raw[4:] {
		r := rune(binary.LittleEndian.Uint32(raw))
		if !utf8.ValidRune(r) {
			return nil, fmt.Errorf("it has text with the invalid character %#x", uint32(r))
		}
		text = utf8.AppendRune(text, r)
	}
	return bytes.TrimRight(text, "\x00"), nil
}

// lastFastest reorders elements from first index fastest to last index fastest. width is the size
// of an element in bytes.
func lastFastest(data []byte, shape []int64, width int64) []byte {
	out := make([]byte, 0, len(data))
	index := make([]int64, len(shape))
	for len(out) < len(data) {
		at, stride := int64(0), width
		for d, i := range index {
			at += i * stride
			stride *= shape[d]
		}
		out = append(out, data[at:at+width]...)
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return out
}

// Write writes one array, strings as bytes (dtype S). It refuses values without a NumPy form:
// BFLOAT16, and strings that end in a zero byte.
func Write(w io.Writer, t inputs.Tensor) error {
	descr, data, err := encode(t)
	if err != nil {
		return fmt.Errorf("cannot write the array: %w", err)
	}
	sizes := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		sizes[i] = fmt.Sprintf("%d,", d) // (3,) is a tuple, (3) is not
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, strings.Join(sizes, " "))
	// The format aligns the data to 64 bytes with spaces and a line feed.
	start := len(magic) + 4
	length := (start+len(text)+1+63)/64*64 - start
	text += strings.Repeat(" ", length-len(text)-1) + "\n"
	if length > 1<<16-1 {
		return fmt.Errorf("cannot write the array: its %d dimensions are too many", len(t.Shape))
	}
	head := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(length))
	if _, err := w.Write(append(head, text...)); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// encode returns a tensor's NumPy type and its bytes.
func encode(t inputs.Tensor) (descr string, data []byte, err error) {
	if t.Type == onnx.String {
		return encodeStrings(t.Strings)
	}
	for code, kind := range numbers {
		switch {
		case kind != t.Type || len(code) != 2:
			continue
		case kind.Size() == 1:
			return "|" + code, t.Data, nil
		default:
			return "<" + code, t.Data, nil
		}
	}
	return "", nil, fmt.Errorf("NumPy has no type for %s", t.Type)
}

func encodeStrings(values [][]byte) (descr string, data []byte, err error) {
	width := 1
	for _, v := range values {
		if len(v) > 0 && v[len(v)-1] == 0 {
			return "", nil, fmt.Errorf("NumPy would lose the zero byte at the end of %q", v)
		}
		width = max(width, len(v))
	}
	data = make([]byte, 0, width*len(values))
	for _, v := range values {
		data = append(append(data, v...), make([]byte, width-len(v))...)
	}
	return fmt.Sprintf("|S%d", width), data, nil
}
