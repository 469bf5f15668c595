package posterior

import (
	"slices"
	"sync"

	"tuner/measure"
)

// lastJoints caches the last joint distribution of each metric. A reader of a report may ask for a
// decision under a hundred limits. All are about the same cells, and the distributions do not
// depend on limits.
type lastJoints struct {
	mutex sync.Mutex
	last  map[measure.Metric]lastJoint
}

type lastJoint struct {
	cells []CellKey
	joint Joint
}

// of returns the joint distribution of some cells. If it is not the last one, compute makes it.
func (l *lastJoints) of(cells []Cell, metric measure.Metric, compute func() Joint) Joint {
	keys := make([]CellKey, len(cells))
	for i, c := range cells {
		keys[i] = c.Key()
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if last, ok := l.last[metric]; ok && slices.Equal(last.cells, keys) {
		return last.joint.clone()
	}
	j := compute()
	if l.last == nil {
		l.last = map[measure.Metric]lastJoint{}
	}
	l.last[metric] = lastJoint{keys, j.clone()}
	return j
}

func (j Joint) clone() Joint { return Joint{slices.Clone(j.Means), slices.Clone(j.covariances)} }
