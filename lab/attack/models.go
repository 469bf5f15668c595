package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"tuner/lab/mutation"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// models: foreign ONNX files in tuner's commands.
func models() []attack {
	return []attack{
		{"A4", "external data that is a link to a file of the user", "init, convert, profile, run refuse it, serve too; the file is copied nowhere", links},
		{"A4", "external data at ../, at an absolute path, at /dev/zero, a pipe", "refused within 10 s", locations},
		{"A9", "1,000 nested Loops around 50,000 free names", "init answers within 20 s", quick("loops", func() []byte { return nested(1000, 50_000) }, 0)},
		{"A9", "a model of 300,000 inputs", "init answers within 20 s", quick("inputs", func() []byte { return inputs(300_000) }, -1)},
		{"A9", "3 MB of unknown fields in an override, 250 kB in config.pbtxt", "refused within 5 s", unknownFields},
		{"§2", "a tensor that says it has 2^62 elements", "convert refuses it with exit code 2, run measures nothing", refusedModel(func() []byte { return declared(1 << 62) })},
		{"§2", "a model of 30 sizes of 2^63-1", "convert refuses it with exit code 2, run measures nothing", refusedModel(func() []byte { return dims(1<<63 - 1) })},
		{"§2", "300 mutations of 3 models, loaded by a server and by init", "no crash, others are served", mutations},
	}
}

// secret stands for a file of the user.
const secret = "TOP-SECRET-0123456789abcdef"

// external returns a model whose weights are external data at a location.
func external(location string, n int) []byte {
	g := build.NewGraph("external")
	w := g.Floats("w", make([]float32, n/4), int64(n/4))
	g.OutputAs("y", g.Node("Add", []string{g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(int64(n/4))), w}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(int64(n/4)))
	m := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	t := m.Graph.Initializer[0]
	t.RawData, t.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
	t.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String(location)}}
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err) // our own model: a bug of ours
	}
	return data
}

func links(ctx context.Context, s *scene) (string, error) {
	content := strings.Repeat(secret[:16], 4)
	err := errors.Join(s.write([]byte(content), "home", "id_rsa"), s.write(external("w.data", len(content)), "model", "m.onnx"),
		os.Symlink("../home/id_rsa", s.path("model", "w.data")), s.put("m", external("w.data", len(content)), ""),
		os.Symlink(s.path("home", "id_rsa"), s.path("repository", "m", "1", "w.data")),
		s.write([]byte("model: model/m.onnx\noutput: out\n"), "profile.yaml"))
	if err != nil {
		return "", err
	}
	commands := [][]string{{"init", "model/m.onnx", "-o", "work"}, {"convert", "model/m.onnx", "--precision", "fp16", "-o", "work"}, {"profile", "-f", "profile.yaml"},
		{"run", "model/m.onnx", "-o", "run", "--budget", "5s"}, {"ortsweep", "-m", "model/m.onnx"}, {"perf", "-m", "m", "--model-file", "model/m.onnx"}}
	for _, args := range commands {
		o, err := s.tunes(ctx, args...)
		if err != nil {
			return "", err
		}
		if _, err := o.refused(2, "outside of the folder"); err != nil {
			return "", fmt.Errorf("tuner %s: %w", args[0], err)
		}
	}
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	if err := v.LoadModel(ctx, "m", ""); err == nil || !strings.Contains(err.Error(), "leads out of") {
		return "", fmt.Errorf("serve: %v", err)
	}
	found := 0
	err = filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == s.path("home", "id_rsa") {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(content)) {
			found++
		}
		return err
	})
	if err != nil || found > 0 {
		return "", errors.Join(fmt.Errorf("the file is in %d others", found), err)
	}
	return "7 refusals, no copy", nil
}

func locations(ctx context.Context, s *scene) (string, error) {
	if err := s.write(make([]byte, 64), "w.data"); err != nil {
		return "", err
	}
	for _, location := range []string{"../w.data", s.path("w.data"), "/dev/zero", "/etc/passwd", "sub/../../w.data", "./../w.data", "..", "w.data\x00x", ""} {
		if err := s.write(external(location, 64), "model", "m.onnx"); err != nil {
			return "", err
		}
		for _, args := range [][]string{{"init", "model/m.onnx", "-o", "work"}, {"convert", "model/m.onnx", "--precision", "fp16", "-o", "work", "--force"}} {
			o, err := s.tunes(ctx, args...)
			if err != nil {
				return "", err
			}
			if o.code != 2 || o.took > 10*time.Second {
				return "", fmt.Errorf("%q: tuner %s ended with %d after %v: %s", location, args[0], o.code, o.took, last(o.out))
			}
		}
	}
	return "18 refusals", nil
}

// nested returns a model of nested loops, whose innermost uses many values of the outermost graph.
func nested(depth, names int) []byte {
	g := build.NewGraph("loops")
	x := g.Input("x", onnx.Float, onnx.Fixed(1))
	values := make([]string, names)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	inner := &onnxpb.GraphProto{Name: proto.String("inner"), Node: []*onnxpb.NodeProto{{OpType: proto.String("Sum"), Input: values, Output: []string{"s"}}}}
	for i := range depth {
		inner = &onnxpb.GraphProto{Name: proto.String(fmt.Sprint("loop", i)), Node: []*onnxpb.NodeProto{{OpType: proto.String("Loop"), Input: []string{"n", "c"}, Output: []string{"s"},
			Attribute: []*onnxpb.AttributeProto{{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: inner}}}}}
	}
	g.OutputAs("y", x, onnx.Float, onnx.Fixed(1))
	m := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	for _, v := range values {
		m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{OpType: proto.String("Identity"), Input: []string{x}, Output: []string{v}})
	}
	m.Graph.Node = append(m.Graph.Node, inner.Node...)
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err) // our own model: a bug of ours
	}
	return data
}

// inputs returns a model with many inputs.
func inputs(n int) []byte {
	g := build.NewGraph("inputs")
	var first string
	for i := range n {
		first = g.Input(fmt.Sprint("x", i), onnx.Float, onnx.Fixed(1))
	}
	g.OutputAs("y", first, onnx.Float, onnx.Fixed(1))
	return marshal(g.Model())
}

// quick checks that init is fast and uses little memory, for any outcome. code is its exit code;
// -1: any but that of a crash.
func quick(name string, model func() []byte, code int) func(context.Context, *scene) (string, error) {
	return func(ctx context.Context, s *scene) (string, error) {
		if err := s.write(model(), name+".onnx"); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		o, err := s.tunes(ctx, "init", name+".onnx", "-o", "work")
		if err != nil {
			return "", err
		}
		if o.code != 0 && o.code != 2 || strings.Contains(o.out, "goroutine 1") || o.peak > 2<<30 {
			return "", fmt.Errorf("exit code %d, peak %d MiB: %s", o.code, o.peak>>20, last(o.out))
		}
		return fmt.Sprintf("exit code %d after %.1f s, peak %d MiB", o.code, o.took.Seconds(), o.peak>>20), nil
	}
}

func unknownFields(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	fields := strings.Builder{}
	for i := range 100_000 {
		fmt.Fprintf(&fields, `"unknown_field_%d":%d,`, i, i)
	}
	begin := time.Now()
	if err := v.LoadModel(ctx, "simple", "{"+fields.String()+`"max_batch_size":4}`); err == nil || len(err.Error()) > 64<<10 {
		return "", fmt.Errorf("the override: %s", cell(fmt.Sprint(err)))
	}
	override := time.Since(begin)
	text := strings.Builder{}
	for i := range 15_000 {
		fmt.Fprintf(&text, "unknown_%d: %d\n", i, i)
	}
	if err := s.add("other", "simple", text.String()); err != nil {
		return "", err
	}
	begin = time.Now()
	if err := v.LoadModel(ctx, "other", ""); err == nil || len(err.Error()) > 64<<10 {
		return "", fmt.Errorf("config.pbtxt: %s", cell(fmt.Sprint(err)))
	}
	file := time.Since(begin)
	if override > 5*time.Second || file > 5*time.Second {
		return "", fmt.Errorf("after %v and %v", override, file)
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	seen, err := v.bounded(1 << 30)
	return fmt.Sprintf("after %.1f and %.1f s, %s", override.Seconds(), file.Seconds(), seen), err
}

// declared returns a model with a tensor that declares more elements than it has.
func declared(n int64) []byte {
	g := build.NewGraph("declared")
	w := g.Floats("w", make([]float32, 4), n)
	g.OutputAs("y", g.Node("Add", []string{g.Input("x", onnx.Float, onnx.Fixed(1)), w}), onnx.Float, onnx.Symbol("n"))
	return marshal(g.Model())
}

// dims returns a model with inputs of a large size.
func dims(n int64) []byte {
	g := build.NewGraph("dims")
	var shape []onnx.Dim
	for range 30 {
		shape = append(shape, onnx.Fixed(n))
	}
	g.OutputAs("y", g.Input("x", onnx.Float, shape...), onnx.Float, shape...)
	return marshal(g.Model())
}

func refusedModel(model func() []byte) func(context.Context, *scene) (string, error) {
	return func(ctx context.Context, s *scene) (string, error) {
		if err := s.write(model(), "m.onnx"); err != nil {
			return "", err
		}
		for _, args := range [][]string{{"init", "m.onnx", "-o", "work"}, {"convert", "m.onnx", "--precision", "fp16", "-o", "work"}, {"run", "m.onnx", "-o", "run", "--budget", "5s"}} {
			o, err := s.tunes(ctx, args...)
			if err != nil {
				return "", err
			}
			// init reads no weights, run measures nothing
			isRefused := o.code == 2 || o.code == 0 && args[0] == "init" || o.code == 1 && args[0] == "run"
			if !isRefused || o.took > 20*time.Second || o.peak > 1<<30 {
				return "", fmt.Errorf("tuner %s ended with %d after %v, peak %d MiB: %s", args[0], o.code, o.took, o.peak>>20, last(o.out))
			}
		}
		return "refused by convert and run", nil
	}
}

func mutations(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	loaded, read := 0, 0
	for i := range 300 {
		name := []string{"mlp", "cnn", "simple"}[i%3]
		m := mutation.Of(sample(s, name), 2, i)
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := v.upload(short, "mutant", "1/model.onnx", m.Data)
		late := short.Err()
		cancel()
		if late != nil {
			return "", fmt.Errorf("mutation %d of %s (%s): no answer in 20 s", i, name, m.What)
		}
		if err == nil {
			loaded++
		}
		if i%10 > 0 {
			continue
		}
		if err := errors.Join(v.alive(ctx), s.write(m.Data, "m.onnx")); err != nil {
			return "", fmt.Errorf("mutation %d of %s (%s): %w", i, name, m.What, err)
		}
		o, err := s.tunes(ctx, "init", "m.onnx", "-o", fmt.Sprint("work", i))
		if err != nil || o.code != 0 && o.code != 2 {
			return "", errors.Join(fmt.Errorf("mutation %d of %s (%s): init ended with %d: %s", i, name, m.What, o.code, last(o.out)), err)
		}
		read++
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	seen, err := v.bounded(2 << 30)
	return fmt.Sprintf("%d of 300 were loaded, %d by init, %s", loaded, read, seen), err
}
