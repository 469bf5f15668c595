package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// ensembles: models of models.
func ensembles() []attack {
	return []attack{
		{"C4", "ensembles in a circle, alone and in a longer one", "refused with the circle, others are served", circles},
		{"C4", "30 ensembles that each call the next one twice", "a request that would make more than 4,096 is refused, memory bounded", doubled},
		{"C4", "an ensemble of 20,000 steps", "refused within 10 s, others are served, SIGTERM ends the server with 0", func(ctx context.Context, s *scene) (string, error) {
			return refusedLoad(ctx, s, func(s *scene) error {
				return s.compose("hostile", chain(slices.Repeat([]string{"simple"}, 20_000)...))
			})
		}},
	}
}

// wiring is a step of an ensemble with the tensors of a simple model. "": not mapped.
type wiring struct {
	model   string
	in, out [2]string
}

// wired writes the configuration of an ensemble with the inputs and outputs of simple.
func wired(steps ...wiring) []byte {
	var b strings.Builder
	b.WriteString("platform: \"ensemble\"\nmax_batch_size: 4\n")
	for i := range 2 {
		fmt.Fprintf(&b, "input [ { name: \"INPUT%d\" data_type: TYPE_INT32 dims: [ 16 ] } ]\noutput [ { name: \"OUTPUT%d\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n", i, i)
	}
	b.WriteString("ensemble_scheduling {\n")
	for _, w := range steps {
		fmt.Fprintf(&b, "step [ { model_name: %q model_version: -1", w.model)
		for k := range 2 {
			fmt.Fprintf(&b, " input_map { key: \"INPUT%d\" value: %q }", k, w.in[k])
			if w.out[k] != "" {
				fmt.Fprintf(&b, " output_map { key: \"OUTPUT%d\" value: %q }", k, w.out[k])
			}
		}
		b.WriteString(" } ]\n")
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// inputsOfSimple names the inputs of an ensemble, and of simple.
func inputsOfSimple() [2]string { return [2]string{"INPUT0", "INPUT1"} }

// chain wires models one behind the other.
func chain(models ...string) []byte {
	var steps []wiring
	in := inputsOfSimple()
	for i, model := range models {
		out := [2]string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
		if i == len(models)-1 {
			out = [2]string{"OUTPUT0", "OUTPUT1"}
		}
		steps = append(steps, wiring{model, in, out})
		in = out
	}
	return wired(steps...)
}

// twice wires a model twice, so that both steps run at the same time. The answer is the model's.
func twice(model string) []byte {
	return wired(wiring{model, inputsOfSimple(), [2]string{"OUTPUT0", ""}}, wiring{model, inputsOfSimple(), [2]string{"", "OUTPUT1"}})
}

// compose adds an ensemble to the repository.
func (s *scene) compose(name string, config []byte) error {
	return errors.Join(s.write(config, "repository", name, "config.pbtxt"), os.MkdirAll(s.path("repository", name, "1"), 0o755))
}

func circles(ctx context.Context, s *scene) (string, error) {
	const long = 1000
	err := errors.Join(s.add("simple", "simple", ""), s.compose("self", chain("self")), s.compose("a", chain("b")), s.compose("b", chain("simple", "a")), s.compose("on", chain("simple", "a")))
	for i := range long {
		err = errors.Join(err, s.compose(fmt.Sprint("long", i), chain("simple", fmt.Sprint("long", (i+1)%long))))
	}
	if err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	begin := time.Now()
	for _, name := range []string{"self", "a", "b", "on", "long0", "long500"} {
		if err := v.LoadModel(ctx, name, ""); err == nil || !strings.Contains(err.Error(), "circular dependency between ensembles") {
			return "", fmt.Errorf("the load of %s ended with %w", name, err)
		}
	}
	// a good one that a reload closes to a circle
	if err := errors.Join(s.compose("good", chain("simple")), v.LoadModel(ctx, "good", ""), s.compose("good", chain("simple", "good"))); err != nil {
		return "", err
	}
	if err := v.LoadModel(ctx, "good", ""); err == nil {
		return "", errors.New("an ensemble was closed to a circle by a reload")
	}
	return fmt.Sprintf("7 refused in %.1f s", time.Since(begin).Seconds()), v.serves(ctx)
}

func doubled(ctx context.Context, s *scene) (string, error) {
	err := errors.Join(s.add("simple", "simple", ""), s.add("leaf", "simple", "max_batch_size: 8\ndynamic_batching { }\n"))
	below := "leaf"
	for i := range 30 {
		name := fmt.Sprint("level", i+1)
		err = errors.Join(err, s.compose(name, twice(below)))
		below = name
	}
	if err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple", "level11"})
	if err != nil {
		return "", err
	}
	if err := v.LoadModel(ctx, "level30", ""); err == nil || !strings.Contains(err.Error(), "would make more than 4096 requests") {
		return "", fmt.Errorf("the load of 30 levels ended with %w", err)
	}
	var over atomic.Bool
	time.AfterFunc(5*time.Second, func() { over.Store(true) })
	var group errgroup.Group
	var answered atomic.Int64
	for range 16 {
		group.Go(func() error {
			for !over.Load() {
				body, want := sum()
				status, text, err := v.send(ctx, "POST", "/v2/models/level11/infer", []byte(body))
				if err != nil || status != 200 && status != 503 || status == 200 && !strings.Contains(text, want) {
					return errors.Join(fmt.Errorf("a request of 4,095 got %d %s", status, cell(text)), err)
				}
				answered.Add(1)
			}
			return nil
		})
	}
	n, longest, err := v.steady(ctx, &over)
	if err := errors.Join(err, group.Wait(), v.serves(ctx)); err != nil {
		return "", err
	}
	seen, err := v.bounded(1 << 30)
	return fmt.Sprintf("%d requests of 4,095, %d answers of others, the longest after %v, %s", answered.Load(), n, longest.Round(time.Millisecond), seen), err
}
