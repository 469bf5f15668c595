package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tuner/dataset"
	"tuner/hostinfo"
	"tuner/internal/checksum"
	"tuner/onnx"
	"tuner/ortlib"
	"tuner/precision"
	"tuner/profile"
	"tuner/provider"
	"tuner/provider/probe"
	"tuner/runner/target"
	"tuner/search"
	"tuner/spec"
)

// makeVariants makes the precisions of a profile, and compares everything that serves with the original model, before the
// campaign begins. What it does is told on stderr.
func makeVariants(ctx context.Context, con console, o profileOptions, p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build) (profile.Variants, error) {
	if p.Accuracy.Limit == nil {
		return profile.Variants{}, nil
	}
	data, calibration, err := variantData(p, s)
	if err != nil {
		return profile.Variants{}, err
	}
	say := func(text string) {
		if !o.quiet {
			fmt.Fprintln(con.err, text)
		}
	}
	for _, note := range data.Notes {
		say("accuracy.data: " + note)
	}
	if p.Accuracy.Calibration != "" { // else those of the data again
		for _, note := range calibration.Notes {
			say("accuracy.calibration: " + note)
		}
	}
	cache, err := precision.UserCache()
	if err != nil {
		return profile.Variants{}, err
	}
	serving := byPlace(builds, facts)
	var places []string
	for _, place := range p.Space(facts).Places() {
		places = append(places, place.String())
	}
	tool, err := variantTool(hostinfo.Read(ctx), places, serving)
	if err != nil {
		return profile.Variants{}, err
	}
	opener, err := newOpener(con, serving)
	if err != nil {
		return profile.Variants{}, err
	}
	maker, err := precision.NewMaker(s.Model, opener, precision.Options{
		Data: data, Calibration: calibration, CalibrationMethod: p.Accuracy.CalibrationMethod, Limit: p.Accuracy.Limit,
		MaxKept: p.Accuracy.MaxKept, Cache: cache, Tool: tool, KeepIO: true, Progress: say,
	})
	if err != nil {
		return profile.Variants{}, sourceError(err)
	}
	try, err := newTrier(serving)
	if err != nil {
		return profile.Variants{}, err
	}
	start := time.Now()
	variants, err := profile.MakeVariants(ctx, p, s, facts, maker, try)
	if err != nil {
		return profile.Variants{}, sourceError(err)
	}
	if len(variants.Records) > 0 {
		variants.Data = data.Digest()
	}
	announceVariants(say, variants, time.Since(start))
	return variants, nil
}

// variantData reads what variants are compared on and calibrated with, and refuses a model that has none; it does nothing
// without a limit of accuracy.
func variantData(p spec.Profile, s profile.Subject) (data, calibration dataset.Dataset, err error) {
	if p.Accuracy.Limit == nil {
		return data, calibration, nil
	}
	if err := precision.CheckSource(s.Model); err != nil {
		return data, calibration, sourceError(err)
	}
	return profile.Data(p, s)
}

// sourceError gives the exit code of bad input to what is wrong with the model itself, or with the user's command.
func sourceError(err error) error {
	var source *precision.SourceError
	var command *precision.CommandError
	if errors.As(err, &source) || errors.As(err, &command) {
		return withExit(exitUsage, err)
	}
	return err
}

// engineOpener runs models on the bundled engine, in places by name.
type engineOpener struct {
	options precision.ServeOptions
	serving func(place string) ortlib.Build
}

// newOpener makes an engineOpener. serving chooses the build for a place.
func newOpener(con console, serving func(place string) ortlib.Build) (precision.Opener, error) {
	options, err := target.Engine("", con.err)
	if err != nil {
		return nil, err
	}
	return engineOpener{serving: serving, options: precision.ServeOptions{Runner: options}}, nil
}

// Open implements precision.Opener.
func (o engineOpener) Open(ctx context.Context, m *onnx.Model, place string) (precision.Session, error) {
	options := o.options
	options.Library = func(string) (string, error) { return o.serving(place).Library, nil }
	return precision.NewOpener(options).Open(ctx, m, search.ParsePlace(place).Provider)
}

// announceVariants says what came of each variant.
func announceVariants(say func(string), v profile.Variants, took time.Duration) {
	for _, record := range v.Records {
		for _, note := range record.Notes {
			say(record.Precision + ": " + note)
		}
		for _, place := range slices.Sorted(maps.Keys(record.Rejected)) {
			name := record.Precision
			if place != "" {
				name += " on " + place
			}
			say(fmt.Sprintf("%s is rejected: %s", name, briefly(record.Rejected[place])))
		}
		if n := len(record.Kept); n > 0 {
			say(fmt.Sprintf("%s: %s to keep the limit of accuracy", record.Precision, countText(n, "operator stays in fp32", "operators stay in fp32")))
		}
	}
	say(fmt.Sprintf("variants are ready after %s", clockText(took)))
}

// byPlace chooses the build of each place: the default's where a place names none.
func byPlace(builds []ortlib.Build, facts search.Facts) func(place string) ortlib.Build {
	return func(place string) ortlib.Build {
		runtime := search.ParsePlace(place).Runtime
		return builds[max(0, slices.IndexFunc(facts.Runtimes, func(r search.RuntimeFacts) bool { return r.Name == runtime }))]
	}
}

// variantTool names everything that a comparison in the places depends on, beside the model and the data: this program, the
// build that runs the original on cpu, each other build that runs a place, and what computes there.
func variantTool(host hostinfo.Host, places []string, serving func(place string) ortlib.Build) (string, error) {
	base := serving(provider.CPU)
	name, err := contentName(base)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("tuner %s, %s", toolVersion(), name)
	for _, place := range slices.Sorted(slices.Values(places)) {
		build := serving(place)
		if build == base {
			continue
		}
		if name, err = contentName(build); err != nil {
			return "", err
		}
		text += fmt.Sprintf(", %s on %s", place, name)
	}
	return text + ", " + strings.Join(processors(host, places), ", "), nil
}

// processors names what decides which kernels compute in the places, and so how their sums are rounded: the instruction sets of the
// CPU, and for places on GPUs their models.
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

// contentName names a build so that other libraries have other names: one that is not tuner's own by its content, since a file
// of the same version may have been built in another way.
func contentName(b ortlib.Build) (string, error) {
	if b.Flavour != ortlib.External {
		return b.Name(), nil
	}
	sum, err := checksum.File(b.Library)
	if err != nil {
		return "", fmt.Errorf("cannot read ONNX Runtime library: %w", err)
	}
	return fmt.Sprintf("%s (%s)", b.Name(), sum), nil
}

// newTrier asks child processes whether a place's provider works with a model file.
func newTrier(serving func(place string) ortlib.Build) (profile.Trier, error) {
	p, err := probe.New()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, place search.Place, model string) (string, error) {
		out, _, err := p.TryAll(ctx, serving(place.String()), []string{place.Provider}, model)
		return out[place.Provider], err
	}, nil
}
