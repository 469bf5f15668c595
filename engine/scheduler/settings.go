package scheduler

import (
	"slices"
	"time"
)

// Settings describe how requests are queued and batched. The zero value executes each request
// alone, in order of arrival.
type Settings struct {
	// false: each request is a separate execution, and nothing below applies
	Dynamic   bool
	MaxBatch  int   // largest number of rows in a batch, at least 1
	Preferred []int // preferred batch sizes in rows; empty: only MaxBatch
	// time for which the oldest request may wait for others; 0: none
	Delay            time.Duration
	PreserveOrdering bool   // answer in the order in which requests joined batches
	Levels           uint64 // priority levels 1 (highest) … Levels; 0: no priorities
	DefaultLevel     uint64 // for a request without priority
	DefaultPolicy    Policy
	PolicyOfLevel    map[uint64]Policy // overrides DefaultPolicy
	// number of queued requests before which a new scheduler forms no batch; 0: none. Tests use it
	// to know what a batch will hold.
	Hold int
	// an idle instance may leave a batch to grow for clients that come back (package gathering). It has
	// an effect if requests are batched, without Delay, priorities and policies: those say how long
	// requests wait.
	Gather             bool
	disablePrefetching bool // derived, see normalised
	gathers            bool // derived: Gather has an effect
}

// Policy bounds the queue of one priority level.
type Policy struct {
	Timeout time.Duration // 0: none
	// an expired request is served after all others of its level, instead of being rejected
	Postpone      bool
	AllowOverride bool // a request may shorten Timeout
	MaxQueue      int  // largest number of requests; 0: no limit
}

// normalised returns s with defaults and with sorted preferred sizes.
func (s Settings) normalised() Settings {
	s.MaxBatch = max(s.MaxBatch, 1)
	s.Preferred = slices.Sorted(slices.Values(s.Preferred))
	if len(s.Preferred) == 0 {
		s.Preferred = []int{s.MaxBatch}
	}
	if s.Levels == 0 {
		s.Levels, s.DefaultLevel, s.PolicyOfLevel = 1, 1, nil
	} else {
		s.disablePrefetching = true
	}
	s.DefaultLevel = min(max(s.DefaultLevel, 1), s.Levels)
	p := s.DefaultPolicy
	if p.Timeout != 0 || p.AllowOverride || p.MaxQueue != 0 {
		s.disablePrefetching = true
	}
	s.gathers = s.Gather && s.Dynamic && s.largestPreferred() > 1 && s.Delay == 0 && !s.disablePrefetching
	return s
}

// largestPreferred returns the size beyond which a batch does not grow while a smaller size is
// preferred.
func (s *Settings) largestPreferred() int { return s.Preferred[len(s.Preferred)-1] }

func (s *Settings) isPreferred(size int) bool {
	_, found := slices.BinarySearch(s.Preferred, size)
	return found
}

// nextPreferred returns the smallest preferred size above size, or 0.
func (s *Settings) nextPreferred(size int) int {
	if i, _ := slices.BinarySearch(s.Preferred, size+1); i < len(s.Preferred) {
		return s.Preferred[i]
	}
	return 0
}

// level returns the priority level of a request. 0 and levels that do not exist mean the default.
func (s *Settings) level(priority uint64) uint64 {
	if priority == 0 || priority > s.Levels {
		return s.DefaultLevel
	}
	return priority
}

func (s *Settings) policy(level uint64) Policy {
	if p, ok := s.PolicyOfLevel[level]; ok {
		return p
	}
	return s.DefaultPolicy
}

// timeout returns the time for which a request that asks for want may wait in the queue. 0 means no
// limit. A request can only shorten it.
func (p Policy) timeout(want time.Duration) time.Duration {
	if p.AllowOverride && want != 0 && want < p.Timeout {
		return want
	}
	return p.Timeout
}
