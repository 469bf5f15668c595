package main

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/adaptive"
	"tuner/analyze"
	"tuner/capacity/traffic"
	"tuner/engine/api"
	"tuner/lab/peers"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/profile"
	"tuner/runner"
	"tuner/runner/load"
)

// served has the repository and the requests of both sides.
type served struct {
	options
	table      adaptive.Table
	file       string // of the table
	repository string
	requests   runner.Requests
}

// requests makes the campaign's requests again.
func requests(folder string) (runner.Requests, error) {
	campaign, err := analyze.Replay(folder)
	if err != nil {
		return nil, err
	}
	subject, err := profile.OpenSubject(campaign.Profile, profile.Place{})
	if err != nil {
		return nil, err
	}
	if subject.Config, err = modelconfig.Parse("base_config of the journal", []byte(campaign.Header.BaseConfig)); err != nil {
		return nil, err
	}
	return profile.Requests(campaign.Profile, subject)
}

// compressed returns the instants of a day's requests in a shorter time, at the day's rates: a step has
// its rate, and lasts the part of the time that it lasts of the day. requests has those of each step.
func compressed(requests []float64, length time.Duration, seed uint64) (list []time.Duration) {
	random := rand.New(rand.NewPCG(seed, 7))
	step := length.Seconds() / float64(len(requests))
	due := random.ExpFloat64() // of the next request, in requests since the beginning
	before := 0.0
	for i, n := range requests {
		mean := n / traffic.Step.Seconds() * step
		for ; mean > 0 && due < before+mean; due += random.ExpFloat64() {
			list = append(list, time.Duration((float64(i)+(due-before)/mean)*step*float64(time.Second)))
		}
		before += mean
	}
	return list
}

// answer is a request that was answered.
type answer struct{ due, latency time.Duration }

// side has what a replay of the day showed.
type side struct {
	answers []answer // by their instants
	lost    int      // requests without an answer
	reason  string   // of the first of them
	changes int      // of the configuration
}

// warmUp is the time before the day, at its first rate: the server has executed batches then.
const warmUp = 3 * time.Second

// patience is the time without any answer after which a server counts as hung.
const patience = 30 * time.Second

// replay serves a day on a fresh server.
func (s served) replay(ctx context.Context, at []time.Duration, adapts bool) (x side, err error) {
	var flags []string
	if adapts {
		flags = append(flags, "--adaptive="+s.file)
	}
	server, err := peers.StartServer(ctx, []string{s.tuner, "serve", "--ort-library=" + s.library}, s.repository, flags...)
	if err != nil {
		return side{}, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c, err := s.connections(server)
	if err != nil {
		return side{}, err
	}
	before := warming(at)
	result, err := load.Run(ctx, load.Options{
		Part: load.Part{
			Load: measure.Load{RequestRate: float64(len(at)) / s.length.Seconds(), BatchSize: 1}, Arrivals: arrivals.Joined(before, at), WarmUpRequests: len(before),
			Patience: patience, Large: c.IsLarge(), MaxInFlight: len(at),
			Dial: func(ctx context.Context, _ int) (load.Conn, error) { return c.Dial(ctx, 0) },
			Sink: func(r load.Record) { x.add(r) },
		},
		Windows: load.Windows{Total: len(at), Edge: func(context.Context, int) error { return nil }},
	})
	if err != nil {
		return side{}, err
	}
	x.begin(at[0])
	if x.lost = len(at) - len(x.answers); x.lost > 0 {
		x.reason = result.Windows[0].FirstError
	}
	x.changes = max(0, strings.Count(server.Output(), "serves with another configuration")-1) // the first is the static one
	return x, nil
}

// add adds an answer. Latencies count from the scheduled instants.
func (x *side) add(r load.Record) {
	if n := len(r.Responses); n > 0 && !r.Failed {
		x.answers = append(x.answers, answer{r.Scheduled, r.Responses[n-1] - r.Scheduled})
	}
}

// begin moves the instants of the answers, so that the first one is due at an instant of the day.
func (x *side) begin(first time.Duration) {
	if len(x.answers) == 0 {
		return
	}
	slices.SortFunc(x.answers, func(a, b answer) int { return cmp.Compare(a.due, b.due) })
	offset := first - x.answers[0].due
	for i := range x.answers {
		x.answers[i].due += offset
	}
}

func (s served) connections(server *peers.Server) (runner.Connections, error) {
	repository, err := modelrepo.OpenModel(filepath.Join(s.repository, s.table.Model))
	if err != nil {
		return nil, err
	}
	config, err := repository.Config()
	if err != nil {
		return nil, err
	}
	return runner.Over(runner.OverGRPC)(api.Announcement{GRPC: server.GRPC}, s.requests, modelconfig.AnswerSize(config, 1))
}

// warming returns the instants of a warm-up at the mean rate of the day's first twentieth.
func warming(day []time.Duration) (list []time.Duration) {
	const part = 20
	n := max(len(day)/part, 1)
	rate := float64(n) / max(day[n-1].Seconds(), 1e-3)
	for i := range max(1, int(rate*warmUp.Seconds())) {
		list = append(list, time.Duration(float64(i)/rate*float64(time.Second)))
	}
	return list
}

// sorted returns the latencies of the answers from an instant of the day to another, ascending.
func (x side) sorted(from, to time.Duration) (list []time.Duration) {
	for _, a := range x.answers {
		if a.due >= from && a.due < to {
			list = append(list, a.latency)
		}
	}
	slices.Sort(list)
	return list
}
