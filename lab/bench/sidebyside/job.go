package sidebyside

import (
	"context"
	"fmt"

	"tuner/gate"
	"tuner/internal/hostinfo"
	"tuner/profile"
	"tuner/runner"
	"tuner/spec"
)

// Job returns the job of an engine that serves a model with its completed configuration, as a gate serves
// it. fields are further lines of gate.yaml, which have the load. Variants are made in the folder dir.
func Job(ctx context.Context, dir, model, library, fields string) (runner.Job, error) {
	text := fmt.Sprintf("name: model\noutput: %q\nbaseline: {model: %q}\ncandidate: {model: %[2]q}\n%s", dir, model, fields)
	g, err := spec.ParseGate("gate.yaml", []byte(text))
	if err != nil {
		return runner.Job{}, err
	}
	setup, err := gate.Open(g, hostinfo.Read(ctx), func(string) profile.Place { return profile.Place{} })
	if err != nil {
		return runner.Job{}, err
	}
	setup.Candidate.Library = library
	return setup.Job(setup.Candidate)
}
