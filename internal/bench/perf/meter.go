package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"tuner/engine/api"
	"tuner/hostinfo"
)

// meter is a reading of the clocks that cost is made of.
type meter struct {
	at       time.Time
	machine  hostinfo.CPUSnapshot
	client   time.Duration // CPU time of the programs that were run and have ended
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
	if m.client, err = cpuTime(syscall.RUSAGE_CHILDREN); err != nil {
		return meter{}, err
	}
	if m.own, err = cpuTime(syscall.RUSAGE_SELF); err != nil {
		return meter{}, err
	}
	if m.server, err = s.cpu(); err != nil {
		return meter{}, err
	}
	m.machine, err = hostinfo.CPUTimes()
	m.at = time.Now()
	return m, err
}

// cpuTime is the CPU time of this process, or of its children that have ended.
func cpuTime(who int) (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// perRequest is the client's CPU time per request in s, from its start to its end, since an earlier reading.
func (m meter) perRequest(earlier meter) float64 {
	return (m.client - earlier.client).Seconds() / float64(m.requests-earlier.requests)
}

// foreign is the share of the machine's CPU time, 0..1, that others took since an earlier reading.
func (m meter) foreign(earlier meter) float64 {
	machine := m.machine.Since(earlier.machine)
	ours := m.server - earlier.server + m.own - earlier.own + m.client - earlier.client
	all := m.at.Sub(earlier.at).Seconds() * float64(runtime.NumCPU())
	return max(0, (machine.Busy+machine.Steal-ours).Seconds()/all)
}

// cores is the CPU time of this process per time, since an earlier reading.
func (m meter) cores(earlier meter) float64 {
	return (m.own - earlier.own).Seconds() / m.at.Sub(earlier.at).Seconds()
}
