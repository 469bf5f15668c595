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
	remedyCopy        = "copy or export it again"
	remedyTensors     = `export it with tensors only (from scikit-learn: options={"zipmap": False})`
)

// foreign recognises what is not a whole ONNX file: a *FileError without a path, or nil. ONNX has no magic number, so first
// come the formats that people hand in by mistake, then the shape of the protobuf fields.
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
		return &FileError{Problem: "it is not an ONNX file but text"}
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
		return &FileError{Problem: "it is not an ONNX file"}
	}
}

type foreignFormat struct {
	offset              int
	magic, name, remedy string
}

// foreignFormats lists the magic numbers of other formats. None can begin an ONNX file, whose first byte is a field's tag:
// field numbers 1 to 26 with wire types 0 and 2 (0x08, 0x12, 0x3a, …); the entries at offset 4 are longer than chance.
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

// isText reports whether the file begins with text. A model never does: its first tags and lengths are control characters.
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

// looksLikeTensorFlow recognises the first node of a frozen graph.
func looksLikeTensorFlow(data []byte) bool {
	head := data[:min(len(data), 64)]
	return bytes.Contains(head, []byte("Const")) || bytes.Contains(head, []byte("Placeholder"))
}

// checkFields walks the top-level protobuf fields of a model. The known ones must have their wire type; a field that ends
// beyond the file gives io.ErrUnexpectedEOF if what came before looked like a model.
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
			return errForeign // newer fields come after those that we know
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

// truncation translates protowire's negative length.
func truncation(plausible bool, code int, otherwise error) error {
	if plausible && errors.Is(protowire.ParseError(code), io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return otherwise
}

// modelFields gives the wire types of ModelProto's fields.
func modelFields() map[protowire.Number]protowire.Type {
	return map[protowire.Number]protowire.Type{
		1: protowire.VarintType, 2: protowire.BytesType, 3: protowire.BytesType, 4: protowire.BytesType,
		5: protowire.VarintType, 6: protowire.BytesType, 7: protowire.BytesType, 8: protowire.BytesType,
		14: protowire.BytesType, 20: protowire.BytesType, 25: protowire.BytesType, 26: protowire.BytesType,
	}
}
