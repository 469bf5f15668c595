package roots

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/exit"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/spec"
)

// Check returns CheckRun for folders that the user gives; nil without any.
func Check(folders []string) (func(spec.Profile, spec.Analyze) error, error) {
	if len(folders) == 0 {
		return nil, nil
	}
	r, err := Open(folders)
	return r.CheckRun, err
}

// CheckRun refuses a run that may do more than measure models below the folders. profile.yaml may
// name programs, libraries and other servers, and both files name paths. The error lists every such
// field.
func (r Roots) CheckRun(p spec.Profile, a spec.Analyze) error {
	var errs []error
	refuse := func(file, field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s: %s", file, field, fmt.Sprintf(format, args...)))
	}
	if p.Accuracy.Command != "" {
		refuse(p.Path, "accuracy.command", "is a program, and a client of 'tuner mcp' may run none; 'tuner run -f' in a shell runs it")
	}
	for _, library := range p.Model.Libraries.Operators {
		refuse(p.Path, addon.FileField, "%q is a library, and a client of 'tuner mcp' may load none; 'tuner run -f' in a shell loads it", library)
	}
	r.checkServer(p.Runner, func(text string) { refuse(p.Path, "runner.mode", "%s", text) })
	if p.Finals != nil {
		r.checkServer(*p.Finals, func(text string) { refuse(p.Path, "finals.runner.mode", "%s", text) })
	}
	for _, build := range p.Runtimes() {
		if !isInstalled(build) {
			refuse(p.Path, "space.runtime", "%q is a library, and a client of 'tuner mcp' may load none; name an installed build ('tuner runtime list')", build)
		}
	}
	for _, f := range pathsOf(p, a) {
		if f.path == "" {
			continue
		}
		if _, err := r.findFrom(f.path); err != nil {
			refuse(f.file, f.field, "%v", err)
		}
	}
	return exit.With(exit.Usage, errors.Join(errs...))
}

// isInstalled reports whether a selector can only mean an installed build: cpu, cpu@1.31.1. Other
// values may be files.
func isInstalled(build string) bool {
	flavour, _, _ := strings.Cut(build, "@")
	_, known := provider.BuildOf(flavour)
	return known && !strings.ContainsRune(build, filepath.Separator)
}

// checkServer refuses every server but tuner's own engine.
func (r Roots) checkServer(s spec.Runner, refuse func(text string)) {
	switch s.Mode {
	case spec.RunnerLocal:
		refuse("local runs a program, and a client of 'tuner mcp' may run none; use bundled, or 'tuner run -f' in a shell")
	case spec.RunnerRemote:
		refuse("remote sends requests to another server, which a client of 'tuner mcp' may not do; use bundled, or 'tuner run -f' in a shell")
	}
}

// findFrom is Folder for a path that is relative to the working folder, as those of package spec.
func (r Roots) findFrom(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return r.Folder(at)
}

// named is a path in a field of a file.
type named struct{ file, field, path string }

// pathsOf lists the paths of both files; "" for those that they do not name.
func pathsOf(p spec.Profile, a spec.Analyze) []named {
	list := []named{
		{p.Path, "model", p.Model.Path}, {p.Path, "config", p.Model.Config}, {p.Path, "output", p.Output},
		{p.Path, "load.inputs.data", p.Inputs.Data}, {p.Path, "load.inputs.mix.histogram", p.Inputs.Mix.Histogram},
		{p.Path, "load.arrivals.trace", p.Load.Arrivals.File},
		{p.Path, "accuracy.data", p.Accuracy.Data}, {p.Path, "accuracy.calibration", p.Accuracy.Calibration},
		{a.Path, "input", a.Input}, {a.Path, "output", a.Output},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Model.Precisions)) {
		list = append(list, named{p.Path, "space.precision." + name, p.Model.Precisions[name]})
	}
	for _, earlier := range p.Search.Earlier {
		list = append(list, named{p.Path, "search.earlier", earlier})
	}
	return list
}
