package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/lab/bench/sidebyside"
)

// endurance is a load with one extreme parameter.
type endurance struct {
	name   string
	args   []string
	atMost time.Duration
}

func (b *bench) endurances() []endurance {
	return []endurance{
		{"2,000 connections for a minute", []string{"--concurrency-range", "2000", "-p", strconv.FormatInt(b.orWindow(20*time.Second).Milliseconds(), 10),
			"-s", "100000", "-r", strconv.Itoa(sidebyside.Windows)}, 5 * time.Minute},
		{"20,000,000 requests", []string{"--concurrency-range", "16", "--request-count", "20000000"}, 30 * time.Minute},
	}
}

// scale records the memory of `tuner perf` under large loads.
func (b *bench) scale(ctx context.Context) error {
	var text strings.Builder
	text.WriteString("\n### Scale: memory of tuner perf, in MiB\n\n| | requests | of them failed | time, s | after 10 % of the time | half | the end | most |\n|---|---|---|---|---|---|---|---|\n")
	var failed error
	for _, e := range b.endurances() {
		line, err := b.endure(ctx, e)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", e.name, err))
			continue
		}
		text.WriteString(line)
		fmt.Fprintf(b.messages, "%s done\n", e.name)
	}
	return errors.Join(failed, sidebyside.Print(b.out, text.String()))
}

// endure runs one load, and returns its line of the table.
func (b *bench) endure(ctx context.Context, e endurance) (line string, err error) {
	s, err := startServer(ctx, "-records", "1")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	begin := time.Now()
	memory, err := b.watch(ctx, s, e)
	if err != nil {
		return "", err
	}
	elapsed := time.Since(begin)
	control := api.NewHTTP(s.HTTP)
	statistics, err := control.Statistics(ctx, "law")
	if err != nil {
		return "", errors.Join(err, control.Close())
	}
	good, bad := statistics.ModelStats[0].InferenceStats.Success.Count, statistics.ModelStats[0].InferenceStats.Fail.Count
	at := func(share float64) string {
		return mebibytes(memory.readings[int(share*float64(len(memory.readings)-1))])
	}
	return fmt.Sprintf("| %s | %d | %d | %.0f | %s | %s | %s | %s |\n", e.name, good+bad, bad, elapsed.Seconds(), at(0.1), at(0.5), at(1), mebibytes(memory.peak)),
		control.Close()
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }

// memory is a process's resident set over its life, in bytes.
type memory struct {
	readings []int64 // one per second
	peak     int64
}

// watch runs `tuner perf` and reads its memory each second.
func (b *bench) watch(ctx context.Context, s *server, e endurance) (memory, error) {
	ctx, cancel := context.WithTimeout(ctx, e.atMost)
	defer cancel()
	args := append([]string{"perf", "-m", "law", "-u", s.HTTP, "--input-data", "zero"}, e.args...)
	cmd := exec.CommandContext(ctx, b.tunerPath, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return memory{}, fmt.Errorf("cannot start %s: %w", b.tunerPath, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	var m memory
	for {
		select {
		case err := <-ended:
			if err == nil && len(m.readings) == 0 {
				err = errors.New("it ended within a second")
			}
			if err != nil {
				return memory{}, fmt.Errorf("tuner %q failed: %w; its output:\n%s", args, err, output.String())
			}
			return m, nil
		case <-every.C:
			if u, err := hostinfo.Process(cmd.Process.Pid); err == nil && u.RSS > 0 { // otherwise it has just ended
				m.readings, m.peak = append(m.readings, u.RSS), max(m.peak, u.PeakRSS)
			}
		}
	}
}
