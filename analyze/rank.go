package analyze

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"tuner/measure"
	"tuner/search"
	"tuner/stats"
)

// tieMargin is the factor between two objectives, on log scale (1 %), up to which two configurations may be called tied.
var tieMargin = math.Log(1.01)

// yardstick is what decides between configurations that are ranked together, beside their figures.
type yardstick struct {
	base   Setup   // the default's, which need not be among them
	cores  int     // usable ones of the machine; 0 unknown
	weight float64 // of the objective, see weightOf: a score grows by so much more than the logarithm of a gain
}

func newYardstick(configs []Config, goal search.Goal, cores int) yardstick {
	return yardstick{Result{Configs: configs}.Default().Setup, cores, weightOf(goal)}
}

// weightOf is the sum of the objective's weights. A difference of scores is divided by it, so that neither a gain nor a tie depends on their scale.
func weightOf(goal search.Goal) float64 {
	sum := 0.0
	for _, t := range goal.Objective.Terms {
		sum += t.Weight
	}
	return sum
}

// rank puts configurations into their order and names ties. The order is total, and does not depend on the order in which
// they come: satisfying before failing before unmeasured; satisfying ones by score, failing ones by how much they miss.
//
// Overlap of intervals is not transitive, so ties are formed from the top: the best configuration that is in no group yet
// and all that are tied with it are one group. Within a group other merits decide, see byCost.
//
// The first is one that was confirmed wherever the figures allow: the best of many single windows is partly luck, and the
// finals have just taken that away from their members alone. So a configuration that only the search saw comes first only
// when it is better than the best confirmed one beyond both intervals. What was measured for the curves alone never comes first.
// What failed on fresh launches comes behind all others that satisfy the constraints, whatever its windows showed.
//
// believed is the key of the candidate that the strategy would choose, by all that it was told; "" where it believes nothing. It comes
// first where the figures do not contradict that: a few launches alone know less than all windows of the search, and single windows of one that
// nothing has confirmed less still.
func rank(configs []Config, by yardstick, believed string) []Config {
	ranked := slices.Clone(configs)
	slices.SortFunc(ranked, byMerit)
	ranked = believedFirst(searchedFirst(ranked, by), believed)
	for begin := 0; begin < len(ranked); {
		end := begin + 1
		for end < len(ranked) && by.areTied(ranked[begin], ranked[end]) {
			end++
		}
		group := ranked[begin:end]
		slices.SortFunc(group, func(a, b Config) int { return byCost(a, b, by.cores, by.base) })
		nameTies(group)
		begin = end
	}
	for i := range ranked {
		if ranked[i].Best != nil {
			ranked[i].Rank = i + 1
		}
	}
	return ranked
}

// searchedFirst is confirmedFirst without what was measured for the curves alone; this takes its place behind those that are tied
// with the first. The configurations are ordered by merit.
func searchedFirst(ranked []Config, by yardstick) []Config {
	isCurve := func(c Config) bool { return c.CurveOnly }
	searched := confirmedFirst(slices.DeleteFunc(slices.Clone(ranked), isCurve), by)
	switch len(searched) {
	case 0: // of the search's server, where the finals ran on another one
		return ranked
	case len(ranked):
		return searched
	}
	curves := slices.DeleteFunc(slices.Clone(ranked), func(c Config) bool { return !c.CurveOnly })
	end := 1
	for end < len(searched) && by.areTied(searched[0], searched[end]) {
		end++
	}
	rest := slices.Concat(searched[end:], curves)
	slices.SortFunc(rest, byMerit)
	return append(searched[:end:end], rest...)
}

// confirmedFirst puts the best confirmed configuration, and those behind it that are tied with it, before the ones that only
// the search saw and that are not better beyond both intervals. The default counts as confirmed: luck did not pick it. The
// configurations are ordered by merit.
func confirmedFirst(ranked []Config, by yardstick) []Config {
	first := slices.IndexFunc(ranked, func(c Config) bool { return c.Satisfies() && isConfirmed(c) })
	if first <= 0 || ranked[0].Score.Lo > ranked[first].Score.Hi {
		return ranked
	}
	end := first + 1
	for end < len(ranked) && by.areTied(ranked[first], ranked[end]) {
		end++
	}
	return slices.Concat(ranked[first:end], ranked[:first], ranked[end:])
}

// isConfirmed reports whether a configuration that was measured was confirmed. The default counts as confirmed, unless its finals failed.
func isConfirmed(c Config) bool {
	return c.Best.Confirmed || c.Candidate.IsDefault() && !c.FailedFinals
}

// believedFirst puts the believed candidate first where its figures are within the constraints, and not below those of the first beyond both
// intervals; one that was not confirmed only before others that were not, and one that failed on fresh launches only before its like.
func believedFirst(ranked []Config, believed string) []Config {
	i := slices.IndexFunc(ranked, func(c Config) bool { return c.Candidate.Key() == believed })
	switch {
	case i <= 0 || !ranked[i].Satisfies():
		return ranked
	case isConfirmed(ranked[0]) && !ranked[i].Best.Confirmed || ranked[i].FailedFinals && !ranked[0].FailedFinals:
		return ranked
	case ranked[0].Score.Lo > ranked[i].Score.Hi:
		return ranked
	}
	return slices.Concat(ranked[i:i+1], ranked[:i], ranked[i+1:])
}

// byMerit orders by constraints, by whether they failed on fresh launches, and by score. Equal ones are ordered by name, to make the order total.
func byMerit(a, b Config) int {
	if order := -compareBool(a.Best != nil, b.Best != nil); order != 0 || a.Best == nil {
		return cmp.Or(order, byName(a, b))
	}
	return cmp.Or(
		cmp.Compare(a.Best.Violation(), b.Best.Violation()),
		compareBool(a.FailedFinals, b.FailedFinals),
		-cmp.Compare(a.Score.Value, b.Score.Value),
		byName(a, b),
	)
}

// areTied reports whether two satisfying configurations cannot be told apart.
func (by yardstick) areTied(a, b Config) bool {
	if !a.Satisfies() || !b.Satisfies() || a.FailedFinals != b.FailedFinals {
		return false
	}
	x, y := a.Score, b.Score
	return math.Abs(x.Value-y.Value) <= tieMargin*by.weight && x.Lo <= y.Hi && y.Lo <= x.Hi
}

// byCost orders tied configurations: those for the curves alone last, confirmed first, then lower memory, lower p99, fewer
// threads, closer to the default.
func byCost(a, b Config, cores int, base Setup) int {
	return cmp.Or(
		compareBool(a.CurveOnly, b.CurveOnly),
		-compareBool(a.Best.Confirmed, b.Best.Confirmed),
		compareKnown(a.Best.Values, b.Best.Values, measure.Memory),
		compareKnown(a.Best.Values, b.Best.Values, measure.LatencyP99),
		cmp.Compare(a.Setup.Threads(cores), b.Setup.Threads(cores)),
		cmp.Compare(a.Setup.Differences(base), b.Setup.Differences(base)),
		byName(a, b),
	)
}

// compareKnown orders by a metric, lower first, and unknown values last.
func compareKnown(a, b map[measure.Metric]measure.Estimate, metric measure.Metric) int {
	x, knownX := a[metric]
	y, knownY := b[metric]
	return cmp.Or(-compareBool(knownX, knownY), cmp.Compare(x.Value, y.Value))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// byName orders by the order of first trial, which the names tell: shorter numbers first.
func byName(a, b Config) int {
	return cmp.Or(
		-compareBool(a.Candidate.IsDefault(), b.Candidate.IsDefault()),
		cmp.Compare(len(a.Name), len(b.Name)),
		cmp.Compare(a.Name, b.Name),
	)
}

// mostTied is how many of a group's names each member has: of ten thousand that are tied, all would take gigabytes, and a hundred half of
// result.json.
const mostTied = 20

// nameTies writes into each configuration of a group the names of the others.
func nameTies(group []Config) {
	var first []string // one more than is named
	for i := range min(len(group), mostTied+1) {
		first = append(first, group[i].Name)
	}
	for i := range group {
		switch {
		case len(group) == 1:
			group[i].TiedWith = nil
		case i < mostTied:
			group[i].TiedWith = slices.Concat(first[:i], first[i+1:])
		default:
			group[i].TiedWith = first[:mostTied:mostTied]
		}
	}
}

// compare fills in the gains over the default, as factors.
func compare(configs []Config, goal search.Goal) []Config {
	base, weights := Result{Configs: configs}.Default(), weightOf(goal)
	compared := slices.Clone(configs)
	for i, c := range compared {
		switch {
		case !c.Satisfies() || !base.Satisfies() || weights == 0:
		case math.IsInf(c.Score.Value, 0) || math.IsInf(base.Score.Value, 0): // too few loads for a mean
		case c.Candidate.IsDefault():
			compared[i].Gain = &measure.Estimate{Value: 1, Lo: 1, Hi: 1}
		default:
			difference, half := scoreDifference(c, base)
			difference, half = difference/weights, half/weights
			compared[i].Gain = &measure.Estimate{
				Value: math.Exp(difference), Lo: math.Exp(difference - half), Hi: math.Exp(difference + half),
			}
		}
	}
	return compared
}

// scoreDifference is by how much one configuration's score is above another's, and half the 95 % interval of that. Where each is ranked by
// one point the launches of these count too.
func scoreDifference(a, b Config) (difference, half float64) {
	half = math.Hypot(a.Score.Hi-a.Score.Value, b.Score.Hi-b.Score.Value)
	if a.Score == a.Best.Score && b.Score == b.Best.Score {
		half = differenceHalf(*a.Best, *b.Best)
	}
	return a.Score.Value - b.Score.Value, half
}

// differenceHalf is half the 95 % interval of the difference of two points' scores: from both scores' own intervals, taken as
// independent, and, for two points that were confirmed on several launches each, at least Student's interval of the two
// means with the pooled spread between launches, which the windows of one launch do not show.
func differenceHalf(a, b Point) float64 {
	within := math.Hypot(a.Score.Hi-a.Score.Value, b.Score.Hi-b.Score.Value)
	n, m := float64(len(a.TrialScores)), float64(len(b.TrialScores))
	if !a.Confirmed || !b.Confirmed || n < 2 || m < 2 {
		return within
	}
	pooled := ((n-1)*stat.Variance(a.TrialScores, nil) + (m-1)*stat.Variance(b.TrialScores, nil)) / (n + m - 2)
	return max(within, stats.TQuantile(0.975, n+m-2)*math.Sqrt(pooled*(1/n+1/m)))
}
