package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tuner/engine/api"
)

// Operators load, unload and read the state.

const (
	reloadEvery = time.Second
	minilmEvery = 10 // reloads of other models for each of MiniLM
	scrapeEvery = 500 * time.Millisecond
	operation   = 2 * time.Minute // after which a load or scrape has hung
)

// configuration returns one of the configurations of a model, all of which take batches of maxRows.
func configuration(model string, n int) string {
	sizes, delays := []int{4, 8, 16}, []int{0, 100, 2000}
	return fmt.Sprintf(`{"name":%q,"backend":"onnxruntime","max_batch_size":%d,"response_cache":{"enable":%t},`+
		`"instance_group":[{"count":%d,"kind":"KIND_CPU"}],"dynamic_batching":{"max_queue_delay_microseconds":%d},`+
		`"parameters":{"intra_op_thread_count":{"string_value":"1"}}}`, model, sizes[n%3], model == cached, 1+n/3%2, delays[n/6%3])
}

// reload loads models again with other configurations, which must not affect requests.
func (s *site) reload(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		model := []string{simple, text, cached, wide}[n%4]
		if n%minilmEvery == 0 {
			model = minilm
		}
		var c api.Client = s.http
		if n%5 == 0 {
			c = s.grpc
		}
		s.operate(ctx, "reload of "+model, func(ctx context.Context) error { return c.LoadModel(ctx, model, configuration(model, n)) })
		s.tally.add(func(c *counts) { c.reloads++ })
		pause(ctx, reloadEvery)
	}
}

// comeAndGo unloads the volatile model and loads it again.
func (s *site) comeAndGo(ctx context.Context) {
	r := rand.New(rand.NewPCG(1, 1))
	for ctx.Err() == nil {
		pause(ctx, time.Duration(r.Int64N(int64(2*time.Second))))
		s.phase.next()
		s.operate(ctx, "unload", func(ctx context.Context) error { return s.http.UnloadModel(ctx, volatile) })
		pause(ctx, time.Duration(r.Int64N(int64(time.Second))))
		s.operate(ctx, "load", func(ctx context.Context) error {
			return s.grpc.LoadModel(ctx, volatile, configuration(volatile, r.IntN(18)))
		})
		s.phase.next()
		s.tally.add(func(c *counts) { c.reloads += 2 })
	}
}

// scrape reads statistics, index and metrics.
func (s *site) scrape(ctx context.Context) {
	for ctx.Err() == nil {
		s.operate(ctx, "statistics over HTTP", func(ctx context.Context) error { return second(s.http.Statistics(ctx, "")) })
		s.operate(ctx, "statistics over gRPC", func(ctx context.Context) error { return second(s.grpc.Statistics(ctx, simple)) })
		s.operate(ctx, "index", func(ctx context.Context) error { return second(s.http.Index(ctx)) })
		s.operate(ctx, "metrics", func(ctx context.Context) error { return second(api.Metrics(ctx, s.at.Metrics)) })
		pause(ctx, scrapeEvery)
	}
}

func second[T any](_ T, err error) error { return err }

// operate does something that must succeed. It finishes even after the end of the time.
func (s *site) operate(ctx context.Context, what string, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operation)
	defer cancel()
	if err := do(ctx); err != nil {
		s.tally.fail("%s: %v", what, err)
	}
}
