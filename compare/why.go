package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tuner/measure"
)

// winners says who won in both runs, why that changed, and how far the traffic of several models can grow.
func winners(a, b Run, p Pair) []string {
	return append(whoWon(a, b, p), growths(a, b)...)
}

// growths compares how far the traffic of several models can grow with the winners of two runs.
func growths(a, b Run) []string {
	winA, okA := a.byName(a.Winner)
	winB, okB := b.byName(b.Winner)
	if !okA || !okB || winA.best.Scale <= 0 || winB.best.Scale <= 0 {
		return nil
	}
	text := fmt.Sprintf("The winner keeps the limits at scale %.4g in %s, and at scale %.4g in %s.", winA.best.Scale, a.Name, winB.best.Scale, b.Name)
	if winA.best.Mix != winB.best.Mix {
		text += " The traffic at scale 1 differs."
	}
	return []string{text}
}

func whoWon(a, b Run, p Pair) []string {
	winA, okA := a.byName(a.Winner)
	winB, okB := b.byName(b.Winner)
	switch {
	case !okA && !okB:
		return []string{"Neither run has a winner."}
	case !okA:
		return []string{fmt.Sprintf("%s has no winner; in %s it is %s (%s).", a.Name, b.Name, winB.Name, winB.Description)}
	case !okB:
		return []string{fmt.Sprintf("%s has no winner; in %s it is %s (%s).", b.Name, a.Name, winA.Name, winA.Description)}
	case winA.Key == winB.Key:
		return []string{fmt.Sprintf("The winner is the same: %s (%s).", sameName(winA.Name, winB.Name), winA.Description)}
	}
	list := []string{fmt.Sprintf("The winner changed from %s (%s) in %s to %s (%s) in %s.", winA.Name, winA.Description, a.Name, winB.Name, winB.Description, b.Name)}
	if a.Facts[factGoal] != b.Facts[factGoal] {
		list = append(list, "The runs have different goals.")
	}
	list = append(list, inOther(winB, b, a)...)
	list = append(list, inOther(winA, a, b)...)
	for _, c := range p.Changes {
		if (c.Key == winA.Key || c.Key == winB.Key) && c.Direction != NotShown && slices.Contains(p.Shown, c.Metric) {
			list = append(list, fmt.Sprintf("%s of %s at %s is %s by %.1f %%.", c.Metric, sameName(c.Configuration, c.Other), c.Load, c.Direction, 100*math.Abs(c.Change.Value)))
		}
	}
	if len(list) == 1 {
		list = append(list, "No figure of either is shown to have changed, so the two may be as good as each other.")
	}
	return list
}

// inOther says which figures another run has of a run's winner.
func inOther(winner Configuration, of, other Run) []string {
	there, ok := other.byKey(winner.Key)
	if !ok {
		return []string{fmt.Sprintf("%s did not measure %s's winner.", other.Name, of.Name)}
	}
	switch best, _ := other.byName(other.Winner); {
	case len(there.misses) > 0:
		return []string{fmt.Sprintf("In %s the limits keep %s out: %s.", other.Name, there.Name, strings.Join(there.misses, "; "))}
	case slices.Contains(there.tied, best.Name) || slices.Contains(best.tied, there.Name):
		return []string{fmt.Sprintf("In %s, %s is as good as the winner %s.", other.Name, there.Name, best.Name)}
	}
	return nil
}

func sameName(a, b string) string {
	if a == b {
		return a
	}
	return a + "/" + b
}

// differences lists the facts that differ, by name.
func differences(a, b map[string]string) []Difference {
	names := maps.Clone(a)
	maps.Copy(names, b)
	list := []Difference{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			list = append(list, Difference{name, a[name], b[name]})
		}
	}
	return list
}

// configDiffs compares the config.pbtxt of the defaults and of the winners.
func configDiffs(a, b Run) []ConfigDiff {
	list := []ConfigDiff{}
	add := func(title string, one, other Configuration) {
		if lines := diff(one.Config, other.Config); one.Config != "" && other.Config != "" && len(lines) > 0 {
			list = append(list, ConfigDiff{title, lines})
		}
	}
	defaultA, _ := a.byKey(defaultKey)
	defaultB, _ := b.byKey(defaultKey)
	add("default", defaultA, defaultB)
	winA, _ := a.byName(a.Winner)
	winB, _ := b.byName(b.Winner)
	add("winner", winA, winB)
	return list
}

// diff returns the lines outside of the longest common subsequence of two texts, with - or + before
// (Hunt and McIlroy, 1976). Comments and empty lines do not count, since they configure nothing.
func diff(a, b string) (lines []string) {
	x, y := telling(a), telling(b)
	common := make([][]int, len(x)+1) // common[i][j]: length for x[i:] and y[j:]
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			lines, i = append(lines, "-"+x[i]), i+1
		default:
			lines, j = append(lines, "+"+y[j]), j+1
		}
	}
	return lines
}

// mostLines bounds the lines of a config.pbtxt that are compared, since the time grows with the
// square of them. Ours have a hundred.
const mostLines = 2000

func telling(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if bare := strings.TrimSpace(line); bare != "" && bare[0] != '#' && len(lines) < mostLines {
			lines = append(lines, line)
		}
	}
	return lines
}

// notes says what a reader must know of a pair.
func notes(a, b Run, p Pair, spread float64) []string {
	list := []string{}
	tested, shown := 0, 0
	for _, c := range p.Changes {
		if c.Change == nil || !slices.Contains(p.Shown, c.Metric) {
			continue
		}
		tested++
		if c.Direction != NotShown {
			shown++
		}
	}
	switch {
	case len(p.Changes) == 0:
		list = append(list, "The runs share no configuration and load, so no figure compares.")
	case tested == 0:
		list = append(list, "No change is tested: a change needs an interval on both sides, and figures of other programs have none.")
	default:
		list = append(list, fmt.Sprintf("%d of %d changes are shown. If nothing had changed, %.1f would be expected by chance.", shown, tested, 0.05*float64(tested)))
		list = append(list, fmt.Sprintf("Two runs of one server differ by %.2g %% (standard deviation of one run); --spread says otherwise. "+
			"This part is common to all changes of a metric, so they are wrong together.", 100*spread))
	}
	if x, y := a.Facts[factFingerprint], b.Facts[factFingerprint]; x != "" && y != "" && x != y {
		list = append(list, "The machines differ. So a change is that of machine and configuration together.")
	}
	if a.Kind == Campaign && b.Kind == Campaign && (a.Facts[factServer] != b.Facts[factServer] || a.Facts[factFinals] != b.Facts[factFinals]) {
		list = append(list, "The servers differ, so the changes are theirs too.")
	}
	if x, y := a.Facts[factRequests], b.Facts[factRequests]; x != y {
		list = append(list, "The requests differ, so the changes are theirs too.")
	}
	if a.withheld.taken != b.withheld.taken {
		list = append(list, fmt.Sprintf("Others took %.1f %% of the CPU time in %s and %.1f %% in %s. Rates and latencies are compared at an equal share, "+
			"but for the throughput at a request rate.",
			-100*math.Expm1(-a.withheld.taken), a.Name, -100*math.Expm1(-b.withheld.taken), b.Name))
	}
	return list
}

// Shows reports whether a metric is one that reports show.
func (p Pair) Shows(m measure.Metric) bool { return slices.Contains(p.Shown, m) }
