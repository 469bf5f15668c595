// Package onnx reads and writes ONNX model files. It shows their graph: inputs, outputs, types,
// shapes, initializers, and the producer and consumers of each value. It stands at the start of the
// data flow: all other packages learn about the model from it.
//
// It never guesses. A file that is no valid ONNX model is an error that names the file, the problem
// and the remedy. The package runs nothing and does not check operators. ONNX Runtime does that
// when it creates a session.
package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx/onnxpb"
)

// Model is an ONNX model with the indexes of its main graph. It is read-only. To change a model,
// clone Proto, change the clone and call New. A Model is safe for concurrent use.
type Model struct {
	proto *onnxpb.ModelProto
	path  string // "" if the model was not read from a file
	// origin: the model file whose folder has the external data: path, or that of the model from
	// which this one was made
	origin       string
	fileDigest   string         // sha256 of the file; "" if the model was not read from one
	external     []ExternalFile // ordered by location
	inputs       []Value
	outputs      []Value
	initializers map[string]*onnxpb.TensorProto
	producers    map[string]*onnxpb.NodeProto
	consumers    map[string][]Use
	knowsOutputs bool // the shapes of outputs are those that ONNX Runtime declares
}

// New indexes a model that was built in memory, without external data. It keeps p, which must not
// be changed afterwards.
func New(p *onnxpb.ModelProto) *Model {
	m := &Model{proto: p}
	m.index()
	return m
}

// Replace returns a model with other content, made from m. It looks for external data in the folder
// from which m was read, and checks it. It keeps p, which must not be changed afterwards.
func (m *Model) Replace(p *onnxpb.ModelProto) (*Model, error) {
	external, err := locateExternal(p, m.origin)
	if err != nil {
		return nil, fmt.Errorf("cannot derive a model from %q: %w", m.path, err)
	}
	derived := New(p)
	derived.origin, derived.external = m.origin, external
	return derived, nil
}

// WithOutputShapes returns the model with other shapes of outputs, by name: those that ONNX Runtime
// declares for a session, -1 for open sizes. Open sizes keep their symbols. The file stays as it is.
// With no shapes it returns m.
func (m *Model) WithOutputShapes(shapes map[string][]int64) *Model {
	if len(shapes) == 0 {
		return m
	}
	known := *m
	known.knowsOutputs, known.outputs = true, slices.Clone(m.outputs)
	for i, v := range known.outputs {
		shape, has := shapes[v.Name]
		if !has {
			continue
		}
		dims := make([]Dim, len(shape))
		for k, size := range shape {
			dims[k] = Dim{Size: max(size, -1)}
			if size < 0 && len(v.Shape) == len(shape) {
				dims[k].Symbol = v.Shape[k].Symbol
			}
		}
		known.outputs[i].Shape, known.outputs[i].Ranked = dims, true
	}
	return &known
}

// HasKnownOutputs reports whether the shapes of outputs are those of WithOutputShapes.
func (m *Model) HasKnownOutputs() bool { return m.knowsOutputs }

// Proto returns the stored model. It is shared and must not be changed.
func (m *Model) Proto() *onnxpb.ModelProto { return m.proto }

// Graph returns the main graph. It is shared and must not be changed.
func (m *Model) Graph() *onnxpb.GraphProto { return m.proto.GetGraph() }

// Path returns the file from which the model was read; "" without one.
func (m *Model) Path() string { return m.path }

// Opset returns the version of an operator set that the model imports, and 0 if it does not. The
// empty domain is ONNX's own, which files also write as "ai.onnx".
func (m *Model) Opset(domain string) int64 {
	for _, o := range m.proto.GetOpsetImport() {
		if canonicalDomain(o.GetDomain()) == canonicalDomain(domain) {
			return o.GetVersion()
		}
	}
	return 0
}

func canonicalDomain(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// Digest returns the sha256 of the model as lower-case hex. Without external data it is the digest
// of the file. Otherwise it covers the file and, in order of location, the name and digest of each
// external file.
func (m *Model) Digest() (string, error) {
	digest := m.fileDigest
	if digest == "" {
		data, err := m.marshal()
		if err != nil {
			return "", err
		}
		digest = hexDigest(data)
	}
	if len(m.external) == 0 {
		return digest, nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", digest)
	for _, f := range m.external {
		d, err := m.digestExternal(f)
		if err != nil {
			return "", fmt.Errorf("cannot compute the digest of the external data of %q: %w", m.path, err)
		}
		fmt.Fprintf(h, "%q %s\n", f.Location, d)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// marshal encodes the model. The bytes are always the same.
func (m *Model) marshal() ([]byte, error) { return marshal(m.proto) }

func marshal(p *onnxpb.ModelProto) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the model: %w", err)
	}
	return data, nil
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
