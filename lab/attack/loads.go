package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// loads: models and configurations that a client loads, and other requests during a load.
func loads() []attack {
	refused := func(name string, put func(*scene) error) func(context.Context, *scene) (string, error) {
		return func(ctx context.Context, s *scene) (string, error) { return refusedLoad(ctx, s, put) }
	}
	const want = "refused within 10 s, others are served, SIGTERM ends the server with 0"
	return []attack{
		{"A6", "25 functions that each call the next twice, in 1.7 kB", want, refused("functions", func(s *scene) error {
			return s.put("hostile", functions(25), "max_batch_size: 0\n")
		})},
		{"A6", "a warm-up of 4,294,967,295 requests", want, refused("warm-up", func(s *scene) error {
			return s.add("hostile", "simple", warmup("count: 4294967295"))
		})},
		{"A6", "a pipe in place of the model file", want, refused("pipe", func(s *scene) error {
			return errors.Join(s.write(nil, "repository", "hostile", "config.pbtxt"), s.write(nil, "repository", "hostile", "1", "x"),
				syscall.Mkfifo(s.path("repository", "hostile", "1", "model.onnx"), 0o644))
		})},
		{"A6", "a sparse tensor of 64 GiB", want, refused("sparse", func(s *scene) error { return s.put("hostile", sparse(1<<34), "max_batch_size: 0\n") })},
		{"A6", "300 constants of 512 MiB that ONNX Runtime would fold", "the load ends within 60 s or is given up, memory under 4 GiB, others are served", folding(512 << 20)},
		{"A6", "300 constants of 60 MiB that ONNX Runtime would fold", "the load ends within 60 s or is given up, memory under 4 GiB, others are served", folding(60 << 20)},
		{"A11", "uploads of a server that is killed", "the next server removes them", killedUploads},
		{"A12", "300 uploads that fail, each under another name", "the server stays ready, its index is as before", failedUploads},
		{"A6", "an upload whose file name or name leads elsewhere", "refused, nothing is written", strayUploads},
		{"§2", "loads, unloads and overrides for 10 s beside inferences", "no answer is lost or wrong", storm},
		{"B8", "SIGTERM with --drain-delay", "ready is false at once, requests are answered until the end, exit code 0", drain},
		{"B11", "a large model loaded and unloaded 6 times beside a small one", "no answer is lost or wrong", reloads},
	}
}

// refusedLoad checks that a model called hostile is refused.
func refusedLoad(ctx context.Context, s *scene, put func(*scene) error) (string, error) {
	if err := put(s); err != nil {
		return "", err
	}
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var refusal *api.StatusError
	if err := v.LoadModel(short, "hostile", ""); !errors.As(err, &refusal) {
		return "", fmt.Errorf("the load ended with %v after %v", err, time.Since(begin))
	}
	took := time.Since(begin)
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	if code, err := v.end(); err != nil || code != 0 {
		return "", errors.Join(fmt.Errorf("exit code %d", code), err)
	}
	return fmt.Sprintf("%d after %.1f s: %s", refusal.Status, took.Seconds(), last(refusal.Text)), nil
}

func marshal(m *onnx.Model) []byte {
	data, err := proto.Marshal(m.Proto())
	if err != nil {
		panic(err) // our own model: a bug of ours
	}
	return data
}

// functions returns a model of n functions, each of which calls the next one twice.
func functions(n int) []byte {
	node := func(domain, op, in, out string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{Domain: &domain, OpType: &op, Input: []string{in}, Output: []string{out}}
	}
	opsets := []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(17)}, {Domain: proto.String("d"), Version: proto.Int64(1)}}
	g := build.NewGraph("functions")
	g.Input("x", onnx.Float, onnx.Fixed(1))
	g.Output("y", onnx.Float, onnx.Fixed(1))
	m := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	m.OpsetImport, m.Graph.Node = opsets, []*onnxpb.NodeProto{node("d", "F0", "x", "y")}
	for i := range n {
		f := &onnxpb.FunctionProto{Domain: proto.String("d"), Name: proto.String(fmt.Sprint("F", i)), Input: []string{"x"}, Output: []string{"y"}, OpsetImport: opsets}
		next := fmt.Sprint("F", i+1)
		f.Node = []*onnxpb.NodeProto{node("d", next, "x", "t"), node("d", next, "t", "y")}
		if i == n-1 {
			f.Node = []*onnxpb.NodeProto{node("", "Neg", "x", "y")}
		}
		m.Functions = append(m.Functions, f)
	}
	return marshal(onnx.New(m))
}

// sparse returns a model with a sparse tensor that declares n elements and has one.
func sparse(n int64) []byte {
	g := build.NewGraph("sparse")
	g.OutputAs("y", g.Input("x", onnx.Float, onnx.Fixed(1)), onnx.Float, onnx.Fixed(1))
	m := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	m.Graph.SparseInitializer = []*onnxpb.SparseTensorProto{{Dims: []int64{n},
		Values:  &onnxpb.TensorProto{Name: proto.String("s"), DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{1}, FloatData: []float32{1}},
		Indices: &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Int64)), Dims: []int64{1}, Int64Data: []int64{0}}}}
	return marshal(onnx.New(m))
}

// foldable returns a small model of n constants of the given size, which all enter its output.
func foldable(n int, size int64) []byte {
	g := build.NewGraph("foldable")
	sum := g.Input("x", onnx.Float, onnx.Fixed(1))
	for i := range n {
		large := g.Node("ConstantOfShape", []string{g.Int64s(fmt.Sprint("shape", i), []int64{size / 4}, 1)})
		large = g.Node("Exp", []string{large})
		sum = g.Node("Add", []string{sum, g.Node("Slice", []string{g.Node("Add", []string{large, sum}), g.Int64s(fmt.Sprint("s", i), []int64{0}, 1), g.Int64s(fmt.Sprint("e", i), []int64{1}, 1)})})
	}
	g.OutputAs("y", sum, onnx.Float, onnx.Fixed(1))
	return marshal(g.Model())
}

func warmup(count string) string {
	input := func(name string) string {
		return `inputs { key: "` + name + `" value { data_type: TYPE_INT32 dims: [16] zero_data: true } }`
	}
	return "max_batch_size: 8\nmodel_warmup [{ name: \"w\" batch_size: 1 " + count + " " + input("INPUT0") + " " + input("INPUT1") + " }]\n"
}

// folding loads a model of 300 constants, each of some bytes.
func folding(size int64) func(context.Context, *scene) (string, error) {
	return func(ctx context.Context, s *scene) (string, error) {
		if err := s.put("hostile", foldable(300, size), "max_batch_size: 0\n"); err != nil {
			return "", err
		}
		v, err := s.simple(ctx)
		if err != nil {
			return "", err
		}
		var load errgroup.Group
		begin := time.Now()
		short, cancel := context.WithTimeout(ctx, 60*time.Second)
		defer cancel()
		var ended atomic.Bool
		load.Go(func() error {
			defer ended.Store(true)
			return v.LoadModel(short, "hostile", "")
		})
		for !ended.Load() {
			if err := v.serves(ctx); err != nil {
				return "", err
			}
			time.Sleep(200 * time.Millisecond)
		}
		err = load.Wait()
		if short.Err() != nil {
			return "", fmt.Errorf("the load did not end: %w, peak %d MiB", err, v.peak()>>20)
		}
		took := time.Since(begin)
		if err := v.serves(ctx); err != nil {
			return "", err
		}
		seen, errBound := v.bounded(4 << 30)
		return fmt.Sprintf("%v after %.1f s, %s", err, took.Seconds(), seen), errBound
	}
}

// upload sends a load request with a file.
func (v *server) upload(ctx context.Context, model, file string, data []byte) error {
	return v.LoadModel(ctx, model, `{"backend":"onnxruntime"}`, api.File{Path: file, Data: data})
}

func killedUploads(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	for i := range 5 {
		if err := v.upload(ctx, fmt.Sprint("up", i), "1/model.onnx", sample(s, "mlp")); err != nil {
			return "", err
		}
	}
	left := func() int {
		all, _ := filepath.Glob(s.path("tmp", "tuner-model*", "*")) // fails only for a bad pattern
		return len(all)
	}
	before := left()
	_ = v.cmd.Process.Kill()
	<-v.exited
	next, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	if before == 0 || left() != 0 {
		return "", fmt.Errorf("%d folders before the kill, %d after the next start", before, left())
	}
	return fmt.Sprintf("%d folders, none after the next start", before), next.serves(ctx)
}

func failedUploads(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	before, err := v.Index(ctx)
	if err != nil {
		return "", err
	}
	for i := range 300 {
		if err := v.upload(ctx, fmt.Sprint("junk", i), "1/model.onnx", []byte("this is no model")); err == nil {
			return "", errors.New("an upload of junk was loaded")
		}
	}
	after, err := v.Index(ctx)
	if err != nil || len(after) != len(before) {
		return "", errors.Join(fmt.Errorf("%d entries in the index, %d before", len(after), len(before)), err)
	}
	if status, _, err := v.get(ctx, "/v2/health/ready"); err != nil || status != 200 {
		return "", errors.Join(fmt.Errorf("ready answers %d", status), err)
	}
	return fmt.Sprintf("ready, %d entries", len(after)), v.serves(ctx)
}

func strayUploads(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	model := sample(s, "mlp")
	for _, file := range []string{"../evil/model.onnx", "/" + s.path("evil"), "1/../../evil", "1/model.onnx/../../../evil", "1\x00/model.onnx", "..", ""} {
		if err := v.upload(ctx, "up", file, model); err == nil {
			return "", fmt.Errorf("a file %q was taken", file)
		}
	}
	for _, name := range []string{"..", "../evil", ".", "a/b", "/evil"} {
		if err := v.grpc.LoadModel(ctx, name, `{"backend":"onnxruntime"}`, api.File{Path: "1/model.onnx", Data: model}); err == nil {
			return "", fmt.Errorf("a model %q was taken", name)
		}
	}
	if found, _ := filepath.Glob(s.path("*", "*evil*")); len(found) > 0 {
		return "", fmt.Errorf("written: %v", found)
	}
	return "12 refused", v.serves(ctx)
}

// steady sends requests to the model simple until it is stopped. It returns their number, and the
// longest time.
func (v *server) steady(ctx context.Context, until *atomic.Bool) (n int, longest time.Duration, err error) {
	for !until.Load() {
		begin := time.Now()
		if err := v.adds(ctx, 10*time.Second); err != nil {
			return n, longest, err
		}
		n, longest = n+1, max(longest, time.Since(begin))
	}
	return n, longest, nil
}

func storm(ctx context.Context, s *scene) (string, error) {
	if err := s.add("mlp", "mlp", ""); err != nil {
		return "", err
	}
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	var over atomic.Bool
	var operators errgroup.Group
	var operations atomic.Int64
	for i := range 4 {
		operators.Go(func() error {
			for j := 0; !over.Load(); j++ {
				var err error
				switch (i + j) % 4 {
				case 0:
					err = v.LoadModel(ctx, "mlp", "")
				case 1:
					err = v.LoadModel(ctx, "simple", fmt.Sprintf(`{"backend":"onnxruntime","max_batch_size":%d}`, 1+j%8))
				case 2:
					_ = v.UnloadModel(ctx, "mlp") // another client may have unloaded it
				case 3:
					err = v.upload(ctx, fmt.Sprint("up", i), "1/model.onnx", sample(s, "mlp"))
				}
				var busy *api.StatusError
				if err != nil && !errors.As(err, &busy) {
					return err
				}
				operations.Add(1)
			}
			return nil
		})
	}
	time.AfterFunc(10*time.Second, func() { over.Store(true) })
	n, _, err := v.steady(ctx, &over)
	if err := errors.Join(err, operators.Wait(), v.serves(ctx)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d operations beside %d right answers", operations.Load(), n), nil
}

func drain(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"}, "--drain-delay=2s")
	if err != nil {
		return "", err
	}
	if err := v.signal(syscall.SIGTERM); err != nil {
		return "", err
	}
	unready, answered := false, 0
	for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond; {
		status, _, err := v.get(ctx, "/v2/health/ready")
		if err != nil {
			return "", fmt.Errorf("%v after SIGTERM: %w", time.Since(begin), err)
		}
		if unready = unready || status == 503; unready && status != 503 {
			return "", fmt.Errorf("ready again: %d", status)
		}
		if err := v.adds(ctx, 5*time.Second); err != nil {
			return "", fmt.Errorf("%v after SIGTERM: %w", time.Since(begin), err)
		}
		answered++
	}
	<-v.exited // otherwise the scene's end kills it
	if code := v.cmd.ProcessState.ExitCode(); code != 0 || !unready {
		return "", fmt.Errorf("exit code %d, unready %t", code, unready)
	}
	return fmt.Sprintf("unready, %d requests answered meanwhile", answered), nil
}

func reloads(ctx context.Context, s *scene) (string, error) {
	if err := s.add("large", "minilm.int8", ""); err != nil {
		return "", notRun("no sample minilm.int8.onnx")
	}
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	var over atomic.Bool
	var operator errgroup.Group
	operator.Go(func() error {
		defer over.Store(true)
		for range 6 {
			if err := errors.Join(v.LoadModel(ctx, "large", ""), v.UnloadModel(ctx, "large")); err != nil {
				return err
			}
		}
		return nil
	})
	n, longest, err := v.steady(ctx, &over)
	if err := errors.Join(err, operator.Wait()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d answers, the longest after %v", n, longest.Round(time.Millisecond)), nil
}
