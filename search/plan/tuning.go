package plan

import (
	"time"

	"tuner/search"
)

// Tuning are the numbers by which a campaign is framed. Each has its unit, where it comes from, and what
// happens when it is doubled.
//
// Users set none of them: what is theirs to say is in search.Settings.
type Tuning struct {
	// Shares of the budget.

	// Reserved is the share that the search leaves to the finals, at least. Judged, not measured. Doubled,
	// less time finds more candidates that fewer trials confirm.
	Reserved float64
	// ReservedMost is the share that the search leaves at most, where a block of finals costs more.
	// Beyond a half there is no time to find anything. Judged, not measured.
	ReservedMost float64
	// CurveShare is the share that is kept for the load curves. Three curves of eight loads take about
	// 40 s. Doubled, the charts gain loads that hardly anybody reads.
	CurveShare float64

	// Which trials the finals have.

	// WorthIt is the relative gain that a further final trial must be expected to bring. Doubled, budgets
	// stay unused; halved, no answer changes by what a user would see.
	WorthIt float64
	// Considered is how many configurations have the loads beside theirs considered, and how many cells
	// that were only predicted. Each costs a simulation: doubled, a decision takes longer.
	Considered int
	// Besides are the factors of the loads that are considered beside a configuration's best. The near
	// ones matter where a load is a little too high, the far ones where the search saw few loads. On a
	// coarse axis several of them are one level. Judged, not measured.
	Besides []float64
	// Precise is half the relative interval of the gain over the default that is narrow enough for a
	// reader. Doubled, finals of the default end earlier.
	Precise float64
	// BaseLaunches is how many fresh launches the default gets for that. A seventh would make its part of
	// the interval narrower by 7 %.
	BaseLaunches int
	// Turns is how many windows each seat of a block has on its launch. An even number treats all seats
	// alike. A block of three takes about 20 s, of which 9 s are windows. Doubled, the windows say more of
	// each launch and less of what launches differ by.
	Turns int
	// Longer is the factor on the length of windows in the finals, beside those of the search.
	Longer time.Duration
	// WindowsPerLaunch is the time of the windows by that of a launch and its warm-up. With 1.5, three
	// fifths of a final trial are windows (Kalibera and Jones, 2013: repeat most where the costs are
	// least).
	WindowsPerLaunch float64
	// MostFinals is how many final trials there are without a budget, so that such a campaign ends; what
	// they lead to is confirmed by as many again. Judged, not measured.
	MostFinals int
	// CurveReach is the charts' highest load as a multiple of the best one.
	CurveReach float64

	// What trials are expected to cost.

	// Fill is how long a turn takes beside its window while no block was measured: the queue fills, and
	// processes are stopped (docs/design/gate.md). The first block replaces it.
	Fill time.Duration
	// WiderWeight is how much the mean launch of the wider kind counts, in launches. Launches of a kind
	// differ by much less than kinds do. Doubled, the first launches of a provider that compiles are
	// underestimated for longer.
	WiderWeight float64
	// TrialsPerCandidate is what a configuration takes while no figure is known. It is for progress alone.
	TrialsPerCandidate float64
}

// DefaultTuning is what campaigns use.
func DefaultTuning() Tuning {
	return Tuning{
		Reserved: 0.20, ReservedMost: 0.50, CurveShare: 0.08,
		WorthIt: 0.001, Considered: 4, Besides: []float64{1 / 2.0, 1 / 1.3, 1 / 1.1, 1.1, 1.3, 2.0},
		Precise: 0.02, BaseLaunches: 6, Turns: 6, Longer: 2, WindowsPerLaunch: 1.5, MostFinals: 10, CurveReach: 4,
		Fill: 300 * time.Millisecond, WiderWeight: 0.25, TrialsPerCandidate: 2.5,
	}
}

// mostFinalists is how many configurations go to another server beside the default: a block of them. Each
// costs two launches there.
const mostFinalists = search.MostSeats
