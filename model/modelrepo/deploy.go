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
	"tuner/internal/inside"
	"tuner/model/modelconfig"
)

// receiptName is the file by which Write knows its own folders again. Triton
// ignores it.
const receiptName = ".tuner.json"

// A receipt says what Write left in a model's folder.
type receipt struct {
	// SHA256 has the digest of each file but the receipt, by its path relative to the folder, with slashes.
	SHA256 map[string]string `json:"sha256"`
}

// Write puts model m with configuration c into the repository dir, to be
// deployed: dir/<model>/{config.pbtxt,1/…}. The files are copies, so that the
// repository keeps what was measured whatever becomes of the original.
//
// A folder of that name is replaced only if Write made it and nobody changed it
// since; other folders of dir are left alone. The new folder is complete before
// it takes the old one's place.
func Write(dir string, m Source, c *modelconfig.Config) error {
	p, err := newPlan(m, c)
	if err != nil {
		return err
	}
	return p.deploy(dir)
}

// Copy puts the model's folder of a variant into the repository dir, for as long
// as it is measured there, in the same way as Write.
func Copy(dir string, v Variant) error {
	from := filepath.Join(v.Dir, v.Model)
	files, err := listFiles(from)
	if err != nil {
		return fmt.Errorf("cannot read folder %q: %w", from, durable.Cause(err))
	}
	p, err := folderPlan(from, files)
	if err != nil {
		return err
	}
	return p.deploy(dir)
}

// folderPlan plans a model's folder of the name of another, with those files of
// it; the receipt is for Write alone.
func folderPlan(folder string, files []string) (plan, error) {
	p := plan{model: filepath.Base(folder)}
	for _, file := range files {
		if file == configName || file == receiptName {
			continue
		}
		found, err := inside.Below(folder, filepath.FromSlash(file))
		if err := p.add(found, err, filepath.Join(folder, file), filepath.FromSlash(file)); err != nil {
			return plan{}, err
		}
	}
	var err error
	if p.config, err = os.ReadFile(filepath.Join(folder, configName)); err != nil {
		return plan{}, fmt.Errorf("cannot read configuration %q: %w", filepath.Join(folder, configName), durable.Cause(err))
	}
	return p, nil
}

// Wrote reports whether dir/<model> is a folder that Write or Copy made, and
// that nobody changed since.
func Wrote(dir, model string) bool {
	target := filepath.Join(dir, model)
	_, err := os.Lstat(target)
	return err == nil && checkReplaceable(target) == nil
}

// deploy puts the plan's folder into the repository dir.
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

// Remove takes away dir/<model>, if Write made it and nobody changed it since; a
// folder that is not there is no error. The folder leaves its place in one
// renaming: whatever happens then, no part of it is left there.
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

// writeReceipt notes what is in a complete folder.
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

// changed names a file of the folder that is not as the receipt has it: changed,
// added, gone, or not to be read. It is "" when there is none. files are all that
// the folder has.
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

// checkReplaceable refuses a folder with anything in it that Write did not put
// there.
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

// written lists the files of a folder that Write made and nobody changed since,
// the receipt among them; foreign says why it is no such folder.
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
		return nil, receiptName + " in it, of an earlier tuner, does not tell what its files held", nil
	}
	if files, err = listFiles(dir); err != nil {
		return nil, "", err
	}
	if changed := r.changed(dir, files); changed != "" {
		return nil, changed + " in it was changed since tuner wrote it", nil
	}
	return files, "", nil
}

// CopyDeployed puts the model's folder source, which Write made, into the repository dir
// under its own name, and returns how many bytes that are. A folder that anybody
// changed since is refused, and so is a target that exists. With share the model's
// files are hard links to those of source where the file system allows it. It is for
// repositories in the making: after an error a part of the folder is there.
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
		put = place
	}
	return size, p.write(filepath.Join(dir, p.model), put)
}

// listFiles names everything in dir that is not a folder, sorted.
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
