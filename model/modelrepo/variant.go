package modelrepo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tuner/internal/checksum"
	"tuner/internal/durable"
	"tuner/internal/inside"
	"tuner/model/modelconfig"
)

// Source is a model outside of the repositories that this package writes.
type Source struct {
	// Path is the ONNX file; "" for a model without one, whose files are all those of Folder.
	Path string
	// Data are its external data files, in or below its folder. They keep their relative place.
	Data []string
	// Digest identifies the content of Path and Data.
	Digest string
	// Folder has the other files that the configuration names: labels and warm-up data. "" if it
	// names none.
	Folder string
}

// Variant is a repository with one model and one configuration.
type Variant struct {
	Dir    string // the repository; the model is in Dir/Model
	Model  string
	Digest string // digest of model and configuration
}

// Build makes the variant of model m with configuration c at
// root/<digest>/<model>/{config.pbtxt,1/…}, unless it exists. The model file is a hard link to m's
// if the file system allows it. Therefore m must not be written while the variant is in use. The
// variant is written completely or not at all. Several processes may build it at once.
func Build(root string, m Source, c *modelconfig.Config) (Variant, error) {
	p, err := newPlan(m, c)
	if err != nil {
		return Variant{}, err
	}
	v := Variant{Dir: filepath.Join(root, p.digest), Model: c.GetName(), Digest: p.digest}
	isThere, err := makeOnce(root, v.Dir, p)
	if !isThere {
		return Variant{}, err
	}
	return v, err
}

// makeOnce makes dir, a folder of root, with the models of the plans, unless it exists. It compares
// the models there with their plans. isThere is false if dir could not be made.
func makeOnce(root, dir string, plans ...plan) (isThere bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		return true, checkAll(dir, plans)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return false, fmt.Errorf("cannot create variant folder %q: %w", root, durable.Cause(err))
	}
	err = durable.InFolder(root, func(temp string) error {
		for _, p := range plans {
			if err := p.write(filepath.Join(temp, p.model), linkOrCopy); err != nil {
				return err
			}
		}
		if err := os.Rename(temp, dir); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("cannot create variant folder %q: %w", dir, durable.Cause(err))
		}
		return nil // if it exists, another process was faster
	})
	if err != nil {
		return false, err
	}
	return true, checkAll(dir, plans)
}

// checkAll compares the models' folders of a repository with their plans.
func checkAll(dir string, plans []plan) error {
	for _, p := range plans {
		if err := p.check(filepath.Join(dir, p.model)); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns the digest of the variant that Build would make.
func Digest(m Source, c *modelconfig.Config) (string, error) {
	p, err := newPlan(m, c)
	return p.digest, err
}

// digest identifies a model with its configuration and the files that the configuration names, in
// 128 bits.
func digest(m Source, configText []byte, extra []entry) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "variant 1\n%q\n%q\n", m.Digest, configText)
	for _, e := range extra {
		sum, err := contentSum(e.from)
		if err != nil {
			return "", fmt.Errorf("cannot read file %q, which the configuration names: %w", e.from.Path(), durable.Cause(err))
		}
		fmt.Fprintf(h, "%q\n%s\n", e.to, sum)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func contentSum(f inside.File) (string, error) {
	opened, err := f.Open()
	if err != nil {
		return "", err
	}
	defer opened.Close()
	return checksum.Of(opened)
}
