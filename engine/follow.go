package engine

import (
	"context"
	"errors"
	"io/fs"

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
			if !s.roots.Load().Has(root, name) {
				continue
			}
			text, err := repository.Fingerprint(root, name)
			switch {
			case err == nil:
				out[id] = text
			case !errors.Is(err, fs.ErrNotExist): // else it was removed meanwhile
				return nil, err
			}
		}
	}
	return out, nil
}

// Refresh loads a model by its identity, in any mode. It does nothing if the model serves and its
// files have not changed.
func (s *Server) Refresh(ctx context.Context, id string) error { return s.load(ctx, id, Override{}) }

// Reconfigure loads a model again with another configuration, as JSON, in any mode. The model serves
// until its successor is ready, and answers all requests that it has accepted. A change of the batching
// alone keeps the sessions.
func (s *Server) Reconfigure(ctx context.Context, name, config string) error {
	o := Override{Config: config}
	var failed []error
	for _, id := range s.identities(name, o) {
		failed = append(failed, s.load(ctx, id, o))
	}
	return errors.Join(failed...)
}

// Arrived returns the number of requests that a model has got since it was last unloaded, and whether it
// serves. Those that execute now are not in it.
func (s *Server) Arrived(name string) (n uint64, serves bool) {
	for _, m := range s.Metrics() {
		if m.Statistics.Name == name {
			i := m.Statistics.InferenceStats
			n += i.Success.Count + i.Fail.Count + uint64(m.Pending)
			serves = true
		}
	}
	return n, serves
}
