package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tuner/internal/peers"
	"tuner/onnx"
	"tuner/onnx/rewrite"
)

// variant is a model file that is compared.
type variant struct {
	name  string
	path  string
	bytes int64
}

// The variants' names.
const (
	original = "fp32"
	ours     = "int8, tuner"
	theirs   = "int8, onnxruntime.quantization"
)

// makeVariants makes the files that are compared, the original first.
func makeVariants(ctx context.Context, m *onnx.Model, dir string, messages io.Writer) ([]variant, error) {
	int8, summary, err := rewrite.Int8Dynamic(m, rewrite.Int8Options{})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(messages, "rewrites: %d products are int8 now\n", len(summary.Converted))
	own := filepath.Join(dir, "tuner.onnx")
	if err := int8.Write(own, 0); err != nil {
		return nil, err
	}
	list := []variant{{name: original, path: m.Path()}, {name: ours, path: own}}
	other := filepath.Join(dir, "onnxruntime.onnx")
	switch installed, err := peers.Find(); {
	case err != nil:
		fmt.Fprintf(messages, "rewrites: without %s: %v\n", theirs, err)
	default:
		if err := installed.Quantize(ctx, m.Path(), other); err != nil {
			return nil, err
		}
		list = append(list, variant{name: theirs, path: other})
	}
	for i := range list {
		info, err := os.Stat(list[i].path)
		if err != nil {
			return nil, fmt.Errorf("cannot open a variant: %w", err)
		}
		list[i].bytes = info.Size()
	}
	return list, nil
}
