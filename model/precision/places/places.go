// Package places describes what computes in a place. This is the build of ONNX Runtime that serves
// an execution provider, and tuner's own engine that opens models on it. It also has the names of
// everything that affects a comparison of outputs. It stands between the installed builds (package
// ortlib) and packages precision and profile, which make and judge variants. It converts nothing
// and compares nothing.
package places

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/internal/checksum"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/model/onnx"
	"tuner/model/precision"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
	"tuner/ort/provider/probe"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
)

// Builds returns the build of ONNX Runtime for a place (search.Place, by name).
type Builds func(place string) ortlib.Build

// Find finds and opens a build for each execution provider, and for cpu, which computes the
// reference. A build named by the flag or the environment serves all. Otherwise the installed build
// of a provider's flavour serves it, or else the default.
func Find(ctx context.Context, named string, providers []string) (Builds, error) {
	base, err := ortlib.Resolve(named)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	prober, err := probe.New()
	if err != nil {
		return nil, err
	}
	if base, err = prober.Open(ctx, base); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	all := map[string]ortlib.Build{}
	for _, name := range providers {
		if name != provider.CPU {
			all[name] = buildFor(name, named, base)
		}
	}
	return func(place string) ortlib.Build {
		if build, ok := all[place]; ok {
			return build
		}
		return base
	}, nil
}

// buildFor returns the build that serves a provider. It is base if flag or environment names it.
// Otherwise it is the installed build of the provider's flavour, if there is one.
func buildFor(name, named string, base ortlib.Build) ortlib.Build {
	flavour := provider.Of(name).Flavour
	if flavour == "" || ortlib.IsNamed(named) {
		return base
	}
	store, err := ortlib.UserStore()
	if err != nil {
		return base
	}
	build, err := store.Find(flavour)
	if err != nil {
		return base
	}
	return build
}

// OfCampaign chooses among a campaign's builds by its facts. A place without a build uses the
// default's, the first.
func OfCampaign(builds []ortlib.Build, facts search.Facts) Builds {
	return func(place string) ortlib.Build {
		runtime := search.ParsePlace(place).Runtime
		i := slices.IndexFunc(facts.Runtimes, func(r search.RuntimeFacts) bool { return r.Name == runtime })
		return builds[max(0, i)]
	}
}

// Opener opens models in places, on this program's own engine, with libraries beside ONNX Runtime. It
// writes warnings to a writer.
func (b Builds) Opener(libraries addon.Libraries, warnings io.Writer) (precision.Opener, error) {
	options, err := target.Engine("", libraries, warnings)
	if err != nil {
		return nil, err
	}
	return b.OpenerOn(options, libraries), nil
}

// OpenerOn opens models in places, on the engine that the options launch. libraries are those that the
// engine opens.
func (b Builds) OpenerOn(options runner.Options, libraries addon.Libraries) precision.Opener {
	return opener{b, precision.ServeOptions{Runner: options, Operators: libraries.Operators}}
}

// opener runs models on an engine, in places by name.
type opener struct {
	builds  Builds
	options precision.ServeOptions
}

// Open implements precision.Opener.
func (o opener) Open(ctx context.Context, m *onnx.Model, place string) (precision.Session, error) {
	options := o.options
	options.Library = func(string) (string, error) { return o.builds(place).Library, nil }
	return precision.NewOpener(options).Open(ctx, m, search.ParsePlace(place).Provider)
}

// Trier returns a function that returns the reason why a place's execution provider does not work with
// a model file, and "" if it does. A child process tries it, with libraries beside ONNX Runtime. The
// error is the context's.
func (b Builds) Trier(libraries addon.Libraries) func(ctx context.Context, place search.Place, model string) (reason string, err error) {
	return func(ctx context.Context, place search.Place, model string) (string, error) {
		prober, err := probe.New()
		if err != nil {
			return "", err
		}
		prober.Libraries = libraries
		out, _, err := prober.TryAll(ctx, b(place.String()), []string{place.Provider}, model)
		return out[place.Provider], err
	}
}

// Key identifies everything that affects a comparison in places, besides the model and the data.
// Key has these parts:
//
//   - a tool (this program and its version),
//   - the build that runs the original on cpu,
//   - every other build that runs a place,
//   - the processors.
func (b Builds) Key(tool string, host hostinfo.Host, places []string) (string, error) {
	base := b(provider.CPU)
	name, err := ContentName(base)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s, %s", tool, name)
	for _, place := range slices.Sorted(slices.Values(places)) {
		build := b(place)
		if build == base {
			continue
		}
		if name, err = ContentName(build); err != nil {
			return "", err
		}
		text += fmt.Sprintf(", %s on %s", place, name)
	}
	return text + ", " + strings.Join(processors(host, places), ", "), nil
}

// Maker prepares the making of a model's variants that are judged in places. It sets the cache
// folder and the key of this program's version, with the libraries of the options.
func (b Builds) Maker(ctx context.Context, version string, m *onnx.Model, open precision.Opener, places []string, o precision.Options) (*precision.Maker, error) {
	var err error
	if o.Cache, err = precision.UserCache(); err != nil {
		return nil, err
	}
	if o.Tool, err = b.Key("tuner "+version, hostinfo.Read(ctx), places); err != nil {
		return nil, err
	}
	files, err := o.Libraries.Files()
	if err != nil {
		return nil, err
	}
	for _, f := range files.Operators {
		o.Tool += ", operators " + f.SHA256
	}
	if files.Provider != nil {
		o.Tool += ", provider " + files.Provider.SHA256
	}
	return precision.NewMaker(m, open, o)
}

// processors identifies what selects the kernels in the places, and so the rounding of sums. These
// are the instruction sets of the CPU and, for places on GPUs, the GPUs' models.
func processors(host hostinfo.Host, places []string) []string {
	names := append([]string{host.Arch}, host.CPU.Features...)
	onGPU := func(place string) bool { return provider.OnGPU(search.ParsePlace(place).Provider) }
	if slices.ContainsFunc(places, onGPU) {
		for _, gpu := range host.GPUs {
			names = append(names, gpu.Name)
		}
	}
	return names
}

// ContentName returns a name of a build that differs for different libraries. A library that the
// user named is identified by its content, since a file of the same version may be a different
// build.
func ContentName(b ortlib.Build) (string, error) {
	if b.Flavour != ortlib.External {
		return b.Name(), nil
	}
	sum, err := checksum.File(b.Library)
	if err != nil {
		return "", fmt.Errorf("cannot read ONNX Runtime library: %w", err)
	}
	return fmt.Sprintf("%s (%s)", b.Name(), sum), nil
}
