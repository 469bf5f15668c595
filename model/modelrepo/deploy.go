package modelrepo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/checksum"
	"tuner/internal/durable"
	"tuner/model/modelconfig"
)

// receiptName is the file by which Write recognizes its own folders. Triton ignores it.
const receiptName = ".tuner.json"

// receipt lists the files that Write left in a model's folder.
type receipt struct {
	// SHA256 has the digest of each file except the receipt, by its path relative to the folder,
	// with slashes.
	SHA256 map[string]string `json:"sha256"`
}

// Write writes model m with configuration c into the repository dir for deployment:
// dir/<model>/{config.pbtxt,1/…}. The files are copies, so that the repository stays as measured if
// the original changes.
//
// Write replaces a folder of that name only if Write made it and nobody changed it since. It does
// not touch other folders of dir. It completes the new folder before it replaces the old one.
func Write(dir string, m Source, c *modelconfig.Config) error {
	p, err := newPlan(m, c)
	if err != nil {
		return err
	}
	return p.deploy(dir)
}

// Copy copies the model's folder of a variant into the repository dir, for the time of a
// measurement. It follows the rules of Write.
func Copy(dir string, v Variant) error {
	p, err := planOf(v)
	if err != nil {
		return err
	}
	return p.deploy(dir)
}

// folderPlan plans a model's folder as a copy of another, with the given files, and without the
// receipt, which only Write makes.
func folderPlan(folder string, files []string) (plan, error) {
	p, err := plan{model: filepath.Base(folder)}.withFiles(folder, files)
	if err != nil {
		return plan{}, err
	}
	if p.config, err = os.ReadFile(filepath.Join(folder, configName)); err != nil {
		return plan{}, fmt.Errorf("cannot read configuration %q: %w", filepath.Join(folder, configName), durable.Cause(err))
	}
	return p, nil
}

// Wrote reports whether dir/<model> is a folder that Write or Copy made, and that nobody changed
// since.
func Wrote(dir, model string) bool {
	target := filepath.Join(dir, model)
	_, err := os.Lstat(target)
	return err == nil && checkReplaceable(target) == nil
}

// deploy installs the plan's folder in the repository dir.
func (p plan) deploy(dir string) error {
	target := filepath.Join(dir, p.model)
	if err := checkReplaceable(target); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create model repository %q: %w", dir, durable.Cause(err))
	}
	return durable.InFolder(dir, func(temp string) error {
		fresh := filepath.Join(temp, "new")
		if err := p.write(fresh, duplicate); err != nil {
			return err
		}
		if err := writeReceipt(fresh); err != nil {
			return err
		}
		return durable.Swap(fresh, target, filepath.Join(temp, "old"))
	})
}

// Remove removes dir/<model> if Write made it and nobody changed it since. A missing folder is no
// error. The folder leaves its place by one rename, so a failure leaves no part of it there.
func Remove(dir, model string) error {
	target := filepath.Join(dir, model)
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkReplaceable(target); err != nil {
		return err
	}
	return durable.InFolder(dir, func(temp string) error {
		if err := os.Rename(target, filepath.Join(temp, "old")); err != nil {
			return fmt.Errorf("cannot remove folder %q: %w", target, durable.Cause(err))
		}
		return nil
	})
}

// writeReceipt records the files of a complete folder.
func writeReceipt(dir string) error {
	path := filepath.Join(dir, receiptName)
	files, err := listFiles(dir)
	r := receipt{SHA256: make(map[string]string, len(files))}
	for i := 0; err == nil && i < len(files); i++ {
		r.SHA256[files[i]], err = checksum.File(filepath.Join(dir, filepath.FromSlash(files[i])))
	}
	if err != nil {
		return fmt.Errorf("cannot write file %q: %w", path, durable.Cause(err))
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write file %q: %w", path, err)
	}
	if err := writeFile(path, append(text, '\n')); err != nil {
		return err
	}
	return syncDir(dir)
}

// changed names a file of the folder that does not match the receipt: changed, added, missing, or
// unreadable. It returns "" if all match. files are all files of the folder.
func (r receipt) changed(dir string, files []string) string {
	for _, file := range files {
		if file == receiptName {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(file))
		want, known := r.SHA256[file]
		if info, err := os.Lstat(path); err != nil || !known || !info.Mode().IsRegular() {
			return file
		}
		if got, err := checksum.File(path); err != nil || got != want {
			return file
		}
	}
	for _, file := range slices.Sorted(maps.Keys(r.SHA256)) {
		if !slices.Contains(files, file) {
			return file
		}
	}
	return ""
}

// checkReplaceable refuses a folder with content that Write did not make.
func checkReplaceable(dir string) error {
	_, foreign, err := written(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot replace folder %q: %w", dir, durable.Cause(err))
	case foreign != "":
		return fmt.Errorf("cannot replace or remove folder %q: %s; move it away or choose another output folder", dir, foreign)
	}
	return nil
}

// written lists the files of a folder that Write made and nobody changed since, including the
// receipt. For any other folder, foreign is the reason.
func written(dir string) (files []string, foreign string, err error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, "", err
	}
	if !info.IsDir() {
		return nil, "it is not a folder", nil
	}
	text, err := os.ReadFile(filepath.Join(dir, receiptName))
	if err != nil {
		return nil, "it was not written by tuner", nil
	}
	var r receipt
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, receiptName + " in it is damaged", nil
	}
	if len(r.SHA256) == 0 {
		return nil, receiptName + " in it is of an earlier tuner, and has no digests of the files", nil
	}
	if files, err = listFiles(dir); err != nil {
		return nil, "", err
	}
	if changed := r.changed(dir, files); changed != "" {
		return nil, changed + " in it was changed since tuner wrote it", nil
	}
	return files, "", nil
}

// CopyDeployed copies the model's folder source, which Write made, into the repository dir under
// its own name. It returns the size in bytes. It refuses a folder that was changed since, and an
// existing target. With share it makes hard links to the model's files if the file system allows
// it. After an error, a part of the folder may remain, so dir must be a repository under
// construction.
func CopyDeployed(dir, source string, share bool) (int64, error) {
	files, foreign, err := written(source)
	if err == nil && foreign != "" {
		err = errors.New(foreign)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot copy model folder %q: %w", source, durable.Cause(err))
	}
	p, err := folderPlan(source, files)
	if err != nil {
		return 0, err
	}
	size := int64(len(p.config))
	for _, e := range p.files {
		size += e.from.Size
	}
	put := duplicate
	if share {
		put = linkOrCopy
	}
	return size, p.write(filepath.Join(dir, p.model), put)
}

// listFiles lists everything in dir except folders, sorted.
func listFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(files)
	return files, err
}
