package main

import (
	"context"
	"fmt"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/lab/bench/sidebyside"
)

// meter is a reading of the clocks behind cost.
type meter struct {
	at       time.Time
	machine  hostinfo.CPUSnapshot
	client   time.Duration // CPU time of the finished client programs
	own      time.Duration // CPU time of this process
	server   time.Duration // CPU time
	requests uint64        // answered by the server without error
}

// readMeter reads the clocks.
func readMeter(ctx context.Context, s *server) (m meter, err error) {
	control := api.NewHTTP(s.HTTP)
	statistics, err := control.Statistics(ctx, "law")
	if err != nil {
		return meter{}, fmt.Errorf("cannot read the statistics: %w", err)
	}
	if err := control.Close(); err != nil {
		return meter{}, fmt.Errorf("cannot end the connection for statistics: %w", err)
	}
	for _, model := range statistics.ModelStats {
		m.requests += model.InferenceStats.Success.Count
	}
	if m.client, err = hostinfo.ChildrenCPU(); err != nil {
		return meter{}, err
	}
	if m.own, err = hostinfo.OwnCPU(); err != nil {
		return meter{}, err
	}
	if m.server, err = s.cpu(); err != nil {
		return meter{}, err
	}
	m.machine, err = hostinfo.CPUTimes()
	m.at = time.Now()
	return m, err
}

// perRequest returns the client's CPU time per request in s, from its start to its end, since an
// earlier reading.
func (m meter) perRequest(earlier meter) float64 {
	return (m.client - earlier.client).Seconds() / float64(m.requests-earlier.requests)
}

// foreign returns the share of the machine's CPU time, 0..1, that others took since an earlier
// reading.
func (m meter) foreign(earlier meter) float64 {
	ours := m.server - earlier.server + m.own - earlier.own + m.client - earlier.client
	return sidebyside.Foreign(m.machine.Since(earlier.machine), ours, m.at.Sub(earlier.at))
}

// cores returns the CPU time of this process per time, since an earlier reading.
func (m meter) cores(earlier meter) float64 {
	return (m.own - earlier.own).Seconds() / m.at.Sub(earlier.at).Seconds()
}
