package search

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/sessionoption"
)

// expanded computes a space's candidates and folds directly: each combination alone, through all
// rules.
func expanded(s Space) (candidates []Candidate, folds []Fold) {
	if len(s.Knobs) == 0 {
		return nil, nil
	}
	f, seen, counter := newFolding(s), map[string]bool{}, Folds{}
	order := make([]int, len(s.Knobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(poolScope(s.Knobs[a].Name)) - int(poolScope(s.Knobs[b].Name)) })
	var turn func(chosen []Value, rest []int)
	turn = func(chosen []Value, rest []int) {
		if len(rest) > 0 {
			for _, v := range s.Knobs[rest[0]].Values {
				chosen[rest[0]] = v
				turn(chosen, rest[1:])
			}
			return
		}
		values := slices.Clone(chosen)
		merged, illegal := applied(f, values)
		if illegal != "" {
			counter.Add(illegal, "", 1)
			return
		}
		c := f.candidate(values)
		repeated := seen[c.Key()] || c.IsDefault()
		switch {
		case merged != "" && repeated:
			counter.Add(merged, c.Key(), 1)
		case merged != "":
			counter.Add(merged, c.Key(), 0)
		case repeated:
			counter.Add("the same value is listed twice", c.Key(), 1)
		}
		if !repeated {
			seen[c.Key()] = true
			candidates = append(candidates, c)
		}
	}
	turn(make([]Value, len(s.Knobs)), order)
	return candidates, counter.List()
}

func applied(f folding, values []Value) (merged, illegal string) {
	for _, r := range merging {
		if reason := r.apply(f, values); reason != "" && merged == "" {
			merged = reason
		}
	}
	for _, r := range refusing {
		if reason := r.apply(f, values); reason != "" {
			return "", reason
		}
	}
	return merged, ""
}

// someSpace draws knobs, a few values for each, and facts, so that every rule applies in some
// spaces.
func someSpace(random *rand.Rand) Space {
	all := []Knob{
		{Name: KnobExecutionProvider, Values: []Value{"cpu", "openvino", "xnnpack", "cuda"}},
		{Name: KnobRuntime, Values: []Value{"a@1", "b@2"}},
		{Name: KnobPrecision, Values: []Value{"fp32", "int8", "fp16"}},
		{Name: KnobMaxBatchSize, Values: []Value{"1", "2", "4", "8", "2"}},
		{Name: KnobIntraOpThreads, Values: []Value{"0", "1", "2", "5"}},
		{Name: sessionoption.ExecutionMode, Values: []Value{"sequential", "parallel"}},
		{Name: sessionoption.InterOpThreads, Values: []Value{"1", "2"}},
		{Name: KnobMaxQueueDelay, Values: []Value{"0us", "100us", "200us"}},
		{Name: sessionoption.AllowSpinning, Values: []Value{"true", "false"}},
		{Name: "session.x", Values: []Value{"0", "1", "0"}},
		{Name: "openvino.num_of_threads", Values: []Value{"1", "2"}},
		{Name: "xnnpack.intra_op_num_threads", Values: []Value{"1", "9"}},
		{Name: KnobPreferredBatchSize, Values: []Value{"[]", "[2]", "[4,8]"}},
		{Name: "optimization.priority", Values: []Value{"PRIORITY_MAX", "PRIORITY_MIN"}},
		{Name: KnobInstanceCount, Values: []Value{"1", "2", "3", "7"}},
		{Name: KnobInstanceGroup, Values: []Value{"g1", "g9"}},
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	chance := func() bool { return random.IntN(2) == 0 }
	s := Space{Load: LoadAxis{Levels: []float64{1}, BatchSize: 1 + 3*random.IntN(2)}}
	s.Facts = Facts{Cores: 4 * random.IntN(2), Batching: chance(), TritonOnly: chance(), Precisions: []string{"fp32", "int8"},
		InstanceGroups: map[Value]int{"g1": 1, "g9": 9}, Base: map[string]Value{KnobExecutionProvider: []Value{"cpu", "openvino"}[random.IntN(2)]},
		Unavailable: map[string]string{"cuda": "no driver"}, Rejected: []Rejection{{Precision: "int8", Provider: "xnnpack", Reason: "far off"}}}
	if chance() {
		s.Facts.Runtimes = []RuntimeFacts{{Name: "a@1", Unavailable: map[string]string{"openvino": "not in this build"}}, {Name: "b@2"}}
	}
	for _, k := range all[:random.IntN(7)] {
		k.Values = k.Values[:1+random.IntN(len(k.Values))]
		s.Knobs = append(s.Knobs, k)
	}
	return s
}

// The candidates, their order and their folds equal those of a full enumeration, which is not made.
func TestCandidatesAreThoseOfAllCombinations(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := someSpace(random)
		want, folds := expanded(s)
		c := s.Candidates()
		if diff := cmp.Diff(texts(want), texts(c.All())); diff != "" {
			t.Fatalf("%+v: candidates (-want +got):\n%s", s, diff)
		}
		if diff := cmp.Diff(folds, c.Folds()); diff != "" {
			t.Fatalf("%+v: folds (-want +got):\n%s", s, diff)
		}
		if n, exact := c.Len(); n != len(want) || !exact {
			t.Fatalf("%+v: %d candidates (exact: %t), want %d", s, n, exact, len(want))
		}
		pools := map[string]bool{}
		for _, x := range want {
			pools[x.PoolKey()] = true
		}
		if n, exact := c.PoolCount(); n != len(pools) || !exact {
			t.Fatalf("%+v: %d pools (exact: %t), want %d", s, n, exact, len(pools))
		}
		if first, ok := c.First(); ok != (len(want) > 0) || ok && first.Key() != want[0].Key() {
			t.Fatalf("%+v: the first candidate is %v, %t", s, first, ok)
		}
	}
}

func texts(candidates []Candidate) []string {
	list := make([]string, len(candidates))
	for i, c := range candidates {
		list[i] = c.Key()
	}
	return list
}

// The neighbours in a large space belong to the space, for all folds.
func TestNeighboursAreCandidates(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		s := someSpace(random)
		c := s.Candidates()
		all, pools := map[string]bool{}, map[string]bool{}
		for _, x := range c.All() {
			all[x.Key()], pools[x.PoolKey()] = true, true
		}
		reached := map[string]bool{}
		for distance := range len(s.Knobs) + 1 {
			for pool, isPool := range c.Near(Candidate{}, distance) {
				if !isPool {
					continue
				}
				if !pools[pool.PoolKey()] {
					t.Fatalf("%+v: %v at distance %d is no pool of the space", s, pool, distance)
				}
				reached[pool.PoolKey()] = true
				for x := range c.Coarse(pool, 4) {
					if !all[x.Key()] {
						t.Fatalf("%+v: %v is no candidate of the space", s, x)
					}
				}
				for x := range c.Beside(c.Member(pool, 0)) {
					if !all[x.Key()] || x.PoolKey() != pool.PoolKey() {
						t.Fatalf("%+v: %v is no candidate of pool %v", s, x, pool)
					}
				}
			}
		}
		if len(reached) != len(pools) {
			t.Fatalf("%+v: %d of %d pools are near the default at some distance", s, len(reached), len(pools))
		}
		if pool, ok := c.Draw(random); ok != (len(pools) > 0) || ok && !pools[pool.PoolKey()] {
			t.Fatalf("%+v: %v is drawn, %t, of %d pools", s, pool, ok, len(pools))
		}
	}
}

// numbered returns a knob with the values 0 … n-1.
func numbered(name string, n int) Knob {
	k := Knob{Name: name}
	for i := range n {
		k.Values = append(k.Values, IntValue(i))
	}
	return k
}

func TestNear(t *testing.T) {
	t.Parallel()
	s := Space{Knobs: []Knob{numbered("a", 3), numbered("b", 2), {Name: KnobInstanceCount, Values: []Value{"1", "2"}}, {Name: KnobMaxBatchSize, Values: []Value{"1", "4"}}},
		Facts: Facts{Batching: true, Base: map[string]Value{"a": "1"}}}
	near := func(home Candidate, distance int) []string {
		var list []string
		for pool, isPool := range s.Candidates().Near(home, distance) {
			if isPool {
				list = append(list, pool.Key())
			}
		}
		return list
	}
	check := func(home Candidate, distance int, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, near(home, distance)); diff != "" {
			t.Errorf("%d from %v (-want +got):\n%s", distance, home, diff)
		}
	}
	// The default has a=1, and b has its first value.
	check(Candidate{}, 0, "a=1 b=0 instance_count=1", "a=1 b=0 instance_count=2")
	check(Candidate{}, 1, "a=1 b=1 instance_count=1", "a=1 b=1 instance_count=2",
		"a=0 b=0 instance_count=1", "a=0 b=0 instance_count=2", "a=2 b=0 instance_count=1", "a=2 b=0 instance_count=2")
	check(NewCandidate(Setting{"a", "2"}, Setting{"b", "1"}, Setting{KnobInstanceCount, "2"}), 2,
		"a=0 b=0 instance_count=1", "a=0 b=0 instance_count=2", "a=1 b=0 instance_count=1", "a=1 b=0 instance_count=2")
	check(Candidate{}, 3)
}

func TestCoarseAndBeside(t *testing.T) {
	t.Parallel()
	batch, delay := numbered(KnobMaxBatchSize, 100), numbered(KnobMaxQueueDelay, 50)
	batch.Values = batch.Values[1:] // 1 … 99
	for i := range delay.Values {
		delay.Values[i] += "us"
	}
	c := Space{Knobs: []Knob{batch, delay}, Facts: Facts{Batching: true}}.Candidates()
	if c.Batchers() != 98*50+1 {
		t.Fatalf("%d settings of the batcher, want 98 × 50, and 1 without a delay", c.Batchers())
	}
	var keys []string
	for x := range c.Coarse(Candidate{}, 40) {
		keys = append(keys, x.Key())
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	// 99 × 50 → 50 × 50 → 25 × 50 → 25 × 25 → 13 × 25 → 13 × 13 → 7 × 13 → 7 × 7 → 4 × 7 = 28.
	// Those with a batch of 1 count as one.
	if len(keys) != 3*7+1 || !slices.Contains(keys, "max_batch_size=99 max_queue_delay=49us") || !slices.Contains(keys, "max_batch_size=1 max_queue_delay=0us") {
		t.Errorf("the coarse choice is %q", keys)
	}
	keys = nil
	for x := range c.Beside(NewCandidate(Setting{KnobMaxBatchSize, "97"}, Setting{KnobMaxQueueDelay, "1us"})) {
		keys = append(keys, x.Key())
	}
	var want []string
	for _, v := range []string{"97 1", "96 1", "98 1", "95 1", "99 1", "93 1", "89 1", "81 1", "65 1", "33 1", "97 0", "97 2", "97 3", "97 5", "97 9", "97 17", "97 33"} {
		b, d, _ := strings.Cut(v, " ")
		want = append(want, "max_batch_size="+b+" max_queue_delay="+d+"us")
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("beside 97 and 1 µs (-want +got):\n%s", diff)
	}
}

// No question enumerates a space of 10^12 pools, unless it asks for the end.
func TestHugeSpace(t *testing.T) {
	t.Parallel()
	s := Space{Facts: Facts{Batching: true}}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.Knobs = append(s.Knobs, numbered(name, 1000))
	}
	s.Knobs = append(s.Knobs, Knob{Name: KnobMaxBatchSize, Values: []Value{"1", "4"}})
	c := s.Candidates()
	if n, exact := c.Len(); n != 2_000_000_000_000 || exact {
		t.Errorf("%d candidates (exact: %t), want 2·10^12 at most", n, exact)
	}
	if folds := c.Folds(); folds != nil {
		t.Errorf("folds %v of a space that cannot be gone through", folds)
	}
	next, seen := c.Walk(), map[string]bool{}
	for range 5000 {
		x, ok := next()
		if !ok || seen[x.Key()] {
			t.Fatalf("candidate %d is %v, %t", len(seen), x, ok)
		}
		seen[x.Key()] = true
	}
	if !seen["a=0 b=0 c=2 d=499 max_batch_size=4"] { // the 2,500th pool
		t.Error("the first candidates are not in their order")
	}
	if _, ok := c.Draw(rand.New(rand.NewPCG(1, 1))); !ok {
		t.Error("no pool is drawn")
	}
}
