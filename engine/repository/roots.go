package repository

import (
	"maps"
	"os"
	"slices"

	"tuner/engine/fault"
)

// Roots are the repositories of a server. Some models may have other names than their folders. It is
// never changed: With and Without return new ones.
type Roots struct {
	Paths []string
	named map[string]place // by the name
}

// place is a folder of a repository.
type place struct{ root, folder string }

// With returns the repositories and one more, of which some folders hold models of other names. folders
// are by these names. Texts are Triton's.
func (r *Roots) With(root string, folders map[string]string) (*Roots, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, fault.Errorf(fault.InvalidArgument, "failed to register '%s', repository not found", root)
	}
	if slices.Contains(r.Paths, root) {
		return nil, fault.Errorf(fault.AlreadyExists, "model repository '%s' has already been registered", root)
	}
	more := &Roots{Paths: append(slices.Clone(r.Paths), root), named: maps.Clone(r.named)}
	if more.named == nil {
		more.named = map[string]place{}
	}
	for name, folder := range folders {
		if _, taken := r.named[name]; taken {
			return nil, fault.Errorf(fault.AlreadyExists, "failed to register '%s', there is a conflicting mapping for '%s'", name, name)
		}
		if err := CheckName(name); err != nil {
			return nil, fault.Errorf(fault.InvalidArgument, "failed to register '%s': %v", root, err)
		}
		more.named[name] = place{root, folder}
	}
	return more, nil
}

// Without returns the repositories but one.
func (r *Roots) Without(root string) (*Roots, error) {
	if !slices.Contains(r.Paths, root) {
		return nil, fault.Errorf(fault.InvalidArgument, "failed to unregister '%s', repository not found", root)
	}
	less := &Roots{named: maps.Clone(r.named)}
	for _, path := range r.Paths {
		if path != root {
			less.Paths = append(less.Paths, path)
		}
	}
	maps.DeleteFunc(less.named, func(_ string, p place) bool { return p.root == root })
	return less, nil
}

// Has reports whether a repository has a model of that name.
func (r *Roots) Has(root, name string) bool {
	if p, ok := r.named[name]; ok {
		return p.root == root && Has(root, p.folder)
	}
	return r.name(root, name) == name && Has(root, name)
}

// name returns the name of the model in a folder.
func (r *Roots) name(root, folder string) string {
	for name, p := range r.named {
		if p == (place{root, folder}) {
			return name
		}
	}
	return folder
}

// Find finds a model in those repositories.
func (r *Roots) Find(among []string, name string) (*Model, error) {
	p, ok := r.named[name]
	if !ok {
		among = slices.DeleteFunc(slices.Clone(among), func(root string) bool { return !r.Has(root, name) })
		return Find(among, name)
	}
	src, err := Find([]string{p.root}, p.folder)
	if err != nil {
		return nil, err
	}
	src.Name, src.IsRenamed = name, p.folder != name
	return src, nil
}

// List lists the models of a repository, in the order of their folders.
func (r *Roots) List(root string) ([]string, error) {
	names, err := List([]string{root})
	for i, folder := range names {
		names[i] = r.name(root, folder)
	}
	return names, err
}
