// Package onnx reads and writes ONNX model files and shows their graph: inputs, outputs, types, shapes, initializers, who
// produces a value and who consumes it. It stands at the start of the data flow: every other package learns from it what the
// model is. It refuses to guess: a file that is not a sound ONNX model is an error that names the file, what is wrong with it
// and what to do. It runs nothing and does not check operators; ONNX Runtime does that when a session is created.
package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx/onnxpb"
)

// Model is an ONNX model with the indexes of its main graph. It is read-only: who wants another model clones Proto, changes
// the clone and calls New. Safe for concurrent use.
type Model struct {
	proto        *onnxpb.ModelProto
	path         string         // "" for a model that was not read from a file
	origin       string         // the file that external data lies beside: path, or that of the model that this one was made of
	fileDigest   string         // sha256 of the file, "" for a model that was not read from one
	external     []ExternalFile // in order of location
	inputs       []Value
	outputs      []Value
	initializers map[string]*onnxpb.TensorProto
	producers    map[string]*onnxpb.NodeProto
	consumers    map[string][]Use
}

// New indexes a model that was built in memory, without external data. It takes over p, which must not be changed afterwards.
func New(p *onnxpb.ModelProto) *Model {
	m := &Model{proto: p}
	m.index()
	return m
}

// Replace returns a model of other content, made from this one: its external data is looked for, and checked, in the folder
// that m was read from. It takes over p, which must not be changed afterwards.
func (m *Model) Replace(p *onnxpb.ModelProto) (*Model, error) {
	external, err := locateExternal(p, m.origin)
	if err != nil {
		return nil, fmt.Errorf("cannot derive a model from %q: %w", m.path, err)
	}
	derived := New(p)
	derived.origin, derived.external = m.origin, external
	return derived, nil
}

// Proto returns the model as stored, shared: it must not be changed.
func (m *Model) Proto() *onnxpb.ModelProto { return m.proto }

// Graph returns the main graph, shared: it must not be changed.
func (m *Model) Graph() *onnxpb.GraphProto { return m.proto.GetGraph() }

// Path returns the file that the model was read from; "" for one that was not.
func (m *Model) Path() string { return m.path }

// Opset returns the version of an operator set that the model imports, 0 when it doesn't. The empty domain is ONNX's own, which
// files also write as "ai.onnx".
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

// Digest returns the sha256 of the model as lower-case hex. Without external data it is the digest of the file itself;
// otherwise it covers the file and, in order of location, the name and the digest of each external file.
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

// marshal encodes the model, always to the same bytes.
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
