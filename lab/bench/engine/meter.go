package main

import (
	"context"
	"fmt"
	"time"

	"tuner/internal/hostinfo"
	"tuner/lab/bench/sidebyside"
)

// usage is the machine's usage during a measurement.
type usage struct {
	CPU     float64 // s of the loaded server per 1,000 requests; 0 without any
	Batch   float64 // mean size of the executed batches; 0 without any
	Idle    float64 // cores that the idle server used
	Foreign float64 // share of the machine's CPU time that other processes, or other virtual machines, used, 0..1
	Memory  float64 // resident bytes of the loaded server at the end; 0: not read
}

// meter is a reading of all clocks behind usage.
type meter struct {
	at       time.Time
	machine  hostinfo.CPUSnapshot
	own      time.Duration // CPU time of this process and of its children that have ended
	server   time.Duration // CPU time
	idle     time.Duration // CPU time of the idle server
	requests uint64        // answered by the server without error
	inferred uint64        // rows of all batches
	executed uint64        // batches
}

// readMeter reads the clocks. idle is nil without another server.
func readMeter(ctx context.Context, s, idle *side) (m meter, err error) {
	statistics, err := s.control.Statistics(ctx, "")
	if err != nil {
		return meter{}, fmt.Errorf("cannot read the statistics: %w", err)
	}
	for _, model := range statistics.ModelStats {
		m.requests += model.InferenceStats.Success.Count
		m.inferred += model.InferenceCount
		m.executed += model.ExecutionCount
	}
	if m.server, err = cpuTime(s); err != nil {
		return meter{}, err
	}
	if idle != nil {
		if m.idle, err = cpuTime(idle); err != nil {
			return meter{}, err
		}
	}
	if m.machine, err = hostinfo.CPUTimes(); err != nil {
		return meter{}, err
	}
	m.own, err = ownTime()
	m.at = time.Now()
	return m, err
}

func cpuTime(s *side) (time.Duration, error) {
	u, err := hostinfo.Process(s.server.PID)
	return u.CPU, err
}

// ownTime returns the CPU time of this process and of the clients that it has run.
func ownTime() (time.Duration, error) {
	own, err := hostinfo.OwnCPU()
	if err != nil {
		return 0, err
	}
	clients, err := hostinfo.ChildrenCPU()
	return own + clients, err
}

// since returns the usage between two readings.
func (m meter) since(earlier meter) usage {
	wall := m.at.Sub(earlier.at)
	server, idle := m.server-earlier.server, m.idle-earlier.idle
	ours := server + idle + m.own - earlier.own
	u := usage{Idle: idle.Seconds() / wall.Seconds(), Foreign: sidebyside.Foreign(m.machine.Since(earlier.machine), ours, wall)}
	if n := m.requests - earlier.requests; n > 0 {
		u.CPU = server.Seconds() / float64(n) * 1000
	}
	if n := m.executed - earlier.executed; n > 0 {
		u.Batch = float64(m.inferred-earlier.inferred) / float64(n)
	}
	return u
}
