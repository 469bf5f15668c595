package engine

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/repository"
)

// identity returns by what the server knows a model of a repository: its name or, with namespaces,
// REPOSITORY::NAME, as Triton writes it in messages (ModelIdentifier::str).
func (s *Server) identity(root, name string) string {
	if s.options.Namespacing {
		return root + "::" + name
	}
	return name
}

// locate returns the repositories in which a model of that identity may be, and its name. With
// namespaces, a model that came with its load request is in none.
func (s *Server) locate(id string) (roots []string, name string) {
	if !s.options.Namespacing {
		return s.repositories(), id
	}
	for i, root := range s.repositories() {
		if name, ok := strings.CutPrefix(id, s.identity(root, "")); ok {
			return s.repositories()[i : i+1], name
		}
	}
	return nil, id
}

// namespace returns the repository in an identity. "": the identity is a name alone.
func (s *Server) namespace(id string) string {
	if roots, name := s.locate(id); name != id {
		return roots[0]
	}
	return ""
}

// identities returns what a load request for a name loads: with namespaces the models of that name in
// all repositories.
func (s *Server) identities(name string, o Override) []string {
	var ids []string
	if s.options.Namespacing && len(o.Files) == 0 && repository.CheckName(name) == nil {
		for _, root := range s.repositories() {
			if id := s.identity(root, name); s.hasFolder(id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return []string{name}
	}
	return ids
}

// known returns the identities of that name which have an entry.
func (s *Server) known(name string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.knownLocked(name)
}

// knownLocked is known for a caller that holds Server.mu.
func (s *Server) knownLocked(name string) (ids []string) {
	if s.entries[name] != nil {
		ids = append(ids, name)
	}
	if !s.options.Namespacing {
		return ids
	}
	for _, root := range s.repositories() {
		if id := s.identity(root, name); s.entries[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// resolve finds the entry of the model that a request names. With namespaces, a name is refused if
// models of several repositories are loaded under it: no request can say which. The caller holds
// Server.mu.
func (s *Server) resolve(name string) (id string, e *entry, err error) {
	if !s.options.Namespacing {
		if e = s.entries[name]; e == nil {
			err = fault.Errorf(fault.NotFound, "Request for unknown model: '%s' is not found", name)
		}
		return name, e, err
	}
	known := s.knownLocked(name)
	ids := slices.DeleteFunc(slices.Clone(known), func(id string) bool { return s.entries[id].isLeaving() })
	switch len(ids) {
	case 0: // Triton has other texts and classes than without namespaces
		if len(known) > 0 {
			return name, nil, fault.Errorf(fault.NotFound, "Identifier of model '%s' is not found in global map", name)
		}
		return name, nil, fault.Errorf(fault.InvalidArgument, "Request for unknown model: '%s' is not found", name)
	case 1:
		return ids[0], s.entries[ids[0]], nil
	}
	return name, nil, fault.Errorf(fault.InvalidArgument,
		"There are %d identifiers of model '%s' in global map, model namespace must be provided to resolve ambiguity.", len(ids), name)
}

// isLeaving reports whether all versions were unloaded on request, or are being freed.
func (e *entry) isLeaving() bool {
	if e.dropped {
		return false
	}
	for _, v := range e.versions {
		if v.state != api.StateUnloading && v.reason != unloadedReason {
			return false
		}
	}
	return true
}

// candidates returns the identities that a step of an ensemble may mean by a name: as in Triton, a model
// in the ensemble's own repository, else the only one of that name.
func (s *Server) candidates(ensemble, model string) (own string, others []string) {
	if !s.options.Namespacing {
		return model, nil
	}
	own = s.identity(s.namespace(ensemble), model)
	if s.namespace(ensemble) == "" {
		own = model
	}
	others = append(others, model)
	for _, root := range s.repositories() {
		others = append(others, s.identity(root, model))
	}
	return own, slices.DeleteFunc(others, func(id string) bool { return id == own })
}

// pick returns what a step means, of those candidates that are there. "": none, or one of several.
func pick(own string, others []string, isThere func(id string) bool) string {
	if isThere(own) {
		return own
	}
	others = slices.DeleteFunc(slices.Clone(others), func(id string) bool { return !isThere(id) })
	if len(others) != 1 {
		return ""
	}
	return others[0]
}

// list returns the identities of all models in the repositories, in order. Without namespaces a
// model in several of them is listed as many times. A folder is left out whose name no answer can have.
func (s *Server) list() ([]string, error) {
	var all []string
	for _, root := range s.repositories() {
		names, err := s.roots.Load().List(root)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			id := s.identity(root, name)
			if utf8.ValidString(name) {
				all = append(all, id)
			} else if _, said := s.unreadable.LoadOrStore(id, true); !said {
				s.options.Log.Warn("folder ignored, since its name is not UTF-8", "repository", root, "folder", name)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// invalidAll joins the errors of models that one request loaded.
func invalidAll(failed []error) error {
	if err := errors.Join(failed...); err != nil {
		return fault.Errorf(fault.InvalidArgument, "%s\n", strings.TrimSpace(err.Error()))
	}
	return nil
}
