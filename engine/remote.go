package engine

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"tuner/engine/fault"
)

// Remote brings the folders of Options.Repositories up to date that stand for repositories elsewhere.
// A server in explicit mode asks for it, since only it knows which models are wanted.
type Remote interface {
	// Names makes a folder for each model that is there, and removes those of others. It returns soon,
	// and changes nothing if it cannot look.
	Names(ctx context.Context)
	// Fetch brings the files of a model up to date, and removes them if it is not there. It blocks until
	// that is done or ctx ends.
	Fetch(ctx context.Context, model string) error
}

// listRemote brings the names of models up to date.
func (s *Server) listRemote(ctx context.Context) {
	if s.options.Remote != nil {
		s.options.Remote.Names(ctx)
	}
}

// fetch brings the files of models up to date, and those of the models that they consist of. It
// returns the models that can be loaded, and the errors of the others. Files of a load request need
// none.
func (s *Server) fetch(ctx context.Context, names []string, overrides map[string]Override) (loadable []string, failed map[string]error) {
	if s.options.Remote == nil {
		return names, nil
	}
	failed = map[string]error{}
	known := map[string]bool{}
	l := &loader{Server: s, overrides: overrides}
	for wanted := names; len(wanted) > 0; {
		var mu sync.Mutex
		var group errgroup.Group
		group.SetLimit(max(1, s.options.LoadThreads))
		for _, name := range wanted {
			if known[name] {
				continue
			}
			if known[name] = true; len(overrides[name].Files) > 0 {
				continue
			}
			group.Go(func() error {
				if err := s.options.Remote.Fetch(ctx, name); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed[name] = fault.Errorf(fault.Unavailable, "failed to load '%s', %v", name, err)
				}
				return nil
			})
		}
		_ = group.Wait() // the errors are in failed
		var parts []string
		for _, name := range wanted {
			for _, step := range l.Config(name).GetEnsembleScheduling().GetStep() {
				if part := step.GetModelName(); !known[part] {
					parts = append(parts, part)
				}
			}
		}
		wanted = parts
	}
	for _, name := range names {
		if failed[name] == nil {
			loadable = append(loadable, name)
		}
	}
	return loadable, failed
}
