package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tuner/model/onnx"
)

// magic begins every file. The two bytes of the version and the header's length follow.
const magic = "\x93NUMPY"

// maxHeader is the longest accepted header in bytes. NumPy itself refuses more than 10,000 bytes
// from untrusted files.
const maxHeader = 1 << 16

// Outline is the description of an array in its file's header.
type Outline struct {
	Type  onnx.DataType // String for text and bytes
	Shape []int64
}

// header has all information of a file's header.
type header struct {
	element element
	fortran bool // the first index varies fastest
	shape   []int64
	length  int64 // bytes of the file before the data
	data    int64 // bytes of the data
}

// perText is the memory of a text element in addition to its bytes: their position.
const perText = 24

// memory returns the memory of the array after reading, in bytes.
func (h header) memory() int64 {
	if h.element.kind == onnx.String {
		n := h.data / h.element.width
		return min(n, (1<<62)/(perText+h.element.width)) * (perText + h.element.width)
	}
	return h.data
}

// readHeader reads the header of a file of size bytes, and checks it against that size. After it, r
// is at the data.
func readHeader(r io.Reader, size int64) (header, error) {
	h, err := scanHeader(r)
	if err != nil {
		return header{}, err
	}
	n, ok := onnx.Elements(h.shape)
	if !ok || n > (1<<62)/h.element.width {
		return header{}, fmt.Errorf("its shape %v is impossible", h.shape)
	}
	h.data = n * h.element.width
	if have := size - h.length; have != h.data {
		return header{}, fmt.Errorf("its header announces %d bytes (shape %v), but the file has %d: it is truncated, or has more than one array", h.data, h.shape, have)
	}
	return h, nil
}

// element describes the storage of one element.
type element struct {
	kind  onnx.DataType // String for text and bytes
	width int64         // bytes
	unit  int64         // bytes to which the byte order applies; 1: none
	big   bool          // the units are big-endian
	wide  bool          // text as UTF-32 (kind String)
}

// scanHeader reads the header. After it, r is at the data.
func scanHeader(r io.Reader) (header, error) {
	fixed := make([]byte, len(magic)+2)
	if _, err := io.ReadFull(r, fixed); err != nil || string(fixed[:len(magic)]) != magic {
		return header{}, errors.New("it is not a NumPy array file (those begin with \\x93NUMPY); np.save writes one")
	}
	major := fixed[len(magic)]
	if major < 1 || major > 3 {
		return header{}, fmt.Errorf("its format version %d is unknown; np.save writes 1, 2 or 3", major)
	}
	size := make([]byte, 4)
	if major == 1 {
		size = size[:2]
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return header{}, errTorn
	}
	length := int64(binary.LittleEndian.Uint32(append(size, 0, 0)[:4]))
	if length > maxHeader {
		return header{}, fmt.Errorf("its header of %d bytes is longer than %d", length, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, errTorn
	}
	h, err := parseHeader(string(text))
	h.length = int64(len(fixed)+len(size)) + length
	return h, err
}

var errTorn = errors.New("it ends within its header: the file is truncated")

// parseHeader reads the text of a header: a Python dictionary with the keys descr, fortran_order
// and shape.
func parseHeader(text string) (h header, err error) {
	l := &literal{rest: text}
	seen := map[string]bool{}
	if err := l.expect('{'); err != nil {
		return h, err
	}
	for !l.skipByte('}') {
		key, err := l.text()
		if err == nil {
			err = l.expect(':')
		}
		if err == nil {
			err = h.set(key, l)
		}
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("its header has %q twice", key)
		}
		seen[key] = true
		if !l.skipByte(',') {
			if err := l.expect('}'); err != nil {
				return h, err
			}
			break
		}
	}
	if l.skip(); l.rest != "" {
		return h, fmt.Errorf("its header has text after its end: %q", l.rest)
	}
	if len(seen) != 3 {
		return h, errors.New("its header lacks one of descr, fortran_order, shape")
	}
	return h, nil
}

// set reads the value of one key.
func (h *header) set(key string, l *literal) (err error) {
	switch key {
	case "descr":
		if l.starts('[') || l.starts('(') {
			return errors.New("it is an array of records (a structured dtype); save each field as an array of its own")
		}
		var descr string
		if descr, err = l.text(); err == nil {
			h.element, err = parseElement(descr)
		}
	case "fortran_order":
		h.fortran, err = l.truth()
	case "shape":
		h.shape, err = l.tuple()
	default:
		err = fmt.Errorf("its header has the unknown key %q", key)
	}
	return err
}

// parseElement reads a type in NumPy's form: byte order (<, >, = or | for none), kind, bytes.
func parseElement(descr string) (element, error) {
	order, code := byte('='), descr
	if descr != "" && strings.ContainsRune("<>=|", rune(descr[0])) {
		order, code = descr[0], descr[1:]
	}
	e := element{big: order == '>'}
	if kind, ok := numbers[code]; ok {
		e.kind, e.width, e.unit = kind, kind.Size(), kind.Size()
		return e, nil
	}
	if code == "" {
		return e, errors.New("its header has no type (descr)")
	}
	n, err := strconv.ParseInt(code[1:], 10, 32)
	switch kind := code[0]; {
	case kind == 'O':
		return e, errors.New("it holds Python objects (dtype object), and loading those would run code; save numbers " +
			"or text: arr.astype(numpy.float32), arr.astype(str)")
	case (kind == 'S' || kind == 'U') && (err != nil || n <= 0):
		return e, fmt.Errorf("its type %q is text of length 0", descr)
	case kind == 'S':
		e.kind, e.width, e.unit = onnx.String, n, 1
	case kind == 'U':
		e.kind, e.width, e.unit, e.wide = onnx.String, 4*n, 4, true
	default:
		return e, fmt.Errorf("no model takes its type %q; convert it first: arr.astype(numpy.float32)", descr)
	}
	return e, nil
}

// numbers are NumPy's codes of the types that models accept.
var numbers = map[string]onnx.DataType{
	"f2": onnx.Float16, "f4": onnx.Float, "f8": onnx.Double, "b1": onnx.Bool, "?": onnx.Bool,
	"i1": onnx.Int8, "i2": onnx.Int16, "i4": onnx.Int32, "i8": onnx.Int64,
	"u1": onnx.Uint8, "u2": onnx.Uint16, "u4": onnx.Uint32, "u8": onnx.Uint64,
}

// literal reads the Python literals that occur in headers.
type literal struct{ rest string }

func (l *literal) skip() { l.rest = strings.TrimLeft(l.rest, " \t\r\n") }

func (l *literal) starts(b byte) bool {
	l.skip()
	return l.rest != "" && l.rest[0] == b
}

func (l *literal) skipByte(b byte) bool {
	if !l.starts(b) {
		return false
	}
	l.rest = l.rest[1:]
	return true
}

func (l *literal) expect(b byte) error {
	if !l.skipByte(b) {
		return fmt.Errorf("its header is malformed: %q in place of %q", shorten(l.rest), b)
	}
	return nil
}

// text reads a string. Strings in headers have no escapes.
func (l *literal) text() (string, error) {
	for _, quote := range []byte{'\'', '"'} {
		if l.skipByte(quote) {
			value, rest, closed := strings.Cut(l.rest, string(quote))
			if !closed {
				return "", errors.New("its header is malformed: a string does not end")
			}
			l.rest = rest
			return value, nil
		}
	}
	return "", fmt.Errorf("its header is malformed: %q in place of a string", shorten(l.rest))
}

func (l *literal) truth() (bool, error) {
	l.skip()
	for word, value := range map[string]bool{"True": true, "False": false} {
		if rest, ok := strings.CutPrefix(l.rest, word); ok {
			l.rest = rest
			return value, nil
		}
	}
	return false, fmt.Errorf("its header is malformed: %q in place of True or False", shorten(l.rest))
}

// tuple reads sizes: (), (3,), (3, 4). Python 2 wrote 3L.
func (l *literal) tuple() ([]int64, error) {
	sizes := []int64{}
	if err := l.expect('('); err != nil {
		return nil, err
	}
	for !l.skipByte(')') {
		l.skip()
		digits := l.rest[:len(l.rest)-len(strings.TrimLeft(l.rest, "0123456789"))]
		size, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("its header is malformed: %q in place of a size", shorten(l.rest))
		}
		sizes = append(sizes, size)
		l.rest = strings.TrimPrefix(l.rest[len(digits):], "L")
		if !l.skipByte(',') && !l.starts(')') {
			return nil, fmt.Errorf("its header is malformed: %q within the shape", shorten(l.rest))
		}
	}
	return sizes, nil
}

func shorten(text string) string { return text[:min(len(text), 20)] }
