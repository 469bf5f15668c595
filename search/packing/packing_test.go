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

// certain returns a model with highest loads on 1, 2, … cores.
func certain(name string, load float64, highest ...float64) Model {
	return Model{Name: name, Load: load, Highest: highest}
}

// random returns models whose highest loads rise with the cores by chance, and the cores.
func random(r *rand.Rand) ([]Model, int) {
	cores := 1 + r.IntN(8)
	models := make([]Model, 1+r.IntN(4))
	for i := range models {
		models[i] = Model{Name: fmt.Sprint("model ", i), Load: 10 + 100*r.Float64()}
		least, sum := r.IntN(3), 0.0 // fewer cores than least carry nothing
		for c := range 1 + r.IntN(cores) {
			if c >= least {
				sum += 50 * r.Float64()
			}
			models[i].Highest = append(models[i].Highest, sum)
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
		models, cores := random(rand.New(rand.NewPCG(seed, 0)))
		best, room := 0.0, math.Inf(-1)
		divisions(len(models), cores, func(of []int) {
			least, sum := math.Inf(1), 0.0
			for i, m := range models {
				s := m.on(of[i]) / m.Load
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
			sum += math.Log(m.on(d.Cores[i]) / m.Load)
		}
		if used > cores || math.Abs(sum-room) > 1e-9 {
			t.Errorf("seed %d: %v of %d cores have the room %v, want %v", seed, d.Cores, cores, sum, room)
		}
	}
}

// A model without load changes nothing for the others. Order and names have no influence.
func TestNamesAndIdleModels(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		models, cores := random(r)
		order := r.Perm(len(models))
		shuffled := make([]Model, len(models))
		for i, k := range order {
			shuffled[i] = models[k]
			shuffled[i].Name = fmt.Sprint("another ", k)
		}
		shuffled = append(shuffled, Model{Name: "idle", Highest: []float64{5}})
		a, errA := Divide(models, cores)
		b, errB := Divide(shuffled, cores)
		if (errA == nil) != (errB == nil) {
			t.Errorf("seed %d: %v and %v", seed, errA, errB)
		}
		if errA != nil || errB != nil {
			continue
		}
		restored := b
		restored.Cores = make([]int, len(models))
		for i, k := range order {
			restored.Cores[k] = b.Cores[i]
		}
		same := gocmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Abs(y) })
		if d := gocmp.Diff(a, restored, same); d != "" || b.Cores[len(models)] != 0 {
			t.Errorf("seed %d (-listed +shuffled):\n%s", seed, d)
		}
	}
}

// Without any load there is nothing to divide.
func TestNothingToDivide(t *testing.T) {
	t.Parallel()
	d, err := Divide([]Model{certain("a", 0, 1)}, 4)
	want := Division{Cores: []int{0}, Scale: math.Inf(1)}
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
	}
}

// Models fit at a scale if and only if the best division carries it. Otherwise the named ones do not fit either, and without any
// of them the others do.
func TestFits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		models, cores := random(r)
		at := 2 * r.Float64()
		d, err := Divide(models, cores)
		carries := err == nil && d.Scale >= at
		conflict := new(Conflict)
		switch err := Fits(models, cores, at); {
		case (err == nil) != carries:
			t.Errorf("seed %d: scale %v on %d cores: %v, and the best division has %v", seed, at, cores, err, d.Scale)
		case err == nil:
		case !errors.As(err, &conflict) || conflict.Scale != at || len(conflict.Models) == 0:
			t.Errorf("seed %d: %v", seed, err)
		default:
			named := slices.DeleteFunc(slices.Clone(models), func(m Model) bool { return !slices.Contains(conflict.Models, m.Name) })
			if Fits(named, cores, at) == nil {
				t.Errorf("seed %d: %v: they fit", seed, err)
			}
			if len(named) > 1 && Fits(named[1:], cores, at) != nil {
				t.Errorf("seed %d: %v: without the first they do not fit either", seed, err)
			}
		}
	}
}
