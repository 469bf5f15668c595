package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/internal/transcript"
)

// openCached starts a server with the model "m", and a response cache of some bytes.
func openCached(t testing.TB, backend *enginetest.Backend, size int64, config string) (*engine.Server, string) {
	t.Helper()
	return openLogged(t, backend, size, config, slog.DiscardHandler)
}

func openLogged(t testing.TB, backend *enginetest.Backend, size int64, config string, log slog.Handler) (*engine.Server, string) {
	t.Helper()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", config)
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{root}, Explicit: true, LoadModels: []string{"m"}, ExitOnError: true,
		ResponseCache: size, Backend: backend, Log: slog.New(log),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, root
}

const cachedConfig = `response_cache { enable: true }`

// numbered is a request whose answer has the number in all elements.
func numbered(rows int64, n int) *engine.Request {
	r := request(rows)
	for i := range r.Inputs {
		data := r.Inputs[i].Data
		for at := 0; at < len(data); at += 4 {
			binary.LittleEndian.PutUint32(data[at:], uint32(n))
		}
	}
	return r
}

func countersOf(t testing.TB, s *engine.Server) api.ModelStatistics {
	t.Helper()
	stats, err := s.Statistics("m", 0)
	if err != nil {
		t.Fatal(err)
	}
	return stats.ModelStats[0]
}

func TestCachedAnswers(t *testing.T) {
	t.Parallel()
	s, _ := openCached(t, &enginetest.Backend{}, 1<<20, cachedConfig)
	for i, step := range []struct {
		rows           int64
		n              int
		outputs        []string
		hits, executed uint64
	}{
		{1, 7, nil, 0, 1},
		{1, 7, nil, 1, 1},
		{1, 8, nil, 1, 2},                             // other data
		{2, 7, nil, 1, 3},                             // another shape
		{1, 7, []string{"OUTPUT1"}, 1, 4},             // other outputs: Triton answers with those of before
		{1, 7, []string{"OUTPUT1"}, 2, 4},             //
		{1, 7, []string{"OUTPUT1", "OUTPUT0"}, 3, 4},  // all of them, as in the first
		{2, 7, []string{"OUTPUT0", "OUTPUT1"}, 4, 4},  //
		{1, 8, nil, 5, 4},                             //
		{1, -1, []string{"OUTPUT0", "OUTPUT1"}, 5, 5}, //
	} {
		r := numbered(step.rows, step.n)
		r.Outputs, r.ID = step.outputs, "id of this request"
		response, err := s.Infer(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(len(step.outputs), 2-2*len(step.outputs)); len(response.Outputs) != want || response.ID != r.ID || response.Model != "m" || response.Version != 1 {
			t.Errorf("step %d: %d outputs, want %d: %+v", i, len(response.Outputs), want, response)
		}
		for _, out := range response.Outputs {
			if !bytes.Equal(out.Data, r.Inputs[0].Data) || out.Shape[0] != step.rows {
				t.Errorf("step %d: %s is %v of shape %v", i, out.Name, out.Data, out.Shape)
			}
		}
		response.Release()
		if c := countersOf(t, s); c.InferenceStats.CacheHit.Count != step.hits || c.ExecutionCount != step.executed {
			t.Errorf("step %d: %d hits and %d executions, want %d and %d", i, c.InferenceStats.CacheHit.Count, c.ExecutionCount, step.hits, step.executed)
		}
	}
	// As in Triton: a hit has success and queue, and no inference.
	c := countersOf(t, s)
	i := c.InferenceStats
	got := []uint64{c.InferenceCount, i.Success.Count, i.Queue.Count, i.ComputeInput.Count, i.ComputeInfer.Count, i.ComputeOutput.Count, i.CacheMiss.Count, i.Fail.Count}
	if diff := cmp.Diff([]uint64{6, 10, 10, 5, 5, 5, 5, 0}, got); diff != "" {
		t.Error(diff)
	}
	if i.CacheHit.NS == 0 || i.CacheMiss.NS == 0 {
		t.Errorf("hits and misses take no time: %+v", i)
	}
}

// A model without response_cache, and a server without a cache, keep nothing.
func TestNothingCached(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		size   int64
		config string
	}{{1 << 20, ""}, {0, cachedConfig}, {1 << 20, `response_cache { enable: false }`}} {
		s, _ := openCached(t, &enginetest.Backend{}, tc.size, tc.config)
		for range 2 {
			infer(t, s, numbered(1, 1))
		}
		if c := countersOf(t, s); c.ExecutionCount != 2 || c.InferenceStats.CacheMiss.Count != 0 || c.InferenceStats.CacheHit.Count != 0 {
			t.Errorf("%+v: %+v", tc, c)
		}
	}
}

// An answer that is larger than the cache is computed each time. The log says it once, since all answers of
// a model may be so.
func TestAnswerTooLargeForCache(t *testing.T) {
	t.Parallel()
	var log transcript.Text
	s, _ := openLogged(t, &enginetest.Backend{}, 200, cachedConfig, slog.NewTextHandler(&log, nil))
	for range 2 {
		infer(t, s, numbered(1, 1))
	}
	if c := countersOf(t, s); c.ExecutionCount != 2 || c.InferenceStats.CacheMiss.Count != 2 || c.InferenceStats.CacheHit.Count != 0 {
		t.Errorf("got %+v", c)
	}
	lines := 0
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "Failed to insert key [") {
			lines++
			if !strings.Contains(line, "is greater than total cache size: 200") {
				t.Error(line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("%d lines: %s", lines, log.String())
	}
}

func infer(t testing.TB, s *engine.Server, r *engine.Request) {
	t.Helper()
	response, err := s.Infer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	response.Release()
}

// A failure is no answer. The next request is executed.
func TestFailuresAreNotCached(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s, _ := openCached(t, &enginetest.Backend{Fail: func(int) error {
		if broken.Load() {
			return errors.New("broken")
		}
		return nil
	}}, 1<<20, cachedConfig)
	broken.Store(true)
	if _, err := s.Infer(t.Context(), numbered(1, 1)); err == nil {
		t.Fatal("a broken model answered")
	}
	broken.Store(false)
	infer(t, s, numbered(1, 1))
	if c := countersOf(t, s); c.ExecutionCount != 1 || c.InferenceStats.CacheMiss.Count != 1 || c.InferenceStats.Fail.Count != 1 {
		t.Errorf("%+v", c)
	}
}

// What is cached goes with the model: when it is loaded again, also with the same sessions, and when
// it is unloaded.
func TestReloadForgetsAnswers(t *testing.T) {
	t.Parallel()
	s, root := openCached(t, &enginetest.Backend{}, 1<<20, cachedConfig)
	used := func() int {
		figures, _ := s.CacheStatistics()
		return figures.Entries
	}
	infer(t, s, numbered(1, 1))
	if used() != 1 {
		t.Fatalf("%d entries", used())
	}
	config := filepath.Join(root, "m", "config.pbtxt")
	if err := os.WriteFile(config, []byte(cachedConfig+" dynamic_batching { max_queue_delay_microseconds: 1 }"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
		t.Fatal(err)
	}
	if used() != 0 {
		t.Errorf("%d entries after a reload", used())
	}
	infer(t, s, numbered(1, 1))
	if c := countersOf(t, s); c.InferenceStats.CacheHit.Count != 0 {
		t.Error("a hit after a reload")
	}
	if err := s.Unload("m"); err != nil {
		t.Fatal(err)
	}
	if used() != 0 {
		t.Errorf("%d entries after an unload", used())
	}
}

// A cached answer is charged to its request's account like any other, until it is released.
func TestCachedAnswersAreCharged(t *testing.T) {
	t.Parallel()
	s, _ := openCached(t, &enginetest.Backend{}, 1<<20, cachedConfig)
	infer(t, s, numbered(1, 1)) // 2 outputs of 64 bytes
	b := budget.New(600)
	account := b.Open(nil)
	r := numbered(1, 1)
	r.Memory = account
	var held []*engine.Response
	for range 2 {
		response, err := s.Infer(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, response)
	}
	if b.Used() != 256 {
		t.Errorf("%d bytes are charged for two answers of 128", b.Used())
	}
	if _, err := s.Infer(t.Context(), r); fault.CodeOf(err) != fault.Exhausted {
		t.Errorf("a third answer: %v", err)
	}
	for _, response := range held {
		response.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
}

// Clients, reloads and evictions at the same time: each answer is the right one, and the cache never
// holds more than it may.
func TestCacheUnderReloads(t *testing.T) {
	t.Parallel()
	const size = 20_000 // some 40 answers
	s, root := openCached(t, &enginetest.Backend{}, size, cachedConfig)
	done := make(chan struct{})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				r := numbered(1, (i*(g+1))%100)
				response, err := s.Infer(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(response.Outputs[0].Data, r.Inputs[0].Data) || !bytes.Equal(response.Outputs[1].Data, r.Inputs[1].Data) {
					t.Error("a wrong answer")
				}
				response.Release()
				if figures, _ := s.CacheStatistics(); figures.Used > size {
					t.Errorf("%d bytes are cached", figures.Used)
				}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		config := cachedConfig
		if i%2 == 0 {
			config += ` instance_group { count: 2 kind: KIND_CPU }`
		}
		if err := os.WriteFile(filepath.Join(root, "m", "config.pbtxt"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkHit is a request that the cache answers, beside one that an instance without any time of
// its own answers.
func BenchmarkHit(b *testing.B) {
	for name, size := range map[string]int64{"hit": 1 << 20, "execution": 0} {
		b.Run(name, func(b *testing.B) {
			s, _ := openCached(b, &enginetest.Backend{ServiceTime: func(int, int) time.Duration { return 0 }}, size, cachedConfig)
			r := numbered(1, 1)
			infer(b, s, r)
			b.ReportAllocs()
			for b.Loop() {
				infer(b, s, r)
			}
		})
	}
}
