package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"tuner/engine/api"
)

// The models of the engine in poll mode, all of which are simple. Clients of the guest must tolerate its
// absence.
const (
	steady = "steady" // its files do not change
	turned = "turned" // its configuration and its versions change
	guest  = "guest"  // its folder comes and goes
)

// polled is the engine in poll mode, and its repository.
type polled struct {
	*site
	repository string
	model      []byte
}

// writePolled makes the repository of the engine in poll mode.
func writePolled(repository, models string) error {
	data, err := os.ReadFile(filepath.Join(models, "simple.onnx"))
	for _, name := range []string{steady, turned, guest} {
		if err == nil {
			err = writeModel(repository, name, data, turnedConfig(0))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make a model repository: %w", err)
	}
	return nil
}

// turnedConfig returns one of the configurations of a model, all of which take batches of maxRows.
func turnedConfig(n int) string {
	return fmt.Sprintf("max_batch_size: %d\ninstance_group [ { count: %d kind: KIND_CPU } ]\ndynamic_batching { max_queue_delay_microseconds: %d }\n",
		[]int{4, 8, 16}[n%3], 1+n/3%2, []int{0, 500}[n/6%2])
}

func newPolled(at api.Announcement, t *tally, pause time.Duration, repository string) (*polled, error) {
	grpc, err := api.NewGRPC(at.GRPC)
	if err != nil {
		return nil, err
	}
	p := &polled{site: &site{at: at, http: api.NewHTTP(at.HTTP), grpc: grpc, tally: t, pause: pause}, repository: repository}
	p.model, err = os.ReadFile(filepath.Join(repository, steady, "1", "model.onnx"))
	return p, err
}

// everyone lists all users of the engine in poll mode.
func (p *polled) everyone() []func(context.Context) {
	return []func(context.Context){
		p.turn, p.invite, p.scrapePolled,
		p.client(1, steady, p.binary), p.client(2, steady, p.stream),
		p.client(1, turned, p.json), p.client(2, turned, p.unary), p.client(3, turned, p.stream),
		p.client(1, guest, p.binary), p.client(2, guest, p.unary),
	}
}

// awaits waits until a model of a version is ready, or is no longer.
func (p *polled) awaits(ctx context.Context, path string, ready bool) {
	p.operate(ctx, fmt.Sprintf("%s ready: %t", path, ready), func(ctx context.Context) error {
		for {
			is, err := p.http.ModelReady(ctx, path)
			if err != nil {
				return err
			}
			if is == ready {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// turn changes the configuration of a model, and copies a second version of it in small parts. Requests must not
// notice.
func (p *polled) turn(ctx context.Context) {
	folder := filepath.Join(p.repository, turned)
	for n := 1; ctx.Err() == nil; n++ {
		p.operate(ctx, "change of files", func(context.Context) error {
			if n%3 > 0 {
				return os.WriteFile(filepath.Join(folder, "config.pbtxt"), []byte(turnedConfig(n)), 0o644)
			}
			second := filepath.Join(folder, "2")
			if n%2 == 0 {
				return os.RemoveAll(second)
			}
			return p.copySlowly(second)
		})
		p.tally.add(func(c *counts) { c.reloads++ })
		pause(ctx, reloadEvery)
	}
}

// copySlowly writes a version in parts over more than two polls.
func (p *polled) copySlowly(version string) error {
	if err := os.MkdirAll(version, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(version, "model.onnx"))
	if err != nil {
		return err
	}
	const parts = 8
	for i := range parts {
		if _, err := f.Write(p.model[i*len(p.model)/parts : (i+1)*len(p.model)/parts]); err != nil {
			return errors.Join(err, f.Close())
		}
		time.Sleep(400 * time.Millisecond) // to the end: half a file would not be a model
	}
	return f.Close()
}

// invite removes the guest's folder, and makes it again.
func (p *polled) invite(ctx context.Context) {
	r := rand.New(rand.NewPCG(2, 2))
	for ctx.Err() == nil {
		pause(ctx, time.Duration(r.Int64N(int64(5*time.Second))))
		p.phase.next()
		p.operate(ctx, "removal of a folder", func(context.Context) error { return os.RemoveAll(filepath.Join(p.repository, guest)) })
		p.awaits(ctx, guest, false)
		p.operate(ctx, "copy of a folder", func(context.Context) error {
			return writeModel(p.repository, guest, p.model, turnedConfig(r.IntN(12)))
		})
		p.awaits(ctx, guest, true)
		p.phase.next()
		p.tally.add(func(c *counts) { c.reloads += 2 })
	}
}

// scrapePolled reads statistics, index and metrics.
func (p *polled) scrapePolled(ctx context.Context) {
	for ctx.Err() == nil {
		p.operate(ctx, "statistics in poll mode", func(ctx context.Context) error { return second(p.grpc.Statistics(ctx, "")) })
		p.operate(ctx, "index in poll mode", func(ctx context.Context) error { return second(p.http.Index(ctx)) })
		p.operate(ctx, "metrics in poll mode", func(ctx context.Context) error { return second(api.Metrics(ctx, p.at.Metrics)) })
		pause(ctx, scrapeEvery)
	}
}
