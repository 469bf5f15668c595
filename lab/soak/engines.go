package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tuner/internal/memgroup"
	"tuner/lab/peers"
	"tuner/ort/ortlib"
	"tuner/runner"
	"tuner/runner/target"
)

// engines are the servers of a soak.
type engines struct {
	folder       string
	main, polled string // repositories
	collector    *collector
	ends         []func(context.Context)
}

// explicit starts the engine whose models are loaded by requests. cloud is its address for SageMaker.
func (e *engines) explicit(ctx context.Context, o options) (engine runner.Engine, cloud string, err error) {
	free, err := peers.FreePorts(1)
	if err != nil {
		return nil, "", err
	}
	cloud = free[0]
	_, port, _ := strings.Cut(cloud, ":")
	engine, err = e.launch(ctx, o, "explicit", e.main, "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME="+simple,
		"--allow-client-shm=true", "--allow-sagemaker=true", "--sagemaker-port="+port, "--cache-config=local,size=67108864",
		"--grpc-infer-response-compression-level=low", "--metrics-config=summary_latencies=true", "--metrics-config=histogram_latencies=true",
		"--trace-config=mode=opentelemetry", "--trace-config=level=TIMESTAMPS", "--trace-config=rate=50", "--trace-config=opentelemetry,url="+e.collector.address())
	return engine, cloud, err
}

// polling starts the engine that follows the files of its repository.
func (e *engines) polling(ctx context.Context, o options) (runner.Engine, error) {
	return e.launch(ctx, o, "polling", e.polled, "POLLING=1", "--model-control-mode=poll", "--repository-poll-secs=1")
}

// launch starts an engine with further flags and a variable, in a control group with the memory limit.
func (e *engines) launch(ctx context.Context, o options, name, repository, variable string, flags ...string) (runner.Engine, error) {
	library, err := ortlib.Resolve("")
	if err != nil {
		return nil, err
	}
	enter := "true"
	if o.memory > 0 {
		group, err := memgroup.New("soak", o.memory<<20)
		if err != nil {
			return nil, fmt.Errorf("cannot limit the engine's memory (-memory 0 sets no limit): %w", err)
		}
		e.ends = append(e.ends, func(context.Context) { _ = group.Close() }) // the next start of the machine removes it anyway
		enter = group.Enter()
	}
	program, err := filepath.Abs(o.tuner)
	binary := filepath.Join(e.folder, name+".sh")
	// a flag that is given again has the last value
	script := fmt.Sprintf("#!/bin/sh\n%s && export %s && exec '%s' \"$@\" '%s'\n", enter, variable, program, strings.Join(flags, "' '"))
	if err := errors.Join(err, os.WriteFile(binary, []byte(script), 0o755)); err != nil {
		return nil, fmt.Errorf("cannot start an engine: %w", err)
	}
	engine, err := target.Bundled{Binary: binary, Start: time.Minute, Drain: time.Minute}.Launch(ctx, runner.Server{Repository: repository, Library: library.Library})
	if err != nil {
		return nil, err
	}
	e.ends = append(e.ends, engine.Stop)
	return engine, nil
}

// stop ends the engines, and then removes their control groups.
func (e *engines) stop(ctx context.Context) {
	for i := range e.ends {
		e.ends[len(e.ends)-1-i](ctx)
	}
}
