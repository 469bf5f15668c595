package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/onnxruntime"
	"tuner/hostinfo"
	"tuner/modelconfig"
	"tuner/ort"
)

// modelName is what the engine serves.
const modelName = "model"

// served is the engine with closed-loop clients in the same process.
type served struct {
	workload workload
	server   *engine.Server
	request  engine.Request

	mu     sync.Mutex
	failed error
}

// newServed serves the workload's model from a repository in dir.
func newServed(ctx context.Context, r *ort.Runtime, dir string, w workload) (*served, error) {
	repository, err := writeRepository(dir, w)
	if err != nil {
		return nil, err
	}
	server, err := engine.Open(ctx, engine.Options{
		Repositories: []string{repository}, Backend: onnxruntime.New(r), ExitOnError: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	s := &served{workload: w, server: server, request: engine.Request{Model: modelName}}
	if err := s.fill(r); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// writeRepository makes a repository of the one model, by a link where that works.
func writeRepository(dir string, w workload) (string, error) {
	root, err := os.MkdirTemp(dir, "repository")
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, modelName, "1", "model.onnx")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.Link(w.path, path); err != nil {
		data, err := os.ReadFile(w.path)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
	}
	config := fmt.Sprintf(`backend: "onnxruntime" max_batch_size: %d dynamic_batching { }
		instance_group { count: %d kind: KIND_CPU }
		parameters { key: "intra_op_thread_count" value { string_value: "%d" } }`, w.batch, w.instances, w.threads)
	return root, os.WriteFile(filepath.Join(root, modelName, "config.pbtxt"), []byte(config), 0o644)
}

// fill makes the request of all clients, one row.
func (s *served) fill(r *ort.Runtime) error {
	model, err := r.NewSession(s.workload.path, s.workload.options())
	if err != nil {
		return err
	}
	defer model.Close()
	for _, info := range model.Inputs() {
		dataType, err := modelconfig.DataTypeOf(info.Type.String())
		if err != nil {
			return err
		}
		data, err := ones(info, 1)
		if err != nil {
			return err
		}
		s.request.Inputs = append(s.request.Inputs, engine.Tensor{Name: info.Name, DataType: dataType, Shape: shape(info, 1), Data: data})
	}
	return nil
}

func (s *served) close() { s.server.Close() }

// measure runs the clients and takes the figures of a window in the midst of their run.
func (s *served) measure(ctx context.Context, window time.Duration) (engineFigures, error) {
	ctx, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for range s.workload.clients() {
		clients.Go(func() { s.client(ctx) })
	}
	defer clients.Wait()
	defer stop()
	time.Sleep(window / 10) // until all batches are full
	before, err := s.boundary()
	if err != nil {
		return engineFigures{}, err
	}
	time.Sleep(window)
	after, err := s.boundary()
	return after.since(before, s.workload.instances), errors.Join(err, s.failure())
}

// boundary waits for the end of an execution, so that a window holds whole ones, and returns what has been counted then.
func (s *served) boundary() (state, error) {
	first := uint64(0)
	for i := 0; ; i++ {
		all, err := s.server.Statistics(modelName, 0)
		if err := errors.Join(err, s.failure()); err != nil {
			return state{}, err
		}
		switch n := all.ModelStats[0].ExecutionCount; {
		case i == 0:
			first = n
		case n > first:
			return s.state()
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// client sends one request after the other until ctx ends.
func (s *served) client(ctx context.Context) {
	request := s.request
	for ctx.Err() == nil {
		response, err := s.server.Infer(context.Background(), &request)
		if err != nil {
			s.mu.Lock()
			s.failed = errors.Join(s.failed, err)
			s.mu.Unlock()
			return
		}
		response.Release()
	}
}

func (s *served) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// state is what has been counted so far.
type state struct {
	at         time.Time
	inferences uint64
	executions uint64
	inRun      time.Duration
	cpu        time.Duration // of this process
	mallocs    uint64        // of this process
}

func (s *served) state() (state, error) {
	all, err := s.server.Statistics(modelName, 0)
	if err != nil {
		return state{}, err
	}
	cpu, err := hostinfo.OwnCPU()
	if err != nil {
		return state{}, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m := all.ModelStats[0]
	return state{time.Now(), m.InferenceCount, m.ExecutionCount, inRun(m.BatchStats), cpu, memory.Mallocs}, nil
}

// inRun is the time that executions spent inside ONNX Runtime.
func inRun(batches []api.BatchStatistics) time.Duration {
	total := uint64(0)
	for _, b := range batches {
		total += b.ComputeInfer.NS
	}
	return time.Duration(total)
}

// since is what happened between two states, of instances that were never idle.
func (s state) since(before state, instances int) engineFigures {
	wall := s.at.Sub(before.at)
	rows := float64(s.inferences - before.inferences)
	return engineFigures{
		throughput: rows / wall.Seconds(),
		batch:      rows / float64(s.executions-before.executions),
		inRun:      float64(s.inRun-before.inRun) / float64(wall) / float64(instances),
		cpu:        time.Duration(float64(s.cpu-before.cpu) / rows),
		mallocs:    float64(s.mallocs-before.mallocs) / rows,
	}
}
