package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/measure/arrivals"
)

// The replayed trace: gaps of a gamma distribution with a coefficient of variation of 3, so that
// bursts fill the queue of one server that is busy for 60 % of the time in the mean.
const (
	replayRate     = 60.0 // requests/s
	replayBursts   = 3.0
	replayRequests = 1200 // 20 s
	replayLimit    = 100 * time.Millisecond
)

// replayServer returns the arguments of a server that answers one request at a time, each in 10 ms.
// So only the instants decide how long a request waits.
func replayServer() []string { return []string{"-law", "deterministic:10ms", "-servers", "1"} }

// replayed holds what a client saw of a trace.
type replayed struct {
	P99     float64 // s, from the due instant to the answer
	Goodput float64 // requests/s that were answered within replayLimit of their due instant
	Others  float64 // share of the machine's CPU time that others took, 0..1
}

func (r replayed) foreign() float64 { return r.Others }

// replay compares `tuner perf` with an independent client: Go's own HTTP client, with a goroutine for
// each request. Both send the requests of one trace, each to a newly started server.
func (b *bench) replay(ctx context.Context) error {
	due, path, err := b.trace()
	if err != nil {
		return err
	}
	ours := side[replayed]{b.tuner.Name, func() (replayed, error) {
		return beside(ctx, func(s *server) (replayed, error) { return b.replayByTuner(ctx, s, path) })
	}}
	theirs := side[replayed]{"independent client", func() (replayed, error) {
		return beside(ctx, func(s *server) (replayed, error) { return replayAlone(ctx, s, due) })
	}}
	var pairs []pair[replayed]
	for i := range b.rounds + 1 {
		p, err := inTurn(ctx, b, i, ours, theirs)
		if err != nil {
			return err
		}
		if i > 0 { // a first round does not count
			pairs = append(pairs, p)
		}
		fmt.Fprintf(b.messages, "replay: round %d of %d done\n", i, b.rounds)
	}
	const goal = "0.98–1.02"
	table := b.table()
	table.Theirs = sidebyside.Side{Name: theirs.name, Key: "independent"}
	return table.Report(fmt.Sprintf("### Replay of a trace: %d requests in bursts, %.0f/s in the mean", replayRequests, replayRate), []sidebyside.Line{
		compare("p99", "ms", 1e3, goal, pairs, func(r replayed) float64 { return r.P99 }),
		compare("goodput within "+replayLimit.String(), "requests/s", 1, goal, pairs, func(r replayed) float64 { return r.Goodput }),
	})
}

// trace writes the trace, and returns its instants.
func (b *bench) trace() (due []time.Duration, path string, err error) {
	schedule, err := arrivals.Pattern{Kind: arrivals.GammaKind, CV: replayBursts}.Schedule(replayRate, 1)
	if err != nil {
		return nil, "", err
	}
	for range replayRequests {
		due = append(due, schedule.Next())
	}
	first := due[0]
	for i := range due {
		due[i] -= first
	}
	path = filepath.Join(b.work, "trace.csv")
	file, err := os.Create(path)
	if err != nil {
		return nil, "", err
	}
	return due, path, errors.Join(arrivals.WriteTrace(file, due, nil), file.Close())
}

// beside has a client send to a newly started server, and adds what others took of the machine.
func beside(ctx context.Context, send func(*server) (replayed, error)) (r replayed, err error) {
	s, err := startServer(ctx, replayServer()...)
	if err != nil {
		return replayed{}, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before, err := readMeter(ctx, s)
	if err != nil {
		return replayed{}, err
	}
	if r, err = send(s); err != nil {
		return replayed{}, err
	}
	after, err := readMeter(ctx, s)
	r.Others = after.foreign(before)
	return r, err
}

// replayByTuner has `tuner perf` replay the trace once.
func (b *bench) replayByTuner(ctx context.Context, s *server, trace string) (replayed, error) {
	args := slices.Concat(b.tuner.Command[1:], []string{
		"-m", "law", "-u", s.HTTP, "--input-data", "zero", "--arrivals", fmt.Sprintf("{trace: %q}", trace),
		"--request-count", strconv.Itoa(replayRequests), "--goodput", replayLimit.String(), "--output", "json",
	})
	text, err := exec.CommandContext(ctx, b.tuner.Command[0], args...).Output()
	if err != nil {
		return replayed{}, fmt.Errorf("%q failed: %w", args, err)
	}
	var report struct {
		Levels []struct {
			Goodput struct{ Value float64 }
			Latency map[string]struct{ Value float64 }
			Errors  int
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return replayed{}, err
	}
	if len(report.Levels) != 1 || report.Levels[0].Errors > 0 {
		return replayed{}, fmt.Errorf("want one level without errors: %s", text)
	}
	l := report.Levels[0]
	return replayed{P99: l.Latency["p99"].Value, Goodput: l.Goodput.Value}, nil
}

// replayAlone sends a request at each instant, and does not wait for answers in between.
func replayAlone(ctx context.Context, s *server, due []time.Duration) (replayed, error) {
	const body = `{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[0]}]}`
	client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(due)}}
	defer client.CloseIdleConnections()
	send := func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.HTTP+"/v2/models/law/infer", strings.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("the server answered %s", answer.Status)
		}
		return nil
	}
	latencies, failures := make([]time.Duration, len(due)), make([]error, len(due))
	var all sync.WaitGroup
	begin := time.Now().Add(100 * time.Millisecond)
	for i, d := range due {
		time.Sleep(time.Until(begin.Add(d)))
		all.Go(func() {
			failures[i] = send()
			latencies[i] = time.Since(begin.Add(d))
		})
	}
	all.Wait()
	end := time.Since(begin)
	if err := errors.Join(failures...); err != nil {
		return replayed{}, err
	}
	inTime := 0
	for _, l := range latencies {
		if l <= replayLimit {
			inTime++
		}
	}
	slices.Sort(latencies)
	rank := int(math.Ceil(0.99*float64(len(latencies)))) - 1
	return replayed{P99: latencies[rank].Seconds(), Goodput: float64(inTime) / end.Seconds()}, nil
}
