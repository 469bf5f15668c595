package onnx

import (
	"bytes"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	convertTensorFlow = "convert it to ONNX first (python -m tf2onnx.convert)"
	convertPyTorch    = "export it to ONNX first (torch.onnx.export)"
	remedyName        = "name the model's .onnx file"
	remedyCopy        = "copy or export it again"
	remedyTensors     = `export it with tensors only (from scikit-learn: options={"zipmap": False})`
)

// foreign recognizes files that are no complete ONNX file. It returns a *FileError without a path,
// or nil. ONNX has no magic number. So foreign first checks for formats that people pass by
// mistake, and then the protobuf fields.
func foreign(data []byte) *FileError {
	if len(data) == 0 {
		return &FileError{Problem: "it is empty", Remedy: remedyCopy}
	}
	for _, f := range foreignFormats() {
		if len(data) >= f.offset && bytes.HasPrefix(data[f.offset:], []byte(f.magic)) {
			return &FileError{Problem: "it is not an ONNX file but " + f.name, Remedy: f.remedy}
		}
	}
	if isText(data) {
		return &FileError{Problem: "it is not an ONNX file but text", Remedy: remedyName}
	}
	problem := checkFields(data)
	switch {
	case problem == nil:
		return nil
	case errors.Is(problem, io.ErrUnexpectedEOF):
		return &FileError{Problem: "it is truncated: the file ends in the middle of a field", Remedy: remedyCopy}
	case looksLikeTensorFlow(data):
		return &FileError{Problem: "it is not an ONNX file but looks like a TensorFlow graph", Remedy: convertTensorFlow}
	default:
		return &FileError{Problem: "it is not an ONNX file", Remedy: remedyName}
	}
}

type foreignFormat struct {
	offset              int
	magic, name, remedy string
}

// foreignFormats lists the magic numbers of other formats. No ONNX file can begin with one of them.
// Its first byte is a field's tag, with field numbers 1 to 26 and wire types 0 and 2 (0x08, 0x12,
// 0x3a, …). The entries at offset 4 are too long to occur by chance.
func foreignFormats() []foreignFormat {
	return []foreignFormat{
		{0, "PK\x03\x04", "a zip archive (a PyTorch checkpoint or a packed folder)", "unpack it, or " + convertPyTorch},
		{0, "\x80\x02", "a Python pickle (a PyTorch checkpoint)", convertPyTorch},
		{0, "\x80\x04", "a Python pickle", convertPyTorch},
		{0, "\x89HDF\r\n", "an HDF5 file (a Keras model)", convertTensorFlow},
		{0, "\x1f\x8b", "a gzip archive", "unpack it first"},
		{0, "version https://git-lfs", "a Git LFS pointer", "fetch the real file (git lfs pull)"},
		{4, "ORTM", "ONNX Runtime's own format (.ort)", "use the .onnx file that it was made from"},
		{4, "TFL3", "a TensorFlow Lite model", convertTensorFlow},
		{8, "{\"", "a safetensors file: weights without a graph", convertPyTorch},
	}
}

// isText reports whether the file begins with text. A model never does, since its first tags and
// lengths are control characters.
func isText(data []byte) bool {
	head := data[:min(len(data), 512)]
	for i := 0; i < len(head); {
		r, size := utf8.DecodeRune(head[i:])
		cutOff := len(head)-i < utf8.UTFMax
		if r == utf8.RuneError && size == 1 && !cutOff || unicode.IsControl(r) && !unicode.IsSpace(r) {
			return false
		}
		i += size
	}
	return true
}

// looksLikeTensorFlow recognizes the first node of a frozen graph.
func looksLikeTensorFlow(data []byte) bool {
	head := data[:min(len(data), 64)]
	return bytes.Contains(head, []byte("Const")) || bytes.Contains(head, []byte("Placeholder"))
}

// checkFields reads the top-level protobuf fields of a model. Known fields must have their wire
// type. If a field ends beyond the file and the fields before it look like a model, the error is
// io.ErrUnexpectedEOF.
func checkFields(data []byte) error {
	errForeign := errors.New("not the fields of an ONNX model")
	plausible := false
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return truncation(plausible, n, errForeign)
		}
		want, known := modelFields()[number]
		if known && wire != want {
			return errForeign
		}
		if !known && !plausible {
			return errForeign // newer fields come after the known ones
		}
		plausible = plausible || known
		size := protowire.ConsumeFieldValue(number, wire, data[n:])
		if size < 0 {
			return truncation(plausible, size, errForeign)
		}
		data = data[n+size:]
	}
	return nil
}

// truncation interprets protowire's negative length.
func truncation(plausible bool, code int, otherwise error) error {
	if plausible && errors.Is(protowire.ParseError(code), io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return otherwise
}

// modelFields returns the wire types of ModelProto's fields.
func modelFields() map[protowire.Number]protowire.Type {
	return map[protowire.Number]protowire.Type{
		1: protowire.VarintType, 2: protowire.BytesType, 3: protowire.BytesType, 4: protowire.BytesType,
		5: protowire.VarintType, 6: protowire.BytesType, 7: protowire.BytesType, 8: protowire.BytesType,
		14: protowire.BytesType, 20: protowire.BytesType, 25: protowire.BytesType, 26: protowire.BytesType,
	}
}
