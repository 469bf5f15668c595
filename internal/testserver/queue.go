package testserver

import (
	"slices"
	"time"

	"tuner/engine/api"
)

// visit has the times of one inference in the server, since the epoch.
type visit struct {
	arrival, begin, end time.Duration
	isLate              bool // the server dies before the answer
}

// counts are the counters of the statistics.
type counts struct {
	begun, good, failed  int
	success, queue, work time.Duration
	last                 time.Duration
}

// now returns the time since the epoch.
func (s *Server) now() time.Duration { return time.Since(s.epoch) }

// arrive adds an inference to the queue. fails means that it gets an error as its answer.
func (s *Server) arrive() (v visit, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.begun++
	fails = s.options.Faults.FailEvery > 0 && s.counts.begun%s.options.Faults.FailEvery == 0
	now := s.now()
	dies := s.options.Faults.DieAfter
	v = visit{now, now, now, dies > 0 && s.counts.begun > dies}
	var work time.Duration
	if s.options.Law != nil {
		work = s.options.Law(s.random)
	}
	if len(s.free) == 0 {
		v.end = s.options.Stall.end(v.begin, work)
		return v, fails
	}
	next := slices.Index(s.free, slices.Min(s.free))
	v.begin = max(now, s.free[next])
	v.end = s.options.Stall.end(v.begin, work)
	s.free[next] = v.end
	return v, fails
}

// await waits for the end of an inference's service. It returns false if the server has ended.
func (s *Server) await(v visit) bool {
	if s.options.Faults.Silent || v.isLate {
		<-s.ended
		return false
	}
	if rest := v.end - s.now() - coarse; rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ended:
			return false
		}
	}
	s.waitExactly(v.end)
	return true
}

// leave counts an inference before its answer is sent, so that the record has it when the client
// has the answer. It reports whether the server then dies.
func (s *Server) leave(v visit, failed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.counts
	if failed {
		c.failed++
	} else {
		written := s.now()
		s.entries[c.good%len(s.entries)] = Entry{s.wall(v.arrival), s.wall(v.begin), s.wall(v.end), s.wall(written)}
		c.good++
		c.success += v.end - v.arrival
		c.queue += v.begin - v.arrival
		c.work += v.end - v.begin
		c.last = written
	}
	return s.options.Faults.DieAfter > 0 && c.good+c.failed >= s.options.Faults.DieAfter
}

// wall converts a time since the epoch to nanoseconds since 1970.
func (s *Server) wall(d time.Duration) int64 { return s.epoch.UnixNano() + int64(d) }

// Record returns the latest successful requests, in the order of their answers.
func (s *Server) Record() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts.good <= len(s.entries) {
		return slices.Clone(s.entries[:s.counts.good])
	}
	oldest := s.counts.good % len(s.entries)
	return append(slices.Clone(s.entries[oldest:]), s.entries[:oldest]...)
}

// statistics returns the counters in the protocol's form.
func (s *Server) statistics() api.Statistics {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	of := func(count int, d time.Duration) api.Duration {
		return api.Duration{Count: uint64(count), NS: uint64(d)}
	}
	m := api.ModelStatistics{
		Name: model, Version: version, InferenceCount: uint64(c.good), ExecutionCount: uint64(c.good),
		InferenceStats: api.InferenceStatistics{
			Success: of(c.good, c.success), Fail: of(c.failed, 0), Queue: of(c.good, c.queue),
			ComputeInput: of(c.good, 0), ComputeInfer: of(c.good, c.work), ComputeOutput: of(c.good, 0),
		},
		ResponseStats: map[string]api.ResponseStatistics{}, BatchStats: []api.BatchStatistics{}, MemoryUsage: []api.MemoryUsage{},
	}
	if c.good > 0 {
		m.LastInference = uint64(s.wall(c.last) / int64(time.Millisecond))
	}
	return api.Statistics{ModelStats: []api.ModelStatistics{m}}
}
