package engine

import (
	"tuner/engine/fault"
	"tuner/engine/repository"
)

// repositories returns the paths of all repositories.
func (s *Server) repositories() []string { return s.roots.Load().Paths }

// Register adds a repository, in explicit mode. folders are those of models that have other names, by
// these names. It loads nothing.
func (s *Server) Register(root string, folders map[string]string) error {
	return s.exchange("registration", func(r *repository.Roots) (*repository.Roots, error) { return r.With(root, folders) })
}

// Unregister removes a repository. Models of it that are loaded stay, and cannot be loaded again.
func (s *Server) Unregister(root string) error {
	return s.exchange("unregistration", func(r *repository.Roots) (*repository.Roots, error) { return r.Without(root) })
}

// exchange replaces the repositories by others.
func (s *Server) exchange(what string, by func(*repository.Roots) (*repository.Roots, error)) error {
	switch {
	case !s.options.Explicit: // Triton's text
		return fault.Errorf(fault.Unsupported, "repository %s is not allowed if model control mode is not EXPLICIT", what)
	case s.options.Namespacing || s.options.Remote != nil:
		return fault.Errorf(fault.Unsupported, "repository %s is not supported with --model-namespacing, nor with repositories in a store", what)
	}
	s.register.Lock()
	defer s.register.Unlock()
	roots, err := by(s.roots.Load())
	if err == nil {
		s.roots.Store(roots)
	}
	return err
}
