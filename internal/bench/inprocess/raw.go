package main

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"tuner/ort"
)

// session is a session with the data of a full batch.
type session struct {
	session *ort.Session
	plan    *ort.Plan
	shapes  [][]int64
	data    [][][]byte // of each input, in one part
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
		s.data, s.shapes = append(s.data, [][]byte{data}), append(s.shapes, shape(info, w.batch))
	}
	var outputs []string
	for _, info := range native.Outputs() {
		outputs = append(outputs, info.Name)
	}
	if s.plan, err = native.NewPlan(outputs); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// run is what the engine does for a batch, but for the batch.
func (s *session) run() error {
	for i := range s.data {
		if err := s.plan.Gather(i, s.shapes[i], s.data[i]); err != nil {
			return err
		}
	}
	outputs, err := s.plan.Run()
	for i := range outputs {
		outputs[i].Close()
	}
	return err
}

func (s *session) close() error {
	if s.plan != nil {
		s.plan.Close()
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
		if err := s.run(); err != nil {
			return 0, err
		}
		if took := time.Since(begin); took >= window {
			return float64(runs*batch) / took.Seconds(), nil
		}
	}
}
