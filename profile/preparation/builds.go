package preparation

import (
	"context"
	"errors"
	"fmt"

	"tuner/internal/checksum"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/ort/provider/probe"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// Builds finds the ONNX Runtime builds of a campaign, the default's first. The knob runtime names
// them. Otherwise it is the one of the flag, the environment or the installation.
func (o Options) Builds(p spec.Profile) ([]ortlib.Build, error) {
	selectors := p.Runtimes()
	if len(selectors) == 0 {
		build, err := ortlib.Resolve(o.Library)
		return []ortlib.Build{build}, err
	}
	if err := o.checkRuntimes(p); err != nil {
		return nil, err
	}
	builds, err := ortlib.ResolveAll(selectors)
	if err != nil {
		return nil, fmt.Errorf("%s: space.runtime: %w", o.File, err)
	}
	return builds, nil
}

// checkRuntimes finds builds that are set in two places.
func (o Options) checkRuntimes(p spec.Profile) error {
	if len(p.Runtimes()) > 0 && o.Library != "" {
		return exit.Usagef("%s: space.runtime: contradicts --ort-library %s: leave one of the two out", o.File, o.Library)
	}
	return nil
}

// Place returns the facts of the machine on which the default configuration depends. For the bundled
// engine the GPUs are none if its build does not use GPUs.
func (o Options) Place(ctx context.Context, host hostinfo.Host, p spec.Profile) profile.Place {
	there := Place(ctx, host, p.Model.Libraries, func() (ortlib.Build, error) {
		builds, err := o.Builds(p)
		if err != nil {
			return ortlib.Build{}, err
		}
		return builds[0], nil
	})
	if !p.UsesBundled() {
		there.GPUs = len(host.GPUs)
	}
	return there
}

// Place returns the facts of the machine for a default configuration that the build from find serves
// (probe.GPUs), with libraries beside it.
func Place(ctx context.Context, host hostinfo.Host, libraries addon.Libraries, find func() (ortlib.Build, error)) profile.Place {
	prober, err := probe.New()
	if err != nil {
		return profile.Place{GPUs: len(host.GPUs)} // opening the build reports the error
	}
	if prober.Libraries, err = libraries.Resolve(addon.InFile()); err != nil {
		return profile.Place{GPUs: len(host.GPUs)} // opening the model reports the error
	}
	return profile.Place{GPUs: prober.GPUs(ctx, host, find), Outputs: func(model string) map[string][]int64 {
		return prober.Outputs(ctx, find, model)
	}}
}

// findBuilds finds the builds that a campaign needs. It adds to the facts what the serving builds
// can do with the model. It returns none if other servers use their own builds and nothing is
// compared here.
func (o Options) findBuilds(ctx context.Context, p spec.Profile, s profile.Subject, facts search.Facts) ([]ortlib.Build, search.Facts, error) {
	if !p.UsesBundled() && p.Accuracy.Limit == nil {
		return nil, facts, nil
	}
	builds, isMissing, err := o.locate(p)
	if isMissing || err != nil {
		return builds, facts, err
	}
	opened, facts, err := Open(ctx, builds, p, s, facts)
	if err != nil {
		return nil, facts, exit.OrInterrupted(ctx, err)
	}
	return opened, facts, nil
}

// locate finds the builds of a profile. A dry run continues without them, with a message: isMissing is
// true then.
func (o Options) locate(p spec.Profile) (builds []ortlib.Build, isMissing bool, err error) {
	builds, missing := o.Builds(p)
	switch {
	case missing == nil:
		return builds, false, nil
	case o.DryRun && !errors.As(missing, new(*ortlib.SameError)): // works without ONNX Runtime, and knows more with one
		fmt.Fprintf(o.Messages, "%v\nthe plan is made without it, and may contain candidates that do not work here\n", missing)
		return builds, true, nil
	}
	return nil, false, exit.With(exit.Usage, missing)
}

// openBuilds opens builds. It returns them with the versions that they report.
func openBuilds(ctx context.Context, builds []ortlib.Build) ([]ortlib.Build, error) {
	opened := make([]ortlib.Build, len(builds))
	for i, b := range builds {
		var err error
		if opened[i], err = OpenBuild(ctx, b); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// Open opens the builds of a campaign. It returns them with the versions that they report. It adds
// to the facts what each serving build can do with the model.
func Open(ctx context.Context, builds []ortlib.Build, p spec.Profile, s profile.Subject, facts search.Facts) ([]ortlib.Build, search.Facts, error) {
	prober, err := probe.New()
	if err != nil {
		return nil, facts, err
	}
	prober.Libraries = s.Libraries
	opened, err := openBuilds(ctx, builds)
	if err != nil {
		return nil, facts, err
	}
	if selectors := p.Runtimes(); len(selectors) > 0 { // again, with the versions that the libraries report
		if err := ortlib.CheckDistinct(opened, selectors); err != nil {
			return nil, facts, exit.Usagef("%s: space.runtime: %v", p.Path, err)
		}
	}
	if !p.UsesBundled() { // the builds only compare variants
		return opened, facts, nil
	}
	runtimes, err := prober.Facts(ctx, opened, p.Space(facts), s.Files[0].Source.Path)
	if err != nil {
		return nil, facts, err
	}
	if len(p.Runtimes()) > 0 {
		facts.Runtimes = runtimes
	} else {
		facts.Unavailable, facts.Assigned = runtimes[0].Unavailable, runtimes[0].Assigned
	}
	return opened, facts, nil
}

// OpenBuild opens one build. It returns it with the version that it reports.
func OpenBuild(ctx context.Context, build ortlib.Build) (ortlib.Build, error) {
	prober, err := probe.New()
	if err != nil {
		return ortlib.Build{}, err
	}
	opened, err := prober.Open(ctx, build)
	return opened, exit.With(exit.Usage, err)
}

// runtimeInfos converts builds to their form in the journal. Libraries that the user named have a
// digest of their content, since another library may replace the measured one.
func runtimeInfos(builds []ortlib.Build) ([]journal.RuntimeInfo, error) {
	var infos []journal.RuntimeInfo
	for _, b := range builds {
		info := journal.RuntimeInfo{Flavour: b.Flavour, Version: b.Version, Library: b.Library}
		if b.Flavour == ortlib.External {
			var err error
			if info.SHA256, err = checksum.File(b.Library); err != nil {
				return nil, fmt.Errorf("cannot read ONNX Runtime library: %w", err)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}
