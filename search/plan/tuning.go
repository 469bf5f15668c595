package plan

import (
	"time"

	"tuner/search"
)

// Tuning holds the parameters of a campaign's frame. Each has its unit, its source, and the effect
// of doubling it.
//
// Users set none of them. The parameters of users are in search.Settings.
type Tuning struct {
	// Shares of the budget.

	// Reserved is the least share that the search leaves to the finals. Judged, not measured.
	// Doubled, less time finds more candidates that fewer trials confirm.
	Reserved float64
	// ReservedMost is the largest share that the search leaves if a block of finals costs more.
	// Above a half there is too little time to search. Judged, not measured.
	ReservedMost float64
	// LoadCurveShare is the share for the load curves. Three curves of eight loads take about 40 s.
	// Doubled, the charts gain loads that hardly anybody reads.
	LoadCurveShare float64

	// The choice of the finals' trials.

	// WorthIt is the least expected relative gain of a further final trial. Doubled, budgets stay
	// unused; halved, no answer changes visibly.
	WorthIt float64
	// Considered is the number of configurations with neighbouring loads in the contest, and the
	// number of predicted cells. Each costs a simulation: doubled, a decision takes longer.
	Considered int
	// Besides are the factors of the loads that are considered beside a configuration's best. The
	// near ones matter if a load is slightly too high, the far ones if the search measured few
	// loads. On a coarse axis several of them are one level. Judged, not measured.
	Besides []float64
	// Precise is half the relative interval of the gain over the default that is narrow enough for
	// a reader. Doubled, finals of the default end earlier.
	Precise float64
	// BaseLaunches is the largest number of the default's fresh launches for that. A seventh would
	// narrow its part of the interval by 7 %.
	BaseLaunches int
	// Turns is the number of windows of each seat of a block on its launch. An even number treats
	// all seats alike. A block of three takes about 20 s, including 9 s of windows. Doubled, the
	// windows show more about each launch and less about the variation between launches.
	Turns int
	// Longer is the factor of the finals' window length over the search's, in finals without turns.
	// Doubled, a launch shows more and there are fewer launches.
	Longer time.Duration
	// WindowsPerLaunch is the ratio of the time of the windows to that of a launch with its
	// warm-up. With 1.5, three fifths of a final trial are windows (Kalibera and Jones, 2013:
	// repeat most where the costs are least).
	WindowsPerLaunch float64
	// MostFinals is the largest number of final trials without a budget, so that such a campaign
	// ends, and the least such number under a budget of trials. The same number again may confirm
	// their answer. Judged, not measured.
	MostFinals int
	// LoadCurveReach is the charts' highest load as a multiple of the best one. Only charts depend on it.
	// Doubled, they have one level more of the usual axis.
	LoadCurveReach float64

	// The expected costs of trials.

	// Fill is the time of a turn beside its window until a block was measured: the queue fills, and
	// processes are stopped (docs/design/gate.md). The first block replaces it.
	Fill time.Duration
}

// LoadCurveStep is the least ratio of neighbouring scales of a curve, for scales have finer levels. Two
// that are nearer lie within the interval that is narrow enough for a reader. With 1.04 the charts show a
// third more and less than the best one.
func (t Tuning) LoadCurveStep() float64 { return 1 + 2*t.Precise }

// DefaultTuning returns the parameters of campaigns.
func DefaultTuning() Tuning {
	return Tuning{
		Reserved: 0.20, ReservedMost: 0.50, LoadCurveShare: 0.08,
		WorthIt: 0.001, Considered: 4, Besides: []float64{1 / 2.0, 1 / 1.3, 1 / 1.1, 1.1, 1.3, 2.0},
		Precise: 0.02, BaseLaunches: 6, Turns: 6, Longer: 2, WindowsPerLaunch: 1.5, MostFinals: 10, LoadCurveReach: 4,
		Fill: 300 * time.Millisecond,
	}
}

// mostFinalists is the largest number of configurations that another server measures beside the
// default: a block of them. Each costs two launches there.
const mostFinalists = search.MostSeats
