package pools

import (
	"testing"

	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/tuning"
	"tuner/search/standings"
)

// In a large space the search considers pools that are among the first combinations around the default, so that
// the time is bounded where most are illegal. Here one core has room for two threads, and few are legal.
func TestAroundTheDefault(t *testing.T) {
	t.Parallel()
	space := search.Space{Facts: search.Facts{Cores: 1}}
	for _, name := range []string{"session.a", "session.b", search.KnobIntraOpThreads, search.KnobInstanceCount} {
		scope, _ := search.KnobScope(name)
		k := search.Knob{Name: name, Scope: scope}
		for i := range 5 {
			k.Values = append(k.Values, search.IntValue(i+1))
		}
		space.Knobs = append(space.Knobs, k)
	}
	candidates := space.Candidates()
	count, _ := candidates.PoolCount()
	for most := 2; 5*most < count; most++ {
		n := tuning.Default()
		n.Parts.Pools = most
		s := New(space, standings.NewLedger(search.Goal{}), candidates, footprint.New(space), n)
		near, looked := map[string]bool{}, 0
		for distance := range len(space.Knobs) + 1 {
			for pool, isPool := range candidates.Near(search.Candidate{}, distance) {
				if looked++; looked <= n.Parts.Whole() && isPool {
					near[pool.PoolKey()] = true
				}
			}
		}
		for _, p := range s.All() {
			if !near[p.Key()] {
				t.Errorf("of %d pools %s is considered, which is not among the first %d of %d combinations", most, p.Key(), n.Parts.Whole(), looked)
			}
		}
		if got, want := len(s.All()), min(n.Parts.First(), len(near)); got < want || got > want+1 {
			t.Errorf("%d pools of %d are considered around the default, want %d and the rest of their engine", got, most, want)
		}
	}
}
