package modelrepo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tuner/internal/durable"
)

// Group is a repository with several models, each with one configuration.
type Group struct {
	Dir    string   // the repository; each model is in a folder of its name
	Models []string // in the order of the variants
	Digest string   // digest of the variants
}

// Together makes a repository with the models of variants at root/<digest>/<model>/…, unless it
// exists. The files are hard links to the variants' if the file system allows it, so variants must
// stay unchanged while the group is in use. As with Build, the repository is written completely or
// not at all, and several processes may make it at once. The order of the variants does not matter.
func Together(root string, variants ...Variant) (Group, error) {
	g, plans, err := planGroup(root, variants)
	if err != nil {
		return Group{}, err
	}
	isThere, err := makeOnce(root, g.Dir, plans...)
	if !isThere {
		return Group{}, err
	}
	return g, err
}

// planGroup makes all checks that are possible before writing.
func planGroup(root string, variants []Variant) (Group, []plan, error) {
	if len(variants) == 0 {
		return Group{}, nil, errors.New("cannot make a model repository of no models")
	}
	var g Group
	var plans []plan
	digests := map[string]string{} // by model
	for _, v := range variants {
		if _, isTwice := digests[v.Model]; isTwice {
			return Group{}, nil, fmt.Errorf("cannot serve two models under the name %q", v.Model)
		}
		p, err := planOf(v)
		if err != nil {
			return Group{}, nil, err
		}
		plans = append(plans, p)
		g.Models = append(g.Models, v.Model)
		digests[v.Model] = v.Digest
	}
	h := sha256.New()
	fmt.Fprintf(h, "group 1\n%q\n", digests) // maps are printed in the order of their keys
	g.Digest = hex.EncodeToString(h.Sum(nil)[:16])
	g.Dir = filepath.Join(root, g.Digest)
	return g, plans, nil
}

// planOf plans the model's folder of a variant.
func planOf(v Variant) (plan, error) {
	from := filepath.Join(v.Dir, v.Model)
	files, err := listFiles(from)
	if err != nil {
		return plan{}, fmt.Errorf("cannot read folder %q: %w", from, durable.Cause(err))
	}
	return folderPlan(from, files)
}

// Exchange replaces the model of a variant in dir, the repository of a running server, or adds it.
// The other models of dir stay as they are, so the server has to load this one alone again. It sees
// the whole old folder or the whole new one. The files are hard links as in Together.
//
// dir must be the caller's own, for this server alone. It must not be that of a Group or a Variant,
// whose names stand for their content.
func Exchange(dir string, v Variant) error {
	p, err := planOf(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create model repository %q: %w", dir, durable.Cause(err))
	}
	return durable.InFolder(dir, func(temp string) error {
		fresh := filepath.Join(temp, "new")
		if err := p.write(fresh, linkOrCopy); err != nil {
			return err
		}
		return durable.Swap(fresh, filepath.Join(dir, p.model), filepath.Join(temp, "old"))
	})
}
