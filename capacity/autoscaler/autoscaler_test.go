package autoscaler

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// pods returns an autoscaler on a metric of pods, with a target of 100 in thousandths.
func pods(least, most int, b *Behavior) *Autoscaler {
	return New(Settings{Min: least, Max: most, Source: Pods, Target: 100, Behavior: b})
}

// each returns a reading of n pods that all have a value.
func each(n int, value int64) Reading { return Reading{Sum: int64(n) * value, Measured: n} }

// A single reading becomes replicas as the documentation of Kubernetes computes it: replicas ×
// metric ÷ target, rounded up ("Horizontal Pod Autoscaling", algorithm details).
func TestReplicasForAReading(t *testing.T) {
	t.Parallel()
	check := func(name string, s Settings, current int, r Reading, want int) {
		t.Helper()
		s.Min, s.Max = 1, 100
		if got := New(s).Sync(0, current, r); got != want {
			t.Errorf("%s: %d replicas, want %d", name, got, want)
		}
	}
	b := DefaultBehavior()
	b.Down.Stabilization = 0
	pods, external := Settings{Source: Pods, Target: 100, Behavior: &b}, Settings{Source: External, Target: 100, Behavior: &b}
	cpu := Settings{Source: Resource, Target: 50, Behavior: &b}
	check("twice the target", pods, 2, each(2, 200), 4)
	check("half the target", pods, 4, each(4, 50), 2)
	check("within the tolerance", pods, 10, each(10, 110), 10)
	check("beyond the tolerance: 10 × 1.11 = 11.1", pods, 10, each(10, 111), 12)
	check("below the tolerance: 10 × 0.89 = 8.9", pods, 10, each(10, 89), 9)
	check("at the target, a missing metric changes nothing", pods, 3, Reading{Sum: 200, Measured: 2, Missing: 1}, 3)
	check("no metric", pods, 7, Reading{Missing: 7}, 7)
	// (200 + 200 + 0) ÷ 3 pods ÷ 100 = 1.33, × 3
	check("an unready pod uses nothing while more are wanted", pods, 3, Reading{Sum: 400, Measured: 2, Unready: 1}, 4)
	check("an unready pod does not count while fewer are wanted", pods, 3, Reading{Sum: 100, Measured: 2, Unready: 1}, 1)
	// (50 + 50 + 100) ÷ 3 ÷ 100 = 0.66, × 3
	check("a missing metric is the target while fewer are wanted", pods, 3, Reading{Sum: 100, Measured: 2, Missing: 1}, 2)
	// (150 + 150 + 0) ÷ 3 ÷ 100 = 1
	check("a missing metric is nothing while more are wanted", pods, 3, Reading{Sum: 300, Measured: 2, Missing: 1}, 3)
	// 120 ÷ 100 = 1.2; with the unready ones 120 ÷ 4 ÷ 100 = 0.3: the direction would change
	check("no change of direction", pods, 4, Reading{Sum: 120, Measured: 1, Unready: 3}, 4)
	check("a sum: 450 ÷ 100", external, 3, Reading{Sum: 450, Measured: 3}, 5)
	check("a sum counts all pods: 450 ÷ 4 is within the tolerance... of 112.5: it is not", external, 4, Reading{Sum: 450, Measured: 1, Unready: 3}, 5)
	check("a sum within the tolerance", external, 4, Reading{Sum: 430, Measured: 4}, 4)
	// 300 m of 400 m are 75 %, ÷ 50 % = 1.5, × 2
	check("processor time", cpu, 2, Reading{Sum: 600, Measured: 2, Request: 400}, 3)
}

// By default, replicas at most double every 15 s, or grow by 4.
func TestScalesUpByThePolicies(t *testing.T) {
	t.Parallel()
	b := DefaultBehavior()
	a, current := pods(1, 100, &b), 1
	var got []int
	for i := range 6 {
		current = a.Sync(time.Duration(i)*SyncPeriod, current, each(current, 10_000))
		got = append(got, current)
	}
	if want := []int{5, 10, 20, 40, 80, 100}; !slices.Equal(got, want) {
		t.Errorf("%v replicas, want %v", got, want)
	}
}

// One pod a minute: the changes of the last minute count.
func TestScalesDownByThePolicies(t *testing.T) {
	t.Parallel()
	b := DefaultBehavior()
	b.Down = Rules{Select: Most, Policies: []Policy{{Value: 1, Period: time.Minute}}}
	a, current := pods(1, 100, &b), 5
	var got []int
	for i := range 9 {
		current = a.Sync(time.Duration(i)*SyncPeriod, current, each(current, 1))
		got = append(got, current)
	}
	if want := []int{4, 4, 4, 4, 3, 3, 3, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("%v replicas, want %v", got, want)
	}
}

// Select chooses among the policies: of 10 pods, 10 % is one and 3 pods are three.
func TestSelect(t *testing.T) {
	t.Parallel()
	for choice, want := range map[Select]int{Most: 7, Least: 9, Disabled: 10} {
		b := DefaultBehavior()
		b.Down = Rules{Select: choice, Policies: []Policy{{Percent: true, Value: 10, Period: time.Minute}, {Value: 3, Period: time.Minute}}}
		if got := pods(1, 100, &b).Sync(0, 10, each(10, 1)); got != want {
			t.Errorf("%s: %d replicas, want %d", choice, got, want)
		}
	}
}

// Without a behavior, replicas at most double and reach at least 4, and scaling down waits for five
// minutes.
func TestWithoutBehavior(t *testing.T) {
	t.Parallel()
	a, current := pods(1, 16, nil), 1
	var got []int
	for i := range 3 {
		current = a.Sync(time.Duration(i)*SyncPeriod, current, each(current, 10_000))
		got = append(got, current)
	}
	if want := []int{4, 8, 16}; !slices.Equal(got, want) {
		t.Errorf("%v replicas, want %v", got, want)
	}
	lowered := 0
	for i := 3; current == 16; i++ {
		current, lowered = a.Sync(time.Duration(i)*SyncPeriod, current, each(current, 1)), i
	}
	// The last high recommendation is that of sync 2. It counts up to five minutes later, sync 22.
	if lowered != 23 {
		t.Errorf("scaled down at sync %d, want 23", lowered)
	}
}

// drawn is a random object, with its readings.
func drawn(r *rand.Rand) Settings {
	rules := func() Rules {
		list := []Policy{{Value: 1 + r.IntN(5), Period: time.Duration(1+r.IntN(8)) * SyncPeriod}}
		if r.IntN(2) == 0 {
			list = append(list, Policy{Percent: true, Value: 1 + r.IntN(150), Period: time.Duration(1+r.IntN(8)) * SyncPeriod})
		}
		return Rules{
			Stabilization: time.Duration(r.IntN(20)) * SyncPeriod, Select: []Select{Most, Least, Disabled}[r.IntN(3)], Policies: list,
			Tolerance: float64(r.IntN(3)) / 10,
		}
	}
	s := Settings{Min: 1 + r.IntN(4), Source: []Source{Pods, External, Resource}[r.IntN(3)], Target: 50}
	s.Max = s.Min + r.IntN(30)
	if r.IntN(4) > 0 {
		s.Behavior = &Behavior{rules(), rules()}
	}
	return s
}

// The number of replicas never leaves its bounds, whatever happens.
func TestStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		s := drawn(r)
		a, current := New(s), s.Min
		for i := range 100 {
			measured := r.IntN(current + 1)
			unready := r.IntN(current - measured + 1)
			current = a.Sync(time.Duration(i)*SyncPeriod, current, Reading{
				Sum: int64(measured) * r.Int64N(500), Measured: measured, Unready: unready, Missing: current - measured - unready, Request: 100,
			})
			if current < s.Min || current > s.Max {
				t.Fatalf("%+v: %d replicas", s, current)
			}
		}
	}
}

// While the metric only falls, the number is never below the highest recommendation of the window of
// scaling down.
func TestScalingDownTakesTheHighestOfTheWindow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		b := DefaultBehavior()
		b.Down.Stabilization = time.Duration(1+r.IntN(20)) * SyncPeriod
		a, current := pods(1, 1000, &b), 500
		var recommended []int
		for i := range 60 {
			value := r.Int64N(80) // below the tolerance
			recommended = append(recommended, int(math.Ceil(float64(value)/100*float64(current))))
			current = a.Sync(time.Duration(i)*SyncPeriod, current, each(current, value))
			window := int(b.Down.Stabilization / SyncPeriod)
			if want := max(1, slices.Max(recommended[max(0, len(recommended)-window):])); current < want {
				t.Fatalf("sync %d: %d replicas, and %d were recommended within %v", i, current, want, b.Down.Stabilization)
			}
		}
	}
}

// More load never means fewer replicas.
func TestMoreLoadNeverMeansFewerReplicas(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		s := drawn(r)
		current := s.Min + r.IntN(s.Max-s.Min+1)
		reading := Reading{Measured: 1 + r.IntN(current), Request: 100}
		reading.Unready = r.IntN(current - reading.Measured + 1)
		reading.Missing = current - reading.Measured - reading.Unready
		reading.Sum = int64(reading.Measured) * r.Int64N(300)
		less := New(s).Sync(0, current, reading)
		reading.Sum += r.Int64N(10_000)
		if more := New(s).Sync(0, current, reading); more < less {
			t.Fatalf("%+v from %d: %d replicas, and with more load %d", s, current, less, more)
		}
	}
}
