package engine

import (
	"fmt"
	"path/filepath"

	"tuner/engine/fault"
	"tuner/engine/state"
	"tuner/model/modelconfig"
)

// maxSlots bounds the sequences that all instances of a model serve at the same time.
const maxSlots = 1 << 20

// newAdded prepares what the server adds to the requests of a model. nil: its requests form no
// sequences.
func (s *Server) newAdded(src *source, c *modelconfig.Config) (*state.Spec, error) {
	if c.GetSequenceBatching() == nil {
		return nil, nil
	}
	slots := modelconfig.SequenceSlots(c) * max(1, len(s.instances(c)))
	if slots > maxSlots {
		return nil, fault.Errorf(fault.InvalidArgument, "model '%s' has %d slots for sequences in all instances; this engine has %d at most", src.Name, slots, maxSlots)
	}
	added, err := state.New(c, slots, func(name string, limit int64) ([]byte, error) {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("initial state '%s' leaves the model's folder initial_state", name)
		}
		return src.ReadFile(filepath.Join(src.Dir, "initial_state", name), limit)
	})
	if err != nil {
		return nil, invalid(err)
	}
	return added, nil
}
