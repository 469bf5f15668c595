package perfdata

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// parseTensor reads a tensor in one of its forms: [v, …], {"b64": …}, {"content": [v, …] or {"b64":
// …}}. The last two may have "shape": [d, …].
func parseTensor(value json.RawMessage, s Spec) (inputs.Tensor, error) {
	if value[0] == '[' {
		return build(value, nil, s)
	}
	var content json.RawMessage
	var shape []int64
	err := members(value, "", func(key string, member json.RawMessage) error {
		switch {
		case key == "content" && content == nil:
			content = member
		case key == "b64" && content == nil:
			content = slices.Concat([]byte(`{"b64":`), member, []byte("}"))
		case key == "content" || key == "b64":
			return errors.New("it has both content and b64: leave one out")
		case key == "shape":
			if err := json.Unmarshal(member, &shape); err != nil || shape == nil {
				return fmt.Errorf("the shape %s is not a list of whole numbers", shorten(member))
			}
		default:
			return fmt.Errorf("%q is unknown; allowed are content, shape and b64", key)
		}
		return nil
	})
	if err == nil && content == nil {
		err = errors.New(`it has no "content"`)
	}
	if err != nil {
		return inputs.Tensor{}, err
	}
	return build(content, shape, s)
}

// build makes a tensor from its content, a list or {"b64": …}, and its shape (nil if not given).
func build(content json.RawMessage, shape []int64, s Spec) (inputs.Tensor, error) {
	t := inputs.Tensor{Type: s.Type}
	var err error
	if content[0] == '[' {
		err = fillValues(&t, content)
	} else {
		err = fillBase64(&t, content)
	}
	if err != nil {
		return inputs.Tensor{}, err
	}
	have := int64(len(t.Strings))
	if size := s.Type.Size(); size > 0 {
		have = int64(len(t.Data)) / size
	}
	t.Shape, err = settle(shape, s, have)
	return t, err
}

// settle returns the shape of a tensor with n elements: the given one, or the only one that the
// model allows.
func settle(given []int64, s Spec, n int64) ([]int64, error) {
	shape := given
	switch {
	case given == nil && s.Dims == nil:
		return []int64{n}, nil
	case given == nil:
		shape = slices.Clone(s.Dims)
		open := slices.Index(shape, -1)
		if open >= 0 {
			shape[open] = 1
			if rest, ok := onnx.Elements(shape); ok && rest > 0 {
				shape[open] = n / rest
			}
		}
		if slices.Contains(shape, -1) {
			return nil, fmt.Errorf("the model's shape %v leaves several sizes open; give the shape: {\"content\": […], \"shape\": […]}", s.Dims)
		}
	case s.Dims != nil && !fits(given, s.Dims):
		return nil, fmt.Errorf("the shape %v does not fit the model's %v (without the batch dimension)", given, s.Dims)
	}
	if want, ok := onnx.Elements(shape); !ok || want != n {
		return nil, fmt.Errorf("it has %d values, but its shape %v needs %d", n, shape, want)
	}
	return shape, nil
}

// fits reports whether the model allows a shape.
func fits(shape, dims []int64) bool {
	return slices.EqualFunc(shape, dims, func(size, want int64) bool { return size == want || want == -1 && size >= 0 })
}

// fillValues reads a flat list of values.
func fillValues(t *inputs.Tensor, content json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if _, err := d.Token(); err != nil { // the opening bracket
		return err
	}
	for i := 0; d.More(); i++ {
		token, err := d.Token()
		if err != nil {
			return err
		}
		if err := appendValue(t, token); err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
	}
	return nil
}

// appendValue appends a JSON value in the encoding of the tensor's type.
func appendValue(t *inputs.Tensor, token json.Token) (err error) {
	text := ""
	switch v := token.(type) {
	case json.Delim:
		return errors.New("the values must be one flat list, the last dimension fastest")
	case string:
		if t.Type == onnx.String {
			t.Strings = append(t.Strings, []byte(v))
			return nil
		}
		if nonFinite([]byte(v)) != v || v == "" {
			return fmt.Errorf("%q is text, but the model takes %s", v, t.Type)
		}
		text = v
	case bool:
		if t.Type != onnx.Bool {
			return fmt.Errorf("%t is a boolean, but the model takes %s", v, t.Type)
		}
		text = map[bool]string{false: "0", true: "1"}[v]
	case json.Number:
		text = v.String()
	default:
		return fmt.Errorf("null is not a value of %s", t.Type)
	}
	if t.Type == onnx.String {
		return fmt.Errorf("%s is a number, but the model takes text", text)
	}
	t.Data, err = appendNumber(t.Data, t.Type, text)
	return err
}

// appendNumber appends a number in the encoding of a type.
func appendNumber(data []byte, t onnx.DataType, text string) ([]byte, error) {
	if t.IsFloat() {
		v, err := strconv.ParseFloat(text, 64)
		before := len(data)
		data = onnx.AppendFloat(data, t, v)
		became := elements.Floats(inputs.Tensor{Type: t, Data: data[before:]})[0]
		if err != nil || math.IsInf(became, 0) && !math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s does not fit %s", text, t)
		}
		return data, nil
	}
	if t == onnx.Uint64 {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number of %s", text, t)
		}
		return binary.LittleEndian.AppendUint64(data, v), nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if lo, hi := elements.InRange(t); err != nil || v < lo || v > hi {
		return nil, fmt.Errorf("%s is not a whole number of %s (%d … %d)", text, t, lo, hi)
	}
	return onnx.AppendInteger(data, t, v), nil
}

// fillBase64 reads {"b64": …}: the tensor's raw bytes. For text, each element follows its length in
// four bytes.
func fillBase64(t *inputs.Tensor, content json.RawMessage) error {
	var encoded *string
	err := members(content, "", func(key string, value json.RawMessage) error {
		if key != "b64" {
			return fmt.Errorf("%q is unknown beside b64", key)
		}
		return json.Unmarshal(value, &encoded)
	})
	if err != nil || encoded == nil {
		return fmt.Errorf("it is %s; write a list of values or {\"b64\": \"…\"}", shorten(content))
	}
	raw, err := base64.StdEncoding.DecodeString(*encoded)
	switch {
	case err != nil:
		return fmt.Errorf("b64: %w", err)
	case t.Type == onnx.String:
		t.Strings, err = split(raw)
		return err
	case int64(len(raw))%t.Type.Size() != 0:
		return fmt.Errorf("b64: %d bytes are not a whole number of %s values", len(raw), t.Type)
	}
	t.Data = raw
	return nil
}

// split splits the protocol's form of text: each element follows its length in four bytes,
// little-endian.
func split(raw []byte) ([][]byte, error) {
	var texts [][]byte
	for len(raw) > 0 {
		if len(raw) < 4 || uint64(binary.LittleEndian.Uint32(raw)) > uint64(len(raw)-4) {
			return nil, errors.New("b64: each text needs its length before it (four bytes, little-endian)")
		}
		end := 4 + binary.LittleEndian.Uint32(raw)
		texts = append(texts, raw[4:end])
		raw = raw[end:]
	}
	return texts, nil
}
