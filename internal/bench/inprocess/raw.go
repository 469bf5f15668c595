package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"tuner/ort"
)

// session is a session with the tensors of a full batch.
type session struct {
	session *ort.Session
	inputs  []*ort.Tensor
	outputs []string
}

func newSession(r *ort.Runtime, w workload) (*session, error) {
	native, err := r.NewSession(w.path, w.options())
	if err != nil {
		return nil, err
	}
	s := &session{session: native}
	for _, info := range native.Inputs() {
		data, err := ones(info, w.batch)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		tensor, err := r.NewTensor(info.Type, shape(info, w.batch), data)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.inputs = append(s.inputs, tensor)
	}
	for _, info := range native.Outputs() {
		s.outputs = append(s.outputs, info.Name)
	}
	return s, nil
}

func (s *session) run(ctx context.Context) error {
	outputs, err := s.session.Run(ctx, s.inputs, s.outputs)
	for _, t := range outputs {
		t.Close()
	}
	return err
}

func (s *session) close() error {
	for _, t := range s.inputs {
		t.Close()
	}
	return s.session.Close()
}

// raw is ONNX Runtime alone: sessions that run back to back, each on a thread of its own.
type raw struct {
	workload workload
	sessions []*session
}

func newRaw(r *ort.Runtime, w workload) (*raw, error) {
	out := &raw{workload: w}
	for range w.instances {
		s, err := newSession(r, w)
		if err != nil {
			out.close()
			return nil, err
		}
		out.sessions = append(out.sessions, s)
	}
	return out, nil
}

func (r *raw) close() {
	for _, s := range r.sessions {
		s.close()
	}
}

// measure returns rows per second.
func (r *raw) measure(window time.Duration) (float64, error) {
	rates, failed := make([]float64, len(r.sessions)), make([]error, len(r.sessions))
	var all sync.WaitGroup
	for i, s := range r.sessions {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			rates[i], failed[i] = s.rate(window, r.workload.batch)
		})
	}
	all.Wait()
	total := 0.0
	for _, rate := range rates {
		total += rate
	}
	return total, errors.Join(failed...)
}

// rate runs a session for a window; a run that has begun is ended, and counts with its time.
func (s *session) rate(window time.Duration, batch int) (float64, error) {
	begin := time.Now()
	for runs := 1; ; runs++ {
		if err := s.run(context.Background()); err != nil {
			return 0, err
		}
		if took := time.Since(begin); took >= window {
			return float64(runs*batch) / took.Seconds(), nil
		}
	}
}
