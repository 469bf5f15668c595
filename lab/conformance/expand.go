package conformance

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/template"
)

// functions are the functions that a request may call between << and >>.
var functions = template.FuncMap{
	"list":   list,
	"zeros":  func(n int) string { return strings.Repeat("\x00", n) },
	"repeat": strings.Repeat,
	"quote":  quote,
	"int32":  func(values ...int) string { return tensor(values, func(v int) uint64 { return uint64(v) }, 4) },
	"int64":  func(values ...int) string { return tensor(values, func(v int) uint64 { return uint64(v) }, 8) },
	"int16":  func(values ...int) string { return tensor(values, func(v int) uint64 { return uint64(v) }, 2) },
	"int8":   func(values ...int) string { return tensor(values, func(v int) uint64 { return uint64(v) }, 1) },
	"fp32":   func(values ...float64) string { return tensor(values, fp32, 4) },
	"fp64":   func(values ...float64) string { return tensor(values, math.Float64bits, 8) },
	"strings": func(values ...string) string {
		var b strings.Builder
		for _, v := range values {
			b.WriteString(tensor([]int{len(v)}, func(n int) uint64 { return uint64(n) }, 4) + v)
		}
		return b.String()
	},
	"onnx": func(name string) (string, error) {
		data, err := modelFile(name, "")
		return string(data), err
	},
	"gzip": func(text string) (string, error) {
		var b bytes.Buffer
		return pack(&b, gzip.NewWriter(&b), text)
	},
	"zlib": func(text string) (string, error) {
		var b bytes.Buffer
		return pack(&b, zlib.NewWriter(&b), text)
	},
	"key":    sharedKey,
	"trim":   strings.Trim,
	"base64": func(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) },
	"json": func(text string) (string, error) {
		quoted, err := json.Marshal(text)
		return string(quoted), err
	},
}

// expand evaluates the expressions of a message.
func expand(text string) (string, error) {
	t, err := template.New("request").Delims("<<", ">>").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}

// sharedKey returns the key of a file in shared memory, which is this process's own.
func sharedKey(name string) string { return fmt.Sprintf("/tuner-conformance-%d-%s", os.Getpid(), name) }

// pack compresses text with w, which writes to b.
func pack(b *bytes.Buffer, w io.WriteCloser, text string) (string, error) {
	if _, err := io.WriteString(w, text); err != nil {
		return "", err
	}
	err := w.Close()
	return b.String(), err
}

// list writes n whole numbers from first on, with commas.
func list(n, first int) string {
	numbers := make([]string, n)
	for i := range numbers {
		numbers[i] = strconv.Itoa(first + i)
	}
	return strings.Join(numbers, ",")
}

// tensor returns the wire form of values: little-endian, size bytes each.
func tensor[T any](values []T, bits func(T) uint64, size int) string {
	var data []byte
	for _, v := range values {
		data = append(data, binary.LittleEndian.AppendUint64(nil, bits(v))[:size]...)
	}
	return string(data)
}

func fp32(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }

// quote writes bytes as a string of protobuf's text form.
func quote(data string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(data) {
		fmt.Fprintf(&b, `\%03o`, data[i])
	}
	b.WriteByte('"')
	return b.String()
}
