package engine

import (
	"context"

	"tuner/engine/repository"
)

// Scan returns the models of the repositories by identity, each with a text that changes when its
// files do. Without namespaces a model in several repositories is left out, since it cannot be
// served.
func (s *Server) Scan(context.Context) (map[string]string, error) {
	ids, err := s.list()
	if err != nil {
		return nil, err
	}
	out, twice := map[string]string{}, repeated(ids)
	for _, id := range ids {
		if twice[id] {
			continue
		}
		roots, name := s.locate(id)
		for _, root := range roots {
			if !repository.Has(root, name) {
				continue
			}
			if out[id], err = repository.Fingerprint(root, name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Refresh loads a model by its identity, in any mode. It does nothing if the model serves and its
// files have not changed.
func (s *Server) Refresh(ctx context.Context, id string) error { return s.load(ctx, id, Override{}) }
