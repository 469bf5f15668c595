package autoscaler

import (
	"math"
	"time"
)

// The limits of scaling up without a behavior: a factor of the replicas, or their number.
const (
	upFactor = 2
	upLeast  = 4
)

// withoutBehavior stabilizes and limits a proposal of an object without a behavior.
func (a *Autoscaler) withoutBehavior(now time.Duration, current, proposed int) int {
	wanted := a.highest.add(now, proposed)
	most := min(a.settings.Max, max(upFactor*current, upLeast))
	return max(min(wanted, most), a.settings.Min)
}

// withBehavior stabilizes and limits a proposal. A number within the recommendations of both
// windows stays.
func (a *Autoscaler) withBehavior(now time.Duration, current, proposed int) int {
	lowest, highest := a.lowest.add(now, proposed), a.highest.add(now, proposed)
	wanted := min(max(current, lowest), highest)
	switch {
	case wanted > current:
		limit := max(current, a.up.limit(now, current, &a.added, &a.removed, 1))
		return min(wanted, a.settings.Max, limit)
	case wanted < current:
		limit := min(current, a.down.limit(now, current, &a.added, &a.removed, -1))
		return max(wanted, a.settings.Min, limit)
	}
	return wanted
}

// limit returns the number of replicas up to which the policies allow a change now. direction is 1
// for scaling up and −1 for scaling down.
func (r Rules) limit(now time.Duration, current int, added, removed *changes, direction int) int {
	if r.Select == Disabled {
		return current
	}
	most := 0 // largest allowed change, in the direction
	for i, p := range r.Policies {
		begin := current - added.within(now, p.Period) + removed.within(now, p.Period)
		change := direction * (p.from(begin, direction) - current)
		switch {
		case i == 0, r.Select == Least && change < most, r.Select != Least && change > most:
			most = change
		}
	}
	return current + direction*most
}

// from returns the number of replicas that a policy allows, from the number at the beginning of its
// period. Kubernetes rounds a share up when it adds pods, and cuts it off when it removes some.
func (p Policy) from(begin, direction int) int {
	switch {
	case !p.Percent:
		return begin + direction*p.Value
	case direction > 0:
		return int(math.Ceil(float64(begin) * (1 + float64(p.Value)/100)))
	}
	return int(float64(begin) * (1 - float64(p.Value)/100))
}

// extremes has the extreme of the recommendations within a window: the highest for the sign 1, the
// lowest for −1. It keeps only those that no later one surpasses.
type extremes struct {
	window time.Duration
	sign   int
	kept   []recommendation // descending in sign × replicas
}

type recommendation struct {
	at       time.Duration
	replicas int
}

// add adds the recommendation of now, and returns the extreme of those that came after the beginning
// of the window.
func (e *extremes) add(now time.Duration, replicas int) int {
	first := 0
	for first < len(e.kept) && e.kept[first].at <= now-e.window {
		first++
	}
	end := len(e.kept)
	for end > first && e.sign*e.kept[end-1].replicas <= e.sign*replicas {
		end--
	}
	if first > 0 {
		end = copy(e.kept, e.kept[first:end])
	}
	e.kept = append(e.kept[:end], recommendation{now, replicas})
	return e.kept[0].replicas
}

// changes are the changes in one direction within the longest period of the policies.
type changes struct {
	longest time.Duration
	list    []change
}

type change struct {
	at   time.Duration
	pods int
}

// record adds a change of now; 0 and less are of the other direction.
func (c *changes) record(now time.Duration, pods int) {
	if pods <= 0 {
		return
	}
	old := 0
	for old < len(c.list) && c.list[old].at < now-c.longest {
		old++
	}
	c.list = append(c.list[:copy(c.list, c.list[old:])], change{now, pods})
}

// within returns the sum of the changes after the beginning of a period that ends now.
func (c *changes) within(now, period time.Duration) (pods int) {
	for _, x := range c.list {
		if x.at > now-period {
			pods += x.pods
		}
	}
	return pods
}
