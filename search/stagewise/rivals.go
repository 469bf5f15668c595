package stagewise

import "tuner/search/verdict"

// mostRivals is the number of cells that may turn out to be better, for the verdict.
const mostRivals = 4

// Rivals lists the cells that were not measured and may be better, the most promising first. isOpen means
// that service times are still missing, or that they do not show all of the objective.
func (x *Stagewise) Rivals() (list []verdict.Rival, isOpen bool) {
	if _, more := x.price(); more {
		return nil, true
	}
	axis := x.settings.Space.Load
	for _, o := range x.outlooks() {
		if len(list) == mostRivals || o.worth <= 0 {
			break
		}
		list = append(list, verdict.Rival{Candidate: o.candidate, Load: axis.At(o.level), Score: o.score, Holds: o.holds, IsPool: !o.isOpen})
	}
	return list, len(x.unpredicted()) > 0
}
