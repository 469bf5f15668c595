package probe

import (
	"context"
	"fmt"
	"slices"

	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
	"tuner/search"
)

// Open opens a build in a child process. So a file that is not a library is found before a campaign
// starts. It returns the build with the version that the library itself reports.
func (p Prober) Open(ctx context.Context, build ortlib.Build) (ortlib.Build, error) {
	answer := p.Try(ctx, build, "", "")
	if answer.Error != "" {
		remedy := "" // ONNX Runtime's own errors have one
		if answer.Crashed {
			remedy = "; install a working one with 'tuner runtime install cpu', or name another with --ort-library"
		}
		return ortlib.Build{}, fmt.Errorf("cannot use the ONNX Runtime %s: %s%s", build.Name(), answer.Error, remedy)
	}
	build.Version = answer.Version
	return build, nil
}

// Facts tries each execution provider of the space, and the default configuration's, with a model
// on each build. Its only error is the context's.
func (p Prober) Facts(ctx context.Context, builds []ortlib.Build, space search.Space, model string) ([]search.RuntimeFacts, error) {
	var providers []string
	for _, k := range space.Knobs {
		for _, v := range k.Values {
			if k.Name == search.KnobExecutionProvider {
				providers = append(providers, string(v))
			}
		}
	}
	if base := string(space.Facts.Base[search.KnobExecutionProvider]); base != "" && !slices.Contains(providers, base) {
		// serves the default, and all candidates that do not set the knob
		providers = append(providers, base)
	}
	var facts []search.RuntimeFacts
	for _, build := range builds {
		out, took, err := p.TryAll(ctx, build, providers, model)
		if err != nil {
			return nil, err
		}
		facts = append(facts, search.RuntimeFacts{Name: build.Name(), Unavailable: out, Assigned: took})
	}
	return facts, nil
}

// GPUs returns the number of GPUs for a default configuration. It is the machine's number, or 0 if
// the build that find returns has no provider for GPUs. The engine counts GPUs in the same way. A
// build that is not found or does not open counts as one with a provider: its error is reported
// where the build is needed.
func (p Prober) GPUs(ctx context.Context, host hostinfo.Host, find func() (ortlib.Build, error)) int {
	if len(host.GPUs) == 0 {
		return 0
	}
	build, err := find()
	if err != nil {
		return len(host.GPUs)
	}
	return usableGPUs(host, p.Try(ctx, build, "", ""))
}

// Outputs returns the shapes that a session on the CPU declares for a model's outputs, by name; -1
// for open sizes. It returns nil if the build that find returns is missing, or creates no session:
// that is reported where the build is needed.
func (p Prober) Outputs(ctx context.Context, find func() (ortlib.Build, error), model string) map[string][]int64 {
	build, err := find()
	if err != nil {
		return nil
	}
	shapes := map[string][]int64{}
	for _, out := range p.Try(ctx, build, provider.CPU, model).Outputs {
		shapes[out.Name] = out.Shape
	}
	return shapes
}

// usableGPUs returns the number of GPUs on which an opened build computes.
func usableGPUs(host hostinfo.Host, opened Answer) int {
	if opened.Error == "" && !slices.Contains(opened.Providers, provider.CUDA) {
		return 0
	}
	return len(host.GPUs)
}
