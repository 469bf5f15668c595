//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/export"
	"tuner/export/tuned"
	"tuner/export/tuned/tunedtest"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/report/result"
	"tuner/runner"
	"tuner/runner/load"
	"tuner/runner/meter"
	"tuner/runner/target"
)

// The two models of the comparison: a large one and a small one.
const (
	encoder = "encoder"
	ranker  = "ranker"
)

// launchers start the real Triton and tuner's engine as campaigns do.
func launchers(t *testing.T) map[string]runner.Launcher {
	t.Helper()
	p := find(t)
	return map[string]runner.Launcher{
		"Triton": target.Local{Program: p.Triton, Dial: runner.GRPC},
		"tuner":  target.Bundled{Binary: environment(t, "TUNER_BINARY")},
	}
}

// company is a server with both models.
type company struct {
	engine   runner.Engine
	client   api.Client
	requests map[string]runner.Requests
}

// serveTogether launches a server on a repository with both models, and loads them. bind changes their
// configurations.
func serveTogether(t *testing.T, launcher runner.Launcher, policies []isolation.Policy, bind func(model int, c *modelconfig.Config) *modelconfig.Config) company {
	t.Helper()
	root := t.TempDir()
	var variants []modelrepo.Variant
	for i, m := range []struct{ name, file, config string }{
		{encoder, "minilm.onnx", `name: "encoder" backend: "onnxruntime" max_batch_size: 8 dynamic_batching {} instance_group { kind: KIND_CPU count: 1 }`},
		{ranker, "mlp.onnx", `name: "ranker" backend: "onnxruntime" max_batch_size: 8 dynamic_batching {} instance_group { kind: KIND_CPU count: 2 }`},
	} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(m.config))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(environment(t, "TUNER_MODELS"), m.file)
		v, err := modelrepo.Build(root, modelrepo.Source{Path: path, Digest: m.file}, bind(i, c))
		if err != nil {
			t.Fatal(err)
		}
		variants = append(variants, v)
	}
	group, err := modelrepo.Together(root, variants...)
	if err != nil {
		t.Fatal(err)
	}
	s := company{requests: map[string]runner.Requests{}}
	s.engine, err = launcher.Launch(t.Context(), runner.Server{Repository: group.Dir, Library: find(t).ORTLibrary, Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.engine.Stop(context.WithoutCancel(t.Context())) })
	if s.client, err = runner.GRPC(s.engine.Address()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Close() })
	for _, name := range group.Models {
		if err := s.client.LoadModel(t.Context(), name, ""); err != nil {
			t.Fatal(err)
		}
		s.requests[name] = runner.Requests{onesFor(t, s.client, name)}
	}
	return s
}

// onesFor returns a request of one row whose inputs are ones, with 32 for each free size.
func onesFor(t *testing.T, client api.Client, model string) api.InferRequest {
	t.Helper()
	m, err := client.ModelMetadata(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	r := api.InferRequest{Model: model}
	for _, in := range m.Inputs {
		shape, elements := slices.Clone(in.Shape), 1
		for i := range shape {
			switch {
			case i == 0:
				shape[i] = 1
			case shape[i] < 0:
				shape[i] = 32
			}
			elements *= int(shape[i])
		}
		var data []byte
		for range elements {
			if in.Datatype == "FP32" {
				data = append(data, 0, 0, 0x80, 0x3f)
			} else { // INT64
				data = append(data, 1, 0, 0, 0, 0, 0, 0, 0)
			}
		}
		r.Inputs = append(r.Inputs, api.Tensor{Name: in.Name, Datatype: in.Datatype, Shape: shape, Data: data})
	}
	return r
}

// part returns the load on one of the models.
func (s company) part(t *testing.T, model string, l measure.Load) load.Part {
	t.Helper()
	connections, err := runner.Over(runner.OverGRPC)(s.engine.Address(), s.requests[model], -1)
	if err != nil {
		t.Fatal(err)
	}
	p := load.Part{Model: model, Load: l, WarmUp: 3 * time.Second, Patience: 20 * time.Second,
		Dial: func(ctx context.Context, _ int) (load.Conn, error) { return connections.Dial(ctx, l.Concurrency) }}
	if l.Concurrency == 0 {
		if p.Arrivals, err = arrivals.Poisson(l.RequestRate, 7); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestLoadsTogether puts a closed loop on one model and an open one on the other, at the same time. The
// figures of each agree with the server's statistics of that model, which one answer has for both.
func TestLoadsTogether(t *testing.T) {
	for name, launcher := range launchers(t) {
		t.Run(name, func(t *testing.T) {
			s := serveTogether(t, launcher, nil, func(_ int, c *modelconfig.Config) *modelconfig.Config { return c })
			m, err := meter.Open(t.Context(), meter.Options{Control: s.client, PID: s.engine.PID(),
				Models: []meter.Subject{{Model: meter.Model{Name: encoder}}, {Model: meter.Model{Name: ranker}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var readings []meter.Reading
			parts := []load.Part{s.part(t, encoder, measure.Load{Concurrency: 4, BatchSize: 1}), s.part(t, ranker, measure.Load{RequestRate: 150, BatchSize: 1})}
			results, err := load.Together(t.Context(), parts, load.Windows{
				Length: func([]time.Duration) time.Duration { return 2 * time.Second },
				More:   func(windows [][]measure.Window) bool { return len(windows[0]) < 2 },
				Edge: func(ctx context.Context, _ int) error {
					r, err := m.Read(ctx)
					readings = append(readings, r)
					return err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				for k, w := range meter.Fill(i, r.Windows, readings) {
					mean := meanOf(w)
					served := w.Server.Success.Seconds() / float64(max(1, w.Server.Requests))
					t.Logf("%s, window %d: %d requests, server %d; mean latency %.2f ms, server %.2f ms; %d errors", parts[i].Model, k, w.Requests, w.Server.Requests, 1e3*mean, 1e3*served, w.Errors)
					if w.Start != results[0].Windows[k].Start || w.Duration != results[0].Windows[k].Duration {
						t.Errorf("%s, window %d has edges of its own", parts[i].Model, k)
					}
					// A request may be answered on the other side of an edge than the statistics count
					// it: those in flight, at two edges.
					if d := w.Requests - w.Server.Requests; w.Errors > 0 || d > 12 || d < -12 || w.Requests < 20 {
						t.Errorf("%s, window %d: %d requests, the server counts %d", parts[i].Model, k, w.Requests, w.Server.Requests)
					}
					// A small model's requests take most of their time on the way.
					if served > mean || i == 0 && served < mean/3 {
						t.Errorf("%s, window %d: mean latency %.3f ms, the server's %.3f ms", parts[i].Model, k, 1e3*mean, 1e3*served)
					}
				}
			}
		})
	}
}

// meanOf returns a window's mean latency from the sending, in seconds.
func meanOf(w measure.Window) float64 {
	sum := 0.0
	for _, s := range w.Sub {
		latency := s.Latency
		if s.Service.Count() > 0 {
			latency = s.Service
		}
		sum += latency.Mean().Seconds() * float64(s.Requests)
	}
	return sum / float64(max(1, w.Requests))
}

// thread is a thread of a server: the cores on which it may run, and the CPU time that it has used.
type thread struct {
	name, cores string
	used        time.Duration
}

func threadsOf(t *testing.T, pid int) map[string]thread {
	t.Helper()
	folders, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]thread{}
	for _, folder := range folders {
		status, _ := os.ReadFile(filepath.Join(folder, "status")) // "" for a thread that has ended
		stat, _ := os.ReadFile(filepath.Join(folder, "stat"))
		_, rest, found := strings.Cut(string(stat), ") ")
		if !found {
			continue
		}
		var th thread
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				th.cores = strings.TrimSpace(value)
			}
			if value, ok := strings.CutPrefix(line, "Name:"); ok {
				th.name = strings.TrimSpace(value)
			}
		}
		fields := strings.Fields(rest) // from the third field of proc_pid_stat(5) on
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		th.used = time.Duration(user+system) * 10 * time.Millisecond
		all[filepath.Base(folder)] = th
	}
	return all
}

// TestModelsOnCoresOfTheirOwn gives each model a core. Under a load on one model, only threads of that
// core compute, besides those that the server has in common. It is so on both servers.
func TestModelsOnCoresOfTheirOwn(t *testing.T) {
	cores, err := hostinfo.Cores()
	if err != nil {
		t.Fatal(err)
	}
	if len(cores) < 2 {
		t.Skip("needs two cores")
	}
	divided, err := isolation.Divide(cores, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	policies := []isolation.Policy{isolation.NewPolicy(divided[0], false), isolation.NewPolicy(divided[1], false)}
	for name, launcher := range launchers(t) {
		t.Run(name, func(t *testing.T) {
			s := serveTogether(t, launcher, policies, func(model int, c *modelconfig.Config) *modelconfig.Config {
				bound, err := isolation.Bind(c, policies[model])
				if err != nil {
					t.Fatal(err)
				}
				return bound
			})
			for i, model := range []string{encoder, ranker} {
				before := threadsOf(t, s.engine.PID())
				if _, err := load.Run(t.Context(), load.Options{Part: s.part(t, model, measure.Load{Concurrency: 8, BatchSize: 1}), Windows: load.Windows{
					Length: func([]time.Duration) time.Duration { return 2 * time.Second },
					More:   func([][]measure.Window) bool { return false },
					Edge:   func(context.Context, int) error { return nil },
				}}); err != nil {
					t.Fatal(err)
				}
				used, threads := map[string]time.Duration{}, map[string]int{}
				for id, th := range threadsOf(t, s.engine.PID()) {
					used[th.cores] += th.used - before[id].used
					threads[th.cores]++
				}
				own, other := strconv.Itoa(divided[i][0].ID), strconv.Itoa(divided[1-i][0].ID)
				t.Logf("load on %s, bound to core %s: CPU time %v of threads %v", model, own, used, threads)
				if threads[own] == 0 || threads[other] == 0 || used[own] < 300*time.Millisecond || used[other] > used[own]/10 {
					t.Errorf("load on %s: core %s alone must have its CPU time", model, own)
				}
			}
		})
	}
}

// TestExportedPolicies has a real Triton serve an exported repository with the exported arguments: two models whose
// best configuration gives each a core of its own. Under a load on one of them, only that core's threads compute,
// besides those that the server has in common.
func TestExportedPolicies(t *testing.T) {
	cores, err := hostinfo.Cores()
	if err != nil {
		t.Fatal(err)
	}
	if len(cores) < 2 {
		t.Skip("needs two cores")
	}
	// The golden result of two models, with the tensors of MiniLM and the MLP, and with this machine's processors. A
	// session has as many threads as its cores (isolation.Bind).
	tensor := func(field, name, datatype, dims string) string {
		return fmt.Sprintf(`%s {\n  name: \"%s\"\n  data_type: %s\n  dims: [%s]\n}`, field, name, datatype, dims)
	}
	replace := append(tunedtest.Divided(),
		tensor("input", "input_ids", "TYPE_INT64", "-1"), tensor("input", "input_ids", "TYPE_INT64", "-1")+`\n`+
			tensor("input", "attention_mask", "TYPE_INT64", "-1")+`\n`+tensor("input", "token_type_ids", "TYPE_INT64", "-1"),
		tensor("input", "features", "TYPE_FP32", "32"), tensor("input", "INPUT", "TYPE_FP32", "64"),
		tensor("output", "score", "TYPE_FP32", "1"), tensor("output", "OUTPUT", "TYPE_FP32", "8"),
		`default_model_filename`, `parameters {\n  key: \"intra_op_thread_count\"\n  value { string_value: \"1\" }\n}\ndefault_model_filename`)
	for i := range replace {
		for k, name := range []string{"0-0", "1-1"} {
			replace[i] = strings.ReplaceAll(replace[i], fmt.Sprintf("cores_%s,cpu-cores=%[1]s", name), fmt.Sprintf("cores_%s,cpu-cores=%d-%[2]d", name, cores[k].ID))
		}
	}
	text := tunedtest.Text(t, "../..", tunedtest.Two, replace...)
	models, err := tuned.Parse(result.FileName, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, deploy := t.TempDir(), filepath.Join(t.TempDir(), "deploy")
	write(t, filepath.Join(dir, result.FileName), text)
	for i, file := range []string{"minilm.onnx", "mlp.onnx"} {
		source := modelrepo.Source{Path: filepath.Join(environment(t, "TUNER_MODELS"), file), Digest: file}
		if err := modelrepo.Write(filepath.Join(dir, "repository"), source, modelconfig.Clone(models[i].Config)); err != nil {
			t.Fatal(err)
		}
	}
	program := environment(t, "TUNER_BINARY")
	runTool(t, dir, program, "export", "triton", "--input", dir, "-o", deploy)
	manifest, err := export.ReadManifest(deploy)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(manifest.Arguments, " "); strings.Count(text, "--host-policy=") != 2 {
		t.Fatalf("the arguments are %s", text)
	}
	server, err := find(t).StartTriton(t.Context(), filepath.Join(deploy, manifest.Repository), manifest.Arguments...)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
	for i, flags := range []string{"-m encoder" + tokens, "-m ranker"} {
		before := threadsOf(t, server.PID)
		runTool(t, "", program, append([]string{"perf", "-i", "grpc", "-u", server.GRPC, "--concurrency-range", "8", "--input-data", "zero", "-p", "700", "-s", "100000", "-r", "3"},
			strings.Fields(flags)...)...)
		used := map[string]time.Duration{}
		for id, th := range threadsOf(t, server.PID) {
			used[th.cores] += th.used - before[id].used
		}
		own, other := strconv.Itoa(cores[i].ID), strconv.Itoa(cores[1-i].ID)
		t.Logf("%s: CPU time %v", flags, used)
		if used[own] < 300*time.Millisecond || used[other] > used[own]/10 {
			t.Errorf("%s: core %s alone must have its CPU time", flags, own)
		}
	}
}
