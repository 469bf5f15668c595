package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/served"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// wiring is a step of a test's ensemble. The fake models answer OUTPUT0 = INPUT0 and OUTPUT1 =
// INPUT1.
type wiring struct {
	model   string
	in, out [2]string // tensors of INPUT0 and INPUT1, OUTPUT0 and OUTPUT1; "": not mapped
}

// ensembleConfig writes a configuration with tensors of 16 integers.
func ensembleConfig(maxBatch int, inputs, outputs []string, steps ...wiring) string {
	var b strings.Builder
	fmt.Fprintf(&b, "platform: \"ensemble\" max_batch_size: %d\n", maxBatch)
	for _, list := range []struct {
		field string
		names []string
	}{{"input", inputs}, {"output", outputs}} {
		for _, name := range list.names {
			fmt.Fprintf(&b, "%s [ { name: %q data_type: TYPE_INT32 dims: [ 16 ] } ]\n", list.field, name)
		}
	}
	b.WriteString("ensemble_scheduling {\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "step [ { model_name: %q model_version: -1", s.model)
		for i := range 2 {
			if s.in[i] != "" {
				fmt.Fprintf(&b, " input_map { key: \"INPUT%d\" value: %q }", i, s.in[i])
			}
			if s.out[i] != "" {
				fmt.Fprintf(&b, " output_map { key: \"OUTPUT%d\" value: %q }", i, s.out[i])
			}
		}
		b.WriteString(" } ]\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// crossed has two steps, which both swap the tensors: the answer is the inputs.
func crossed(maxBatch int, first, second string) string {
	return ensembleConfig(maxBatch, []string{"INPUT0", "INPUT1"}, []string{"OUTPUT0", "OUTPUT1"},
		wiring{first, [2]string{"INPUT0", "INPUT1"}, [2]string{"x", "y"}}, wiring{second, [2]string{"x", "y"}, [2]string{"OUTPUT0", "OUTPUT1"}})
}

// openEnsembles starts a server in explicit mode with models that echo their inputs, and ensembles
// by their configurations. All are loaded.
func openEnsembles(t *testing.T, backend *enginetest.Backend, parts, ensembles map[string]string) (*engine.Server, string) {
	t.Helper()
	root := t.TempDir()
	for _, models := range []map[string]string{parts, ensembles} {
		for name, config := range models {
			enginetest.WriteModel(t, root, name, config)
		}
	}
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{root}, Explicit: true, LoadModels: []string{"*"}, StrictReadiness: true, ExitOnError: true,
		LoadThreads: 2, Backend: backend, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if n := backend.Open(); n != 0 {
			t.Errorf("%d sessions are open after Close", n)
		}
	})
	return s, root
}

// filled is a tensor of some rows whose elements are all n.
func filled(name string, rows int64, n uint32) engine.Tensor {
	t := tensor(name, rows, 16)
	for at := 0; at < len(t.Data); at += 4 {
		binary.LittleEndian.PutUint32(t.Data[at:], n)
	}
	return t
}

func numberOf(t engine.Tensor) uint32 { return binary.LittleEndian.Uint32(t.Data) }

func byName(r *engine.Response, name string) (engine.Tensor, bool) {
	i := slices.IndexFunc(r.Outputs, func(t engine.Tensor) bool { return t.Name == name })
	if i < 0 {
		return engine.Tensor{}, false
	}
	return r.Outputs[i], true
}

// Random acyclic graphs give what a direct evaluation gives, for all outputs and for some. No memory
// stays charged, and a step that no output needs does not run.
func TestPropertyEnsembles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		inputs := []string{"i0", "i1", "i2"}[:1+random.IntN(3)]
		source := map[string]int{} // by tensor: the input that it is a copy of
		var known []string
		for i, name := range inputs {
			source[name] = i
			known = append(known, name)
		}
		used := map[string]bool{}
		var steps []wiring
		parts := map[string]string{}
		for k := range 1 + random.IntN(7) {
			w := wiring{model: fmt.Sprintf("part%d", random.IntN(3))}
			parts[w.model] = fmt.Sprintf("max_batch_size: %d dynamic_batching { }", 4+4*random.IntN(2))
			for i := range 2 {
				w.in[i] = known[random.IntN(len(known))]
				if k < len(inputs) && i == 0 {
					w.in[i] = inputs[k] // each input is used
				}
				used[w.in[i]] = true
			}
			fresh := []string{}
			for i := range 2 {
				if i == 1 && random.IntN(3) == 0 {
					continue
				}
				w.out[i] = fmt.Sprintf("t%d_%d", k, i)
				source[w.out[i]] = source[w.in[i]]
				fresh = append(fresh, w.out[i])
			}
			known = append(known, fresh...)
			steps = append(steps, w)
		}
		var outputs []string
		for _, name := range known[len(inputs):] {
			if !used[name] || random.IntN(4) == 0 {
				outputs = append(outputs, name)
			}
		}
		inputs = slices.DeleteFunc(inputs, func(name string) bool { return !used[name] })
		random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		s, _ := openEnsembles(t, &enginetest.Backend{}, parts, map[string]string{"e": ensembleConfig(4, inputs, outputs, steps...)})
		b := budget.New(0)
		for n := range 12 {
			rows := int64(1 + random.IntN(4))
			r := &engine.Request{Model: "e", Memory: b.Open(nil)}
			for _, name := range inputs {
				r.Inputs = append(r.Inputs, filled(name, rows, uint32(100*n+source[name])))
			}
			want := outputs
			if n%2 == 1 {
				want = slices.DeleteFunc(slices.Clone(outputs), func(string) bool { return random.IntN(2) == 0 })
				if len(want) == 0 {
					want = outputs[:1]
				}
				r.Outputs = want
			}
			response, err := s.Infer(t.Context(), r)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if len(response.Outputs) != len(want) {
				t.Errorf("seed %d: %d outputs, want %v", seed, len(response.Outputs), want)
			}
			for _, name := range want {
				out, found := byName(response, name)
				if !found || numberOf(out) != uint32(100*n+source[name]) || out.Shape[0] != rows {
					t.Errorf("seed %d: output %s is %v, want %d", seed, name, out, 100*n+source[name])
				}
			}
			response.Release()
		}
		if b.Used() != 0 {
			t.Errorf("seed %d: %d bytes stay charged", seed, b.Used())
		}
		s.Close()
	}
}

func two(a, b uint32) *engine.Request {
	return &engine.Request{Model: "e", Inputs: []engine.Tensor{filled("INPUT0", 1, a), filled("INPUT1", 1, b)}}
}

const part = "max_batch_size: 8 dynamic_batching { }"

// A step that fails ends the request once, with the ensemble's name. The other step's answer is
// released, and a step that was queued leaves its queue.
func TestEnsembleFailure(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	backend := &enginetest.Backend{Fail: func(rows int) error {
		if broken.Load() && rows == 1 {
			return errors.New("broken")
		}
		return nil
	}}
	s, _ := openEnsembles(t, backend, map[string]string{"p": part, "q": part}, map[string]string{"e": ensembleConfig(8, []string{"INPUT0", "INPUT1"}, []string{"OUTPUT0", "OUTPUT1"},
		wiring{"p", [2]string{"INPUT0", "INPUT1"}, [2]string{"OUTPUT0", ""}}, wiring{"q", [2]string{"INPUT0", "INPUT1"}, [2]string{"OUTPUT1", ""}})})
	b := budget.New(0)
	broken.Store(true)
	r := two(1, 2)
	r.Memory = b.Open(nil)
	_, err := s.Infer(t.Context(), r)
	if err == nil || err.Error() != "in ensemble 'e', broken" || fault.CodeOf(err) != fault.Internal {
		t.Errorf("error %v (%v)", err, fault.CodeOf(err))
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
	stats, _ := s.Statistics("e", 0)
	if i := stats.ModelStats[0].InferenceStats; i.Fail.Count != 1 || i.Success.Count != 0 {
		t.Errorf("statistics %+v", i)
	}
}

// A request whose client goes away ends at once where its step is queued. The step that runs is
// waited for, and nothing stays charged.
func TestEnsembleCancel(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 100), make(chan struct{})
	backend := &enginetest.Backend{ServiceTime: func(int, int) time.Duration { entered <- struct{}{}; <-release; return 0 }}
	one := "max_batch_size: 1 instance_group { count: 1 kind: KIND_CPU }"
	s, _ := openEnsembles(t, backend, map[string]string{"p": one}, map[string]string{"inner": crossed(1, "p", "p"), "e": crossed(1, "inner", "p")})
	b := budget.New(0)
	ctx, cancel := context.WithCancel(t.Context())
	var pending []*engine.Pending
	for range 5 { // the first one runs, the others are queued
		r := two(1, 2)
		r.Memory = b.Open(nil)
		p, err := s.Start(r)
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	<-entered
	cancel()
	for _, p := range pending[1:] {
		if _, err := p.Wait(ctx); fault.CodeOf(err) != fault.Cancelled || !strings.HasPrefix(err.Error(), "in ensemble 'e', ") {
			t.Errorf("a cancelled request: %v", err)
		}
	}
	close(release)
	response, err := pending[0].Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	response.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
}

// Intermediate tensors are charged to the request, until no step needs them any more.
func TestEnsembleMemory(t *testing.T) {
	t.Parallel()
	s, _ := openEnsembles(t, &enginetest.Backend{}, map[string]string{"p": part}, map[string]string{"e": crossed(8, "p", "p")})
	b := budget.New(1 << 20)
	r := two(1, 2)
	r.Memory = b.Open(nil)
	response, err := s.Infer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if b.Used() != 128 { // those of the first step are free
		t.Errorf("%d bytes are charged for two outputs of 64", b.Used())
	}
	response.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
	r = two(1, 2)
	r.Memory = b.Open(nil)
	r.AddOutput([]byte("OUTPUT0"))
	r.Classify(2)
	r.AddOutput([]byte("OUTPUT1"))
	if response, err = s.Infer(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	// both outputs are still the step's; the answer has 64 bytes, and two classes "V:P" behind their lengths
	if b.Used() != 128+64+2*(4+3) {
		t.Errorf("%d bytes are charged for an output and two classes", b.Used())
	}
	response.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged with classes", b.Used())
	}
	small := budget.New(2*2*served.StepBytes + 200) // two steps leave as much, and 128 bytes more do not
	r.Memory = small.Open(nil)
	if _, err := s.Infer(t.Context(), r); fault.CodeOf(err) != fault.Exhausted || small.Used() != 0 {
		t.Errorf("without room: %v, %d bytes", err, small.Used())
	}
}

// Ensembles of ensembles make a bounded number of requests, of which each is charged while it is on its way.
func TestEnsembleRequestsAreBounded(t *testing.T) {
	t.Parallel()
	// a request to level k makes 2^(k+1) - 1: itself, and twice those of the level below
	const levels = 11
	ensembles := map[string]string{}
	for k := range levels {
		below := fmt.Sprint("level", k)
		if k == 0 {
			below = "p"
		}
		ensembles[fmt.Sprint("level", k+1)] = ensembleConfig(8, []string{"INPUT0", "INPUT1"}, []string{"OUTPUT0", "OUTPUT1"},
			wiring{below, [2]string{"INPUT0", "INPUT1"}, [2]string{"OUTPUT0", ""}}, wiring{below, [2]string{"INPUT0", "INPUT1"}, [2]string{"", "OUTPUT1"}})
	}
	s, root := openEnsembles(t, &enginetest.Backend{}, map[string]string{"p": part}, ensembles)
	enginetest.WriteModel(t, root, "more", crossed(8, fmt.Sprint("level", levels), "p"))
	err := s.Load(t.Context(), "more", engine.Override{})
	if err == nil || !strings.Contains(err.Error(), "a request to ensemble more would make more than 4096 requests") {
		t.Errorf("4095 requests and two more: %v", err)
	}
	b := budget.New(0)
	r := two(1, 2)
	r.Model, r.Memory = fmt.Sprint("level", levels), b.Open(nil)
	response, err := s.Infer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	out0, _ := byName(response, "OUTPUT0")
	out1, _ := byName(response, "OUTPUT1")
	if numberOf(out0) != 1 || numberOf(out1) != 2 {
		t.Errorf("the answer is %d and %d", numberOf(out0), numberOf(out1))
	}
	response.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
	// a request at the first level is within one of each other level, all of which have two steps
	small := budget.New(2 * (levels*2*served.StepBytes - 1))
	r.Memory = small.Open(nil)
	if _, err := s.Infer(t.Context(), r); fault.CodeOf(err) != fault.Exhausted || small.Used() != 0 {
		t.Errorf("without room: %v, %d bytes", err, small.Used())
	}
}

// Loads and unloads follow the models that an ensemble consists of.
func TestEnsembleDependence(t *testing.T) {
	t.Parallel()
	s, root := openEnsembles(t, &enginetest.Backend{}, map[string]string{"p": part, "q": part}, map[string]string{"inner": crossed(8, "p", "q"), "e": crossed(8, "inner", "p")})
	ready := func(want ...string) {
		t.Helper()
		var got []string
		for _, name := range []string{"e", "inner", "p", "q"} {
			if s.ModelReady(name, 0) == nil {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("ready: %v, want %v", got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ready("e", "inner", "p", "q")
	must(s.Unload("q"))
	ready("p")
	must(s.Load(t.Context(), "q", engine.Override{}))
	ready("e", "inner", "p", "q")
	for _, name := range []string{"e", "inner", "p", "q"} {
		must(s.Unload(name))
	}
	ready()
	must(s.Load(t.Context(), "e", engine.Override{}))
	ready("e", "inner", "p", "q")
	must(s.Load(t.Context(), "q", engine.Override{})) // it is wanted for itself now
	must(s.UnloadDependents("e"))
	ready("q")
	must(s.Load(t.Context(), "e", engine.Override{}))
	if err := os.WriteFile(filepath.Join(root, "p", "config.pbtxt"), []byte("max_batch_size: 2"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(s.Load(t.Context(), "p", engine.Override{})) // too small a batch for both ensembles
	ready("p", "q")
	if err := os.WriteFile(filepath.Join(root, "p", "config.pbtxt"), []byte(part), 0o644); err != nil {
		t.Fatal(err)
	}
	must(s.Load(t.Context(), "p", engine.Override{}))
	ready("e", "inner", "p", "q")
	if err := os.WriteFile(filepath.Join(root, "q", "config.pbtxt"), []byte("max_batch_size: 2"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(s.Load(t.Context(), "q", engine.Override{})) // too small a batch for the inner one, of which the outer one consists
	ready("p", "q")
	if err := os.WriteFile(filepath.Join(root, "q", "config.pbtxt"), []byte(part), 0o644); err != nil {
		t.Fatal(err)
	}
	must(s.Load(t.Context(), "q", engine.Override{}))
	ready("e", "inner", "p", "q")
	infer(t, s, two(1, 2))
	if !s.Ready() {
		t.Error("the server is not ready")
	}
}

// Requests, reloads, unloads and cancellations at the same time: each answer is right or one of the
// errors of a model that is not there, and nothing stays charged or open.
func TestEnsemblesUnderReloads(t *testing.T) {
	t.Parallel()
	parts := map[string]string{"p": part + " instance_group { count: 2 kind: KIND_CPU }", "q": part}
	s, root := openEnsembles(t, &enginetest.Backend{}, parts, map[string]string{"inner": crossed(8, "p", "q"), "e": crossed(8, "inner", "q")})
	b := budget.New(0)
	length := 500 * time.Millisecond
	if os.Getenv("TUNER_LONG") != "" {
		length = 10 * time.Second
	}
	stop := make(chan struct{})
	time.AfterFunc(length, func() { close(stop) })
	var answered atomic.Int64
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			account := b.Open(nil)
			random := rand.New(rand.NewPCG(uint64(g), 4))
			for n := uint32(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				r := two(n, n+1)
				r.Memory = account
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(4) == 0 {
					cancel()
				}
				response, err := s.Infer(ctx, r)
				cancel()
				if err != nil {
					if code := fault.CodeOf(err); code != fault.NotFound && code != fault.Cancelled && code != fault.Unavailable {
						t.Errorf("%v (%v)", err, code)
					}
					continue
				}
				out0, _ := byName(response, "OUTPUT0")
				out1, _ := byName(response, "OUTPUT1")
				if numberOf(out0) != n || numberOf(out1) != n+1 {
					t.Errorf("request %d: %d and %d", n, numberOf(out0), numberOf(out1))
				}
				response.Release()
				answered.Add(1)
			}
		})
	}
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			config := fmt.Sprintf("%s instance_group { count: %d kind: KIND_CPU }", part, 1+i%3)
			name := []string{"p", "q"}[i%2]
			if err := os.WriteFile(filepath.Join(root, name, "config.pbtxt"), []byte(config), 0o644); err != nil {
				t.Error(err)
			}
			if err := s.Load(t.Context(), name, engine.Override{}); err != nil {
				t.Error(err)
			}
			if i%5 == 4 {
				if err := errors.Join(s.Unload("q"), s.Load(t.Context(), "q", engine.Override{})); err != nil {
					t.Error(err)
				}
			}
		}
	})
	all.Wait()
	if b.Used() != 0 || answered.Load() == 0 {
		t.Errorf("%d bytes stay charged, %d requests were answered", b.Used(), answered.Load())
	}
}

// A tensor of strings goes from step to step as it is.
func TestEnsembleStrings(t *testing.T) {
	t.Parallel()
	text := func(name string) string { return fmt.Sprintf("{ name: %q data_type: TYPE_STRING dims: [ 2 ] }", name) }
	backend := &enginetest.Backend{IO: wordsIO()}
	config := fmt.Sprintf(`platform: "ensemble" max_batch_size: 4 input [ %s ] output [ %s ] ensemble_scheduling {
		step [ { model_name: "p" model_version: -1 input_map { key: "X" value: "IN" } output_map { key: "Y" value: "middle" } } ]
		step [ { model_name: "p" model_version: -1 input_map { key: "X" value: "middle" } output_map { key: "Y" value: "OUT" } } ] }`, text("IN"), text("OUT"))
	s, _ := openEnsembles(t, backend, map[string]string{"p": "max_batch_size: 4"}, map[string]string{"e": config})
	data := []byte("\x01\x00\x00\x00a\x00\x00\x00\x00\x03\x00\x00\x00bcd\x01\x00\x00\x00e")
	r := &engine.Request{Model: "e", Inputs: []engine.Tensor{{Name: "IN", DataType: configpb.DataType_TYPE_STRING, Shape: []int64{2, 2}, Data: data}}}
	response, err := s.Infer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Release()
	if out := response.Outputs[0]; out.Name != "OUT" || !bytes.Equal(out.Data, data) || !slices.Equal(out.Shape, []int64{2, 2}) {
		t.Errorf("%+v", out)
	}
}

// wordsIO is a model from two strings to two strings.
func wordsIO() modelconfig.ModelIO {
	words := func(name string) []modelconfig.Tensor {
		return []modelconfig.Tensor{{Name: name, DataType: configpb.DataType_TYPE_STRING, Dims: []int64{-1, 2}}}
	}
	return modelconfig.ModelIO{Inputs: words("X"), Outputs: words("Y")}
}
