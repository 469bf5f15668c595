package posterior

import (
	"slices"
	"sync"

	"tuner/measure"
)

// lastJoints caches the last joint distribution of each metric. A reader of a report may ask for a
// decision under a hundred limits. All are about the same cells, and the distributions do not
// depend on limits.
//
// It also caches the answers about single cells: a campaign's finals ask about the cells of the decision, and about
// some more.
type lastJoints struct {
	mutex   sync.Mutex
	last    map[measure.Metric]lastJoint
	answers map[answerKey]*answered
}

type answerKey struct {
	process *process
	cell    CellKey
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

// answer returns the answer of a process about a cell at a site. Its prediction may have changed since it was last
// asked about. The caller is the compute function of lastJoints.of, which has the mutex.
func (l *lastJoints) answer(p *process, cell CellKey, s site) *answered {
	key := answerKey{p, cell}
	if known, ok := l.answers[key]; ok && known.site == s {
		return known
	}
	if l.answers == nil {
		l.answers = map[answerKey]*answered{}
	}
	l.answers[key] = p.answer(&s)
	return l.answers[key]
}
