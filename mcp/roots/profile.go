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
	r.checkServer(p.Runner, func(text string) { refuse(p.Path, "runner.mode", "%s", text) })
	if p.Finals != nil {
		r.checkServer(*p.Finals, func(text string) { refuse(p.Path, "finals.runner.mode", "%s", text) })
	}
	paths := []named{{p.Path, "output", p.Output}, {a.Path, "input", a.Input}, {a.Path, "output", a.Output}}
	for _, earlier := range p.Search.Earlier {
		paths = append(paths, named{p.Path, "search.earlier", earlier})
	}
	ofModel := func(one spec.Profile, section string) {
		checkModel(one, func(field, text string) { refuse(p.Path, section+field, "%s", text) })
		for _, f := range pathsOf(one) {
			paths = append(paths, named{p.Path, section + f.field, f.path})
		}
	}
	ofModel(p, "")
	for _, one := range p.Models {
		ofModel(one, "models."+one.Name+".")
	}
	for _, f := range paths {
		if f.path == "" {
			continue
		}
		if _, err := r.findFrom(f.path); err != nil {
			refuse(f.file, f.field, "%v", err)
		}
	}
	return exit.With(exit.Usage, errors.Join(errs...))
}

// checkModel refuses what a model's fields may run or load.
func checkModel(p spec.Profile, refuse func(field, text string)) {
	if p.Accuracy.Command != "" {
		refuse("accuracy.command", "is a program, and a client of 'tuner mcp' may run none; 'tuner run -f' in a shell runs it")
	}
	for _, library := range p.Model.Libraries.Operators {
		refuse(addon.FileField, fmt.Sprintf("%q is a library, and a client of 'tuner mcp' may load none; 'tuner run -f' in a shell loads it", library))
	}
	for _, build := range p.Runtimes() {
		if !isInstalled(build) {
			refuse("space.runtime", fmt.Sprintf("%q is a library, and a client of 'tuner mcp' may load none; name an installed build ('tuner runtime list')", build))
		}
	}
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

// pathsOf lists the paths that a model's fields name; "" for those that they do not.
func pathsOf(p spec.Profile) []named {
	list := []named{
		{field: "model", path: p.Model.Path}, {field: "config", path: p.Model.Config},
		{field: "load.inputs.data", path: p.Inputs.Data}, {field: "load.inputs.mix.histogram", path: p.Inputs.Mix.Histogram},
		{field: "load.arrivals.trace", path: p.Load.Arrivals.File},
		{field: "accuracy.data", path: p.Accuracy.Data}, {field: "accuracy.calibration", path: p.Accuracy.Calibration},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Model.Precisions)) {
		list = append(list, named{field: "space.precision." + name, path: p.Model.Precisions[name]})
	}
	return list
}
