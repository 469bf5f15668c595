package pools

import (
	"iter"
	"slices"

	"tuner/search"
)

// A space may have more pools, or more settings of the batcher in each, than can be considered
// between two trials. Then the search looks at a part. It takes engines that differ in few knobs
// from the default's, and more of them around each new best. In a pool it takes settings that are
// spread over all, and more of them around each measured one. The part depends on the events alone.

// enterSpace adds the pools of the space, or a part of them.
func (s *Pools) enterSpace() {
	if n, _ := s.candidates.PoolCount(); n > s.tuning.Parts.Whole() {
		s.isPart = true
		s.enterAround(search.Candidate{}, s.tuning.Parts.First())
		return
	}
	for settings := range s.candidates.Pools() {
		s.enter(settings)
	}
}

// enterAround adds about `most` pools whose engines differ from home's in few knobs, the nearest
// first.
func (s *Pools) enterAround(home search.Candidate, most int) {
	parts := s.tuning.Parts
	end, left := min(len(s.pools)+most, parts.Pools), parts.Whole()
	for distance := range len(s.space.Knobs) + 1 {
		for settings, isPool := range s.candidates.Near(home, distance) {
			if left--; left < 0 {
				return
			}
			if !isPool {
				continue
			}
			if _, known := s.byName[EngineKey(settings)]; !known && len(s.pools) >= end {
				return
			}
			s.enterNew(settings)
		}
	}
}

// enterNew adds a pool unless it is known.
func (s *Pools) enterNew(settings search.Candidate) {
	if s.byKey[settings.PoolKey()] == nil {
		s.enter(settings)
	}
}

// Of returns the pool of a candidate. It adds an unknown one, such as that of a campaign that took
// another course.
func (s *Pools) Of(c search.Candidate) (*Pool, bool) {
	p, known := s.byKey[c.PoolKey()]
	if known || !s.isPart {
		return p, known
	}
	for settings, isPool := range s.candidates.Near(c, 0) {
		if isPool {
			s.enterNew(settings)
		}
	}
	p, known = s.byKey[c.PoolKey()]
	return p, known
}

// FollowBest looks around the best measured configuration if it has another engine than before. It
// reports whether it looked.
func (s *Pools) FollowBest() bool {
	if !s.isPart {
		return false
	}
	ranked := s.ledger.Ranked()
	if len(ranked) == 0 || EngineKey(ranked[0].Candidate) == s.home {
		return false
	}
	s.home = EngineKey(ranked[0].Candidate)
	s.enterAround(ranked[0].Candidate, s.tuning.Parts.Next())
	return true
}

// IsLarge reports whether only some members of a pool are considered.
func (s *Pools) IsLarge() bool { return s.candidates.Batchers() > s.tuning.Survey.Most }

// Fill lists the considered members of a pool. In a large pool these are members spread over all,
// those similar to the best so far, and the one that equals the default.
func (s *Pools) Fill(p *Pool) {
	switch {
	case len(p.members) > 0 && !s.IsLarge():
		return
	case !s.IsLarge():
		p.members = s.candidates.Members(p.settings)
	default:
		if p == s.byKey[search.Candidate{}.PoolKey()] && !p.hosts {
			p.addMember(s.twin)
		}
		if ranked := s.ledger.Ranked(); len(ranked) > 0 {
			s.AddMembers(p, s.candidates.Beside(withBatcher(p.settings, ranked[0].Candidate)))
		}
		s.AddMembers(p, s.candidates.Coarse(p.settings, s.tuning.Survey.FirstMembers()))
	}
	if p.hosts && !slices.ContainsFunc(p.members, search.Candidate.IsDefault) {
		p.members = append(p.members, search.Candidate{})
	}
}

// withBatcher returns a pool's candidate with another's batcher.
func withBatcher(settings, other search.Candidate) search.Candidate {
	for _, x := range other.Settings() {
		if scope, known := search.KnobScope(x.Knob); known && scope == search.ScopeBatcher {
			settings = settings.With(x.Knob, x.Value)
		}
	}
	return settings
}

// AddMembers adds considered members to a large pool, up to the limit.
func (s *Pools) AddMembers(p *Pool, members iter.Seq[search.Candidate]) {
	for c := range members {
		if len(p.members) < s.tuning.Survey.Members() {
			p.addMember(c)
		}
	}
}

// addMember adds a considered member to a large pool.
func (p *Pool) addMember(c search.Candidate) {
	if p.isMember == nil {
		p.isMember = map[string]bool{}
	}
	if key := c.Key(); !p.isMember[key] {
		p.isMember[key] = true
		p.members = append(p.members, c)
	}
}

// AddNeighbours adds a measured candidate of a large pool, and its neighbours.
func (s *Pools) AddNeighbours(p *Pool, c search.Candidate) {
	if !s.IsLarge() || c.IsDefault() {
		return
	}
	p.addMember(c)
	s.AddMembers(p, s.candidates.Beside(c))
	if p.IsReady() {
		s.makeBatchers(p)
	}
}

// Unseen returns an upper bound of the number of candidates that were not considered.
func (s *Pools) Unseen() int {
	if !s.isPart && !s.IsLarge() {
		return 0
	}
	all, _ := s.candidates.Len()
	seen := len(s.pools) * s.candidates.Batchers()
	for _, p := range s.pools {
		if p.IsReady() && s.IsLarge() {
			seen -= s.candidates.Batchers() - len(p.members)
		}
	}
	return max(all-seen, 0)
}

// PerPool returns the number of candidates of each pool.
func (s *Pools) PerPool() int { return s.candidates.Batchers() }
