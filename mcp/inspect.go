package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tuner/internal/exit"
	"tuner/model/framework"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/profile/starter"
)

type inspectIn struct {
	Model string `json:"model" jsonschema:"path of an ONNX file or of a Triton model folder"`
}

type inspectOut struct {
	Name      string   `json:"name" jsonschema:"name under which the model would be served"`
	Path      string   `json:"path" jsonschema:"path without links"`
	Bytes     int64    `json:"bytes" jsonschema:"size of the model file without external data"`
	Inputs    []tensor `json:"inputs"`
	Outputs   []tensor `json:"outputs"`
	Batches   bool     `json:"batches" jsonschema:"whether the model has a batch dimension, so that the server can batch requests"`
	Shapes    []shape  `json:"assumed_shapes" jsonschema:"shapes of requests that a campaign would assume, of inputs with open dimensions"`
	Precision []string `json:"precisions" jsonschema:"precisions that are worth a try; fp32 is the model as it is"`
	Left      []string `json:"precisions_left_out,omitempty" jsonschema:"other precisions, with the reason"`
	Config    string   `json:"default_config" jsonschema:"config.pbtxt with which every configuration is compared"`
	Cores     int      `json:"cores" jsonschema:"usable cores of this machine"`
	Ready     bool     `json:"ready" jsonschema:"whether ONNX Runtime is installed, so that a campaign can run"`
	Missing   string   `json:"missing,omitempty" jsonschema:"what to install before a campaign"`
}

type tensor struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Shape []string `json:"shape" jsonschema:"sizes; an open size is its symbol or ?; with the batch dimension"`
}

type shape struct {
	Input  string  `json:"input"`
	Sizes  []int64 `json:"sizes" jsonschema:"without the batch dimension"`
	Reason string  `json:"reason,omitempty" jsonschema:"why tuner would choose these sizes; absent where they are given"`
}

// inspect implements the tool inspect_model.
func (s *server) inspect(ctx context.Context, _ *sdk.CallToolRequest, in inspectIn) (*sdk.CallToolResult, inspectOut, error) {
	var out inspectOut
	path, err := s.model(in.Model)
	if err != nil {
		return nil, out, err
	}
	opened, err := starter.Open(ctx, "inspect_model", path, addon.Libraries{})
	if err != nil {
		return nil, out, err
	}
	first, err := opened.Starter(s.roots[0], nil)
	if err != nil {
		return nil, out, err
	}
	config, err := modelconfig.Format(opened.Config)
	if err != nil {
		return nil, out, err
	}
	out = inspectOut{
		Name: first.Name, Path: path, Bytes: opened.Files[0].Bytes, Inputs: tensors(opened.Model.Inputs()), Outputs: tensors(opened.Model.Outputs()),
		Batches: first.Batching, Shapes: []shape{}, Precision: first.Precisions.Names, Config: bounded(string(config)), Cores: first.Cores, Ready: true,
	}
	for _, left := range first.Precisions.Left {
		out.Left = append(out.Left, left.Sentence())
	}
	for _, one := range first.Shapes {
		out.Shapes = append(out.Shapes, shape{one.Input, one.Dims, one.Reason})
	}
	if _, err := ortlib.Resolve(""); err != nil {
		out.Ready, out.Missing = false, err.Error()
	}
	return text(out.text()), out, nil
}

// model finds a model that a client names. Frameworks run their files with Python, so they are
// refused.
func (s *server) model(named string) (string, error) {
	path, err := s.roots.Find(named)
	if err != nil {
		return "", err
	}
	if f, is := framework.Of(path); is {
		return "", exit.Usagef("%q is a model of %s, which runs it with Python; convert it in a shell: tuner convert %q", named, f.Name, named)
	}
	return path, nil
}

func tensors(values []onnx.Value) []tensor {
	list := []tensor{}
	for _, v := range values {
		t := tensor{Name: v.Name, Type: v.Type.String(), Shape: []string{}}
		if v.Kind != "tensor" {
			t.Type = v.Kind
		}
		for _, d := range v.Shape {
			t.Shape = append(t.Shape, d.String())
		}
		list = append(list, t)
	}
	return list
}

// text describes the model for people.
func (o inspectOut) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", o.Name)
	line := func(kind string, t tensor) {
		fmt.Fprintf(&b, "  %-7s %s %s[%s]\n", kind, t.Name, t.Type, strings.Join(t.Shape, ","))
	}
	for _, t := range o.Inputs {
		line("input", t)
	}
	for _, t := range o.Outputs {
		line("output", t)
	}
	for _, one := range o.Shapes {
		fmt.Fprintf(&b, "assumed shape of %s: %v", one.Input, one.Sizes)
		if one.Reason != "" {
			fmt.Fprintf(&b, " (%s)", one.Reason)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "precisions to try: %s\n", strings.Join(o.Precision, ", "))
	for _, left := range o.Left {
		fmt.Fprintln(&b, left)
	}
	if !o.Ready {
		fmt.Fprintf(&b, "not ready for a campaign: %s\n", o.Missing)
	}
	fmt.Fprintf(&b, "default configuration:\n%s", o.Config)
	return b.String()
}
