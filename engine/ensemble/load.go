package ensemble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// repository loads and unloads single models for load. Its methods are safe for concurrent use.
type repository interface {
	// Steps lists the models of an ensemble. It is empty for any other model, and for one without a
	// configuration that can be read.
	Steps(name string) []string
	// Missing lists the names in an ensemble that stand for no model, or for several.
	Missing(name string) []string
	// Load loads a model whose own models have been loaded, or have failed before and still serve.
	Load(ctx context.Context, name string) error
	// Refuse takes an ensemble out of service that cannot be loaded.
	Refuse(name string, why error) error
	// Serves reports whether any version of a model is ready.
	Serves(name string) bool
}

// load loads models, and before them all that they consist of. At most limit are loaded at the same
// time. It returns the errors by name, those of models in ensembles too. Texts are Triton's.
func load(ctx context.Context, names []string, limit int, r repository) map[string]error {
	levels, circular := Order(names, r.Steps)
	failed := map[string]error{}
	for name, why := range circular {
		failed[name] = r.Refuse(name, why)
	}
	var mu sync.Mutex
	for _, level := range levels {
		var group errgroup.Group
		group.SetLimit(max(1, limit))
		for _, name := range level {
			group.Go(func() error {
				mu.Lock()
				why := refusal(name, r, failed)
				mu.Unlock()
				var err error
				if why != nil {
					err = r.Refuse(name, why)
				} else {
					err = r.Load(ctx, name)
				}
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed[name] = err
				}
				return nil
			})
		}
		_ = group.Wait() // the errors are in failed
	}
	maps.DeleteFunc(failed, func(_ string, err error) bool { return err == nil })
	return failed
}

// refusal returns the reason why an ensemble cannot be loaded that lies with its models.
func refusal(name string, r repository, failed map[string]error) error {
	steps := slices.Compact(slices.Sorted(slices.Values(r.Steps(name))))
	if missing := r.Missing(name); len(missing) > 0 {
		return fmt.Errorf("ensemble %s contains models that are not available or ambiguous: %s", name, strings.Join(missing, ", "))
	}
	for _, step := range steps {
		var refused *Refused
		switch err := failed[step]; {
		case errors.As(err, &refused):
			return fmt.Errorf("ensemble '%s' depends on '%s' which is not valid. Model '%s' failed with error: %w", name, step, step, refused.Why)
		case err != nil && !r.Serves(step):
			return fmt.Errorf("ensemble '%s' depends on '%s' which has no loaded version. Model '%s' loading failed with error: %s", name, step, step, reason(err, step))
		}
	}
	return nil
}

// Refused is the error of an ensemble that was not loaded, because of its models.
type Refused struct{ Why error }

func (e *Refused) Error() string { return e.Why.Error() }

// reason returns the text of a failed load without its beginning and its end.
func reason(err error, name string) string {
	text := strings.TrimPrefix(err.Error(), fmt.Sprintf("load failed for model '%s': ", name))
	return strings.TrimSuffix(text, "\n")
}
