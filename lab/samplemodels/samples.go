package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"tuner/internal/checksum"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// options are the flags that change the output.
type options struct {
	iterations int64
	wheel      string
}

// sample is a model that can be written.
type sample struct {
	name string
	// digest is the sha256 of the file if it is known without building the model, else "".
	digest string
	build  func(context.Context) (*onnx.Model, error)
}

// isMeantBy reports whether a command line argument names the sample or a group with it.
func (s sample) isMeantBy(arg string) bool {
	switch arg {
	case "all-small":
		return s.name != minilmName
	case "identity":
		return strings.HasPrefix(s.name, "identity_")
	default:
		return s.name == arg
	}
}

// samples lists the generated models.
func samples(o options) []sample {
	generated := func(name string, model func() *onnx.Model) sample {
		return sample{name: name, build: func(context.Context) (*onnx.Model, error) { return model(), nil }}
	}
	list := []sample{
		generated("simple", build.Simple),
		generated("mlp", build.MLP),
		generated("cnn", func() *onnx.Model { return build.CNN(0) }),
		generated("cnn_fixed", func() *onnx.Model { return build.CNN(1) }),
		generated("resnet", build.ResNet),
		generated("mobilenet", build.MobileNet),
		generated("lstm", build.LSTM),
		generated("accumulator", build.Accumulator),
		generated("streaming_detector", func() *onnx.Model { return build.StreamingDetector(true) }),
		generated("bertsquad", build.BertSquadLike),
		generated("recommender", build.EmbeddingRecommender),
		generated("constant_time", func() *onnx.Model { return build.ConstantTime(o.iterations) }),
		generated("failing", build.Failing),
		generated("sequence_input", build.SequenceInput),
	}
	for _, t := range onnx.ServableTypes() {
		list = append(list, generated("identity_"+strings.ToLower(t.String()), func() *onnx.Model { return build.Identity(t) }))
	}
	return list
}

func names(list []sample) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = s.name
	}
	return all
}

// writeAll writes the missing models.
func writeAll(ctx context.Context, out io.Writer, dir string, list []sample) error {
	for _, s := range list {
		path := filepath.Join(dir, s.name+".onnx")
		did, err := write(ctx, path, s)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", path, did); err != nil {
			return err
		}
	}
	return nil
}

// write writes one model and returns a message.
func write(ctx context.Context, path string, s sample) (string, error) {
	existing, err := digest(path)
	if err != nil {
		return "", err
	}
	const kept = "is there already"
	if existing != "" && existing == s.digest {
		return kept, nil
	}
	m, err := s.build(ctx)
	if err != nil {
		return "", err
	}
	made, err := m.Digest()
	if err != nil {
		return "", err
	}
	switch {
	case s.digest != "" && made != s.digest:
		return "", fmt.Errorf("cannot make %q: the model has the digest %s, expected %s (it was built by another version of its builder)", path, made, s.digest)
	case made == existing:
		return kept, nil
	}
	return "written", m.Write(path, 0)
}

// digest returns the sha256 of a file; "" if it does not exist.
func digest(path string) (string, error) {
	sum, err := checksum.File(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return sum, err
}
