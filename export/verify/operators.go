package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tuner/export"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/model/modelrepo"
	"tuner/ort/addon"
)

// served is the repository that is served.
type served struct {
	dir     string
	scratch *durable.Scratch // nil if it is the export's own
}

func (s served) close() {
	if s.scratch != nil {
		_ = s.scratch.Close() // what stays is removed by the next one
	}
}

// openRepository returns the repository of an export in the folder dir. The export names libraries
// with operators by their paths on the servers. If there are any, it is a copy that names the user's
// libraries with the same content. Their code runs in the server, so the export's own are not enough.
func openRepository(dir, repository string, m export.Manifest, libraries addon.Libraries) (served, error) {
	var folders []export.ManifestModel
	for _, model := range m.Models {
		folders = append(folders, model.Folders()...)
	}
	if !slices.ContainsFunc(folders, func(m export.ManifestModel) bool { return len(m.Operators) > 0 }) {
		return served{dir: repository}, nil
	}
	allowed, err := libraries.Files()
	if err != nil {
		return served{}, err
	}
	scratch, err := durable.NewScratch("", "tuner-verify-")
	if err != nil {
		return served{}, fmt.Errorf("cannot make a folder for the models: %w", err)
	}
	s := served{scratch.Dir, scratch}
	for _, model := range folders {
		paths, missing := matching(model.Operators, allowed.Operators)
		if len(missing) > 0 {
			s.close()
			return served{}, exit.Usagef("cannot verify %q: model %q needs libraries, whose code would run in the server; allow them with %s",
				dir, model.Name, flagsText(dir, missing))
		}
		if err := modelrepo.LinkWith(s.dir, filepath.Join(repository, model.Name), paths); err != nil {
			s.close()
			return served{}, err
		}
	}
	return s, nil
}

// matching returns the allowed libraries with the content of the wanted ones, and the wanted ones that
// are not allowed.
func matching(wanted, allowed []addon.File) (paths []string, missing []addon.File) {
	for _, w := range wanted {
		i := slices.IndexFunc(allowed, func(a addon.File) bool { return a.SHA256 == w.SHA256 })
		if i < 0 {
			missing = append(missing, w)
			continue
		}
		paths = append(paths, allowed[i].Path)
	}
	return paths, missing
}

// flagsText returns the flags that allow libraries of the export in a folder.
func flagsText(dir string, files []addon.File) string {
	var flags []string
	for _, f := range files {
		flags = append(flags, fmt.Sprintf("--%s %s", addon.FileFlag, filepath.Join(dir, filepath.FromSlash(f.Path))))
	}
	return strings.Join(flags, " ")
}
