package packing

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// certain returns a model with highest loads on 1, 2, … cores that are known exactly.
func certain(name string, load float64, highest ...float64) Model {
	m := Model{Name: name, Load: load}
	for _, x := range highest {
		m.Highest = append(m.Highest, Highest{Load: x})
	}
	return m
}

// random returns models whose highest loads rise with the cores by chance, and the cores.
func random(r *rand.Rand, deviation float64) ([]Model, int) {
	cores := 1 + r.IntN(8)
	models := make([]Model, 1+r.IntN(4))
	for i := range models {
		models[i] = Model{Name: fmt.Sprint("model ", i), Load: 10 + 100*r.Float64()}
		least, sum := r.IntN(3), 0.0 // fewer cores than least carry nothing
		for c := range 1 + r.IntN(cores) {
			if c >= least {
				sum += 50 * r.Float64()
			}
			models[i].Highest = append(models[i].Highest, Highest{Load: sum, Deviation: deviation * r.Float64()})
		}
	}
	return models, cores
}

// divisions yields all divisions of at most some cores among n models.
func divisions(n, cores int, yield func([]int)) {
	of := make([]int, n)
	var next func(i, left int)
	next = func(i, left int) {
		if i == n {
			yield(of)
			return
		}
		for of[i] = range left + 1 {
			next(i+1, left-of[i])
		}
		of[i] = 0
	}
	next(0, cores)
}

// The division is the best of all, and of equal ones it has the most room.
func TestDivideIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		models, cores := random(rand.New(rand.NewPCG(seed, 0)), 0)
		best, room := 0.0, math.Inf(-1)
		divisions(len(models), cores, func(of []int) {
			least, sum := math.Inf(1), 0.0
			for i, m := range models {
				s := m.on(of[i]).Load / m.Load
				least, sum = min(least, s), sum+math.Log(s)
			}
			if least > best || least == best && sum > room {
				best, room = least, sum
			}
		})
		d, err := Divide(models, cores)
		if best == 0 {
			if c := new(Conflict); !errors.As(err, &c) {
				t.Errorf("seed %d: no division carries any load, and the error is %v", seed, err)
			}
			continue
		}
		if err != nil || math.Abs(d.Scale-best) > 1e-12*best {
			t.Errorf("seed %d: scale %v (%v), want %v", seed, d.Scale, err, best)
			continue
		}
		used, sum := 0, 0.0
		for i, m := range models {
			used += d.Cores[i]
			sum += math.Log(m.on(d.Cores[i]).Load / m.Load)
		}
		if used > cores || math.Abs(sum-room) > 1e-9 {
			t.Errorf("seed %d: %v of %d cores have the room %v, want %v", seed, d.Cores, cores, sum, room)
		}
		if m := models[d.Binding]; math.Abs(m.on(d.Cores[d.Binding]).Load/m.Load-best) > 1e-12*best {
			t.Errorf("seed %d: %s does not bind", seed, m.Name)
		}
	}
}

// The scale that all keep with a probability is the largest of all divisions.
func TestDivideSurelyIsExact(t *testing.T) {
	t.Parallel()
	const confidence = 0.9
	for seed := range uint64(100) {
		models, cores := random(rand.New(rand.NewPCG(seed, 1)), 0.3)
		d, err := DivideSurely(models, cores, confidence)
		if err != nil {
			continue
		}
		chance := func(of []int, scale float64) float64 {
			p := 1.0
			for i, m := range models {
				p *= m.carries(scale, of[i])
			}
			return p
		}
		if p := chance(d.Cores, d.Scale); p < confidence || math.Abs(p-d.Holds) > 1e-12 {
			t.Errorf("seed %d: %v keeps %v with %v (it says %v), want at least %v", seed, d.Cores, d.Scale, p, d.Holds, confidence)
		}
		divisions(len(models), cores, func(of []int) {
			if p := chance(of, d.Scale*1.0002); p >= confidence {
				t.Errorf("seed %d: %v keeps more than %v with %v", seed, of, d.Scale, p)
			}
		})
	}
}

// With one model, the scale at confidence q is its quantile: 100·exp(−1.6449·0.1) at 95 %.
func TestDivideSurelyOfOneModel(t *testing.T) {
	t.Parallel()
	d, err := DivideSurely([]Model{{Name: "a", Load: 10, Highest: []Highest{{100, 0.1}}}}, 1, 0.95)
	if want := 10 * math.Exp(-1.6449*0.1); err != nil || math.Abs(d.Scale/want-1) > 2e-4 || math.Abs(d.Holds-0.95) > 1e-3 {
		t.Errorf("scale %v, holds %v, %v; want %v", d.Scale, d.Holds, err, want)
	}
}

// The weighted sum is the largest of all divisions.
func TestWeighIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		models, cores := random(r, 0)
		weights := make([]float64, len(models))
		for i := range weights {
			weights[i] = r.Float64()
		}
		score := func(of []int) float64 {
			sum := 0.0
			for i, m := range models {
				sum += weights[i] * math.Log(m.on(of[i]).Load)
			}
			return sum
		}
		best := math.Inf(-1)
		divisions(len(models), cores, func(of []int) { best = max(best, score(of)) })
		d, err := Weigh(models, weights, cores)
		if math.IsInf(best, -1) {
			if err == nil {
				t.Errorf("seed %d: no division carries any load, and there is no error", seed)
			}
			continue
		}
		if err != nil || math.Abs(score(d.Cores)-best) > 1e-9 {
			t.Errorf("seed %d: %v has %v (%v), want %v", seed, d.Cores, score(d.Cores), err, best)
		}
	}
}

// A model without load changes nothing for the others. Order and names have no influence.
func TestNamesAndIdleModels(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		models, cores := random(r, 0.2)
		order := r.Perm(len(models))
		shuffled := make([]Model, len(models))
		for i, k := range order {
			shuffled[i] = models[k]
			shuffled[i].Name = fmt.Sprint("another ", k)
		}
		shuffled = append(shuffled, Model{Name: "idle", Highest: []Highest{{5, 1}}})
		for name, divide := range map[string]func([]Model) (Division, error){
			"divide": func(m []Model) (Division, error) { return Divide(m, cores) },
			"surely": func(m []Model) (Division, error) { return DivideSurely(m, cores, 0.9) },
			"weigh": func(m []Model) (Division, error) {
				weights := make([]float64, len(m))
				for i := range m {
					weights[i] = m[i].Load / 10
				}
				return Weigh(m, weights, cores)
			},
		} {
			a, errA := divide(models)
			b, errB := divide(shuffled)
			if (errA == nil) != (errB == nil) {
				t.Errorf("seed %d, %s: %v and %v", seed, name, errA, errB)
			}
			if errA != nil || errB != nil {
				continue
			}
			restored := b
			restored.Cores = make([]int, len(models))
			for i, k := range order {
				restored.Cores[k] = b.Cores[i]
			}
			restored.Binding = order[b.Binding]
			same := gocmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Abs(y) })
			if d := gocmp.Diff(a, restored, same); d != "" || b.Cores[len(models)] != 0 {
				t.Errorf("seed %d, %s (-listed +shuffled):\n%s", seed, name, d)
			}
		}
	}
}

// Without any load there is nothing to divide.
func TestNothingToDivide(t *testing.T) {
	t.Parallel()
	d, err := Divide([]Model{certain("a", 0, 1)}, 4)
	want := Division{Cores: []int{0}, Scale: math.Inf(1), Binding: -1, Holds: 1}
	if diff := gocmp.Diff(want, d); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Seven cores carry all, and apart each needs as many as it has here: separate servers need the same
// numbers as a division, if models meet in the cores alone.
func TestApart(t *testing.T) {
	t.Parallel()
	models := []Model{certain("encoder", 120, 20, 45, 80, 121, 150), certain("ranker", 900, 300, 650, 901), certain("idle", 0)}
	apart, err := Apart(models, 1)
	if d := gocmp.Diff([]int{4, 3, 0}, apart); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	d, err := Divide(models, 7)
	if diff := gocmp.Diff([]int{4, 3, 0}, d.Cores); diff != "" || err != nil || d.Scale < 1 {
		t.Errorf("scale %v, %v (-want +got):\n%s", d.Scale, err, diff)
	}
	if d, err = Divide(models, 6); err != nil || d.Scale >= 1 {
		t.Errorf("six cores carry %v, %v", d.Scale, err)
	}
	_, err = Apart(models, 2)
	if want := `cannot keep the limits of "encoder": on 5 cores they do not hold at 2 × the load; allow longer latencies, or send fewer requests`; fmt.Sprint(err) != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// The error names the fewest models whose needs exceed the cores.
func TestConflicts(t *testing.T) {
	t.Parallel()
	small, pair, large := certain("small", 1, 5), certain("pair", 1, 0, 5), certain("large", 1, 0, 0, 0, 5)
	for _, tc := range []struct {
		models []Model
		cores  int
		want   string
	}{
		{[]Model{small, large}, 3, `cannot keep the limits of "large": on 3 cores they do not hold at any load; allow longer latencies, or send fewer requests`},
		{[]Model{small, pair}, 2, `cannot keep the limits of "small" and "pair" together: at any load they need 1 + 2 of 2 cores; allow longer latencies, or send fewer requests`},
		{[]Model{small, pair, large}, 5, `cannot keep the limits of "pair" and "large" together: at any load they need 2 + 4 of 5 cores; allow longer latencies, or send fewer requests`},
		{[]Model{small, pair, large}, 6, `cannot keep the limits of "small" and "pair" and "large" together: at any load they need 1 + 2 + 4 of 6 cores; allow longer latencies, or send fewer requests`},
	} {
		if _, err := Divide(tc.models, tc.cores); fmt.Sprint(err) != tc.want {
			t.Errorf("got  %v\nwant %s", err, tc.want)
		}
		weights := slices.Repeat([]float64{1}, len(tc.models))
		if _, err := Weigh(tc.models, weights, tc.cores); fmt.Sprint(err) != tc.want {
			t.Errorf("weights: got %v\nwant %s", err, tc.want)
		}
	}
}
