// Package export writes deployment files for the result of `tuner analyze`. It has these targets:
//
//   - a Triton repository with a docker run line,
//   - Kubernetes manifests,
//   - a Helm chart,
//   - a KServe InferenceService,
//   - a Docker Compose project,
//   - an Azure ML online endpoint.
//
// It comes after the report. It reads result.json and the deployable repository beside it. From
// these and the user's options it derives one Deployment. Each target writes the same Deployment,
// so image, resources and arguments agree everywhere. It measures nothing, contacts nothing, and
// adds no decisions to those of the result.
package export

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tuner/export/tuned"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/model/modelrepo"
)

// file is one file of an export.
type file struct {
	path string // relative to the export's folder
	text []byte
}

// Export describes a written export.
type Export struct {
	Deployment Deployment
	// Files: relative to the folder, in order; a model's folder stands for all its files
	Files []string
	Next  []string // commands that apply it, to be run in that folder
}

// Write exports the analyzed campaigns of o to a target. The folder must not exist. It is written
// completely or not at all. The exit code of the error is exit.Usage if the user can fix it, and
// exit.Infeasible if nothing satisfies the constraints.
func Write(name, dir string, o Options) (Export, error) {
	t, ok := targetOf(name)
	if !ok {
		return Export{}, exit.Usagef("unknown target %q: allowed are %v", name, Targets())
	}
	return write(t, dir, o)
}

func write(t target, dir string, o Options) (Export, error) {
	if _, err := os.Lstat(dir); err == nil {
		return Export{}, exit.Usagef("cannot export into %q: it exists; choose another folder, or remove it", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Export{}, exit.Usagef("cannot export into %q: %w", dir, durable.Cause(err))
	}
	var models []tuned.Model
	for _, input := range o.Inputs {
		own, err := tuned.Read(input, o.Chosen)
		if err != nil {
			return Export{}, err
		}
		models = append(models, own...)
	}
	d, err := newDeployment(t, models, o)
	if err != nil {
		return Export{}, err
	}
	if err := d.checkOperators(); err != nil {
		return Export{}, err
	}
	e := Export{Deployment: d}
	err = durable.WriteFolder(dir, func(temp string) error {
		repository := filepath.Join(temp, d.repository())
		folders := d.folders()
		if e.Deployment.RepositoryBytes, err = copyModels(repository, folders, o.ShareFiles); err != nil {
			return err
		}
		for _, m := range folders {
			size, err := d.carryOperators(repository, m)
			if err != nil {
				return err
			}
			e.Deployment.RepositoryBytes += size
		}
		e.Next = t.commands(e.Deployment)
		files, err := e.Deployment.files()
		if err != nil {
			return err
		}
		for _, m := range folders {
			e.Files = append(e.Files, filepath.Join(d.repository(), m.Name))
		}
		for _, f := range files {
			e.Files = append(e.Files, f.path)
		}
		if err := writeFiles(temp, files); err != nil {
			return err
		}
		return durable.LetAllRead(temp)
	})
	return e, err
}

// repository returns the repository's folder in the export.
func (d Deployment) repository() string {
	return cmp.Or(d.target.repository, repositoryFolder)
}

// folders lists the models that have a folder in the repository: those that clients call, and the stages of
// pipelines before them.
func (d Deployment) folders() []tuned.Model { return foldersOf(d.Models) }

func foldersOf(models []tuned.Model) []tuned.Model {
	var list []tuned.Model
	for _, m := range models {
		list = append(list, m.Folders()...)
	}
	return list
}

// copyModels copies the models' deployable folders and returns their size in bytes. If share is
// set, it makes hard links.
func copyModels(repository string, models []tuned.Model, share bool) (int64, error) {
	if err := os.MkdirAll(repository, 0o755); err != nil {
		return 0, fmt.Errorf("cannot make folder %q: %w", repository, durable.Cause(err))
	}
	var size int64
	for _, m := range models {
		n, err := modelrepo.CopyDeployed(repository, m.Folder(), share)
		if err != nil {
			return 0, exit.Usagef("%w; run 'tuner analyze' to write it again", err)
		}
		size += n
	}
	return size, durable.SyncDir(repository)
}

// writeFiles writes files below a folder.
func writeFiles(dir string, files []file) error {
	for _, f := range files {
		path := filepath.Join(dir, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("cannot make folder for %q: %w", f.path, durable.Cause(err))
		}
		if err := durable.WriteFile(path, durable.Bytes(f.text)); err != nil {
			return fmt.Errorf("cannot write %q: %w", f.path, durable.Cause(err))
		}
	}
	return nil
}
