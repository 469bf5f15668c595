package roots

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tuner/internal/exit"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/spec"
	"tuner/spec/paths"
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
	checkModel(p, func(field, text string) { refuse(p.Path, field, "%s", text) })
	for _, one := range p.Models {
		checkModel(one, func(field, text string) { refuse(p.Path, "models."+one.Name+"."+field, "%s", text) })
	}
	find := func(file, field, path string) {
		if path == "" {
			return
		}
		if _, err := r.findFrom(path); err != nil {
			refuse(file, field, "%v", err)
		}
	}
	for _, named := range paths.Of(p) {
		find(p.Path, named.Field, named.File)
	}
	if p.IsPipeline() { // its stages are the folders beside it
		find(p.Path, "pipeline", filepath.Dir(p.Pipeline))
	}
	find(p.Path, "output", p.Output)
	for _, earlier := range p.Search.Earlier {
		find(p.Path, "search.earlier", earlier)
	}
	find(a.Path, "input", a.Input)
	find(a.Path, "output", a.Output)
	return exit.With(exit.Usage, errors.Join(errs...))
}

// checkModel refuses what a model's fields may run or load.
func checkModel(p spec.Profile, refuse func(field, text string)) {
	if p.Accuracy.Command != "" {
		refuse("accuracy.command", "is a program, and a client of 'tuner mcp' may run none; 'tuner run -f' in a shell runs it")
	}
	load := func(field, library string) {
		refuse(field, fmt.Sprintf("%q is a library, and a client of 'tuner mcp' may load none; 'tuner run -f' in a shell loads it", library))
	}
	for _, library := range p.Model.Libraries.Operators {
		load(addon.FileField, library)
	}
	if library := p.Model.Libraries.Provider; library != "" {
		load(addon.ProviderField, library)
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
