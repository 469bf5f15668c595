package gathering

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// taught returns a rule whose clients come back within a window: as many runs of one row as it takes.
// They take 20 ms, so that the window is 1 ms. The next instant is free from the second result on.
func taught(t *testing.T, instances int) (Rule, time.Duration) {
	t.Helper()
	r := New(instances)
	now := time.Duration(0)
	for range 3 * memory {
		now += 20 * ms
		r.Answer(1, now, 20*ms)
		r.Arrive(1, now+ms/2)
	}
	return r, now + 20*ms
}

// After n windows of one row whose clients all come back, the ratio is 1 − (1 − 1/64)ⁿ. With one instance
// it must exceed (1 + 1/20)/2 = 0.525. It does from n = 48 on: ln(0.475)/ln(63/64) = 47.3. The window of a
// run of 20 ms ends after 1 ms. One row is there, two run, and one is expected: the share of each of two
// batches is two.
func TestWaitsOnceClientsComeBack(t *testing.T) {
	t.Parallel()
	r := New(1)
	now := time.Duration(0)
	for n := range 60 {
		now += 20 * ms
		r.Answer(1, now, 20*ms)
		wait := r.Wait(1, 2, 8, now)
		if want := n >= 48; want != (wait > now) {
			t.Errorf("after %d returns the wait ends %v after now", n, wait-now)
		}
		if wait > now && wait != now+ms {
			t.Errorf("the wait ends %v after now, want 1 ms", wait-now)
		}
		r.Take()
		r.Arrive(1, now+ms/2)
	}
}

// Nobody comes back any more. The ratio r·(63/64)ⁿ is at most 0.525 after 41 windows of one row:
// ln(0.525)/ln(63/64) = 40.9.
func TestForgets(t *testing.T) {
	t.Parallel()
	r, now := taught(t, 1)
	waits := 0
	for range 200 {
		r.Answer(1, now, 20*ms)
		if r.Wait(1, 2, 8, now) > now {
			waits++
		}
		r.Take()
		now += 20 * ms
	}
	if waits < 30 || waits > 41 {
		t.Errorf("%d waits, want some, and at most 41", waits)
	}
}

// Poisson arrivals are never waited for, at any load that the instances can serve. As many rows are answered as
// come.
func TestChanceIsNoReturn(t *testing.T) {
	t.Parallel()
	for _, instances := range []int{1, 2, 8, 16, 40} {
		random := rand.New(rand.NewPCG(uint64(instances), 1))
		r := New(instances)
		now := time.Duration(0)
		// each answer is of a run of 20 ms; all instances are busy
		mean := float64(20*ms) / float64(instances)
		arrival := time.Duration(random.ExpFloat64() * mean)
		for range 20_000 {
			now += time.Duration(random.ExpFloat64() * mean)
			for ; arrival < now; arrival += time.Duration(random.ExpFloat64() * mean) {
				r.Arrive(1, arrival)
			}
			r.Answer(1, now, 20*ms)
			if wait := r.Wait(1, 100, 128, now); wait > now {
				t.Fatalf("%d instances: it waits, the ratio is %.2f of %.2f", instances, r.ratio, r.enough)
			}
		}
	}
}

// The share of each batch, and what ends a wait.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                                           string
		instances, answered, came, rows, running, most int
		want                                           bool
	}{
		{"one client", 1, 1, 1, 1, 0, 8, false},
		{"two clients and one instance", 1, 1, 0, 1, 0, 8, false},                   // (1 + 0 + 1)/2
		{"three clients and one instance", 1, 2, 0, 1, 0, 8, true},                  // (1 + 0 + 2)/2, rounded up
		{"three clients and two instances", 2, 1, 0, 1, 1, 8, false},                // (1 + 1 + 1)/3
		{"four clients and two instances", 2, 1, 0, 1, 2, 8, true},                  // (1 + 2 + 1)/3, rounded up
		{"eight clients and two instances, two are there", 2, 3, 0, 2, 3, 16, true}, // 8/3, rounded up
		{"eight clients and two instances, three are there", 2, 3, 1, 3, 3, 16, false},
		{"a full batch", 1, 16, 0, 4, 0, 4, false},
	} {
		r, now := taught(t, tc.instances)
		r.Answer(tc.answered, now, 20*ms)
		r.Arrive(tc.came, now)
		if got := r.Wait(tc.rows, tc.running, tc.most, now) > now; got != tc.want {
			t.Errorf("%s: it waits: %v", tc.name, got)
		}
	}
	r, now := taught(t, 1)
	r.Answer(4, now, 20*ms)
	r.Arrive(3, now+ms/10)
	if wait := r.Wait(1, 6, 8, now+ms/10); wait <= now+ms/10 {
		t.Error("it does not wait for the last of four")
	}
	r.Arrive(1, now+ms/5)
	if wait := r.Wait(1, 6, 8, now+ms/5); wait > now+ms/5 {
		t.Error("it waits although all came back")
	}
}

// Of the clients, three of four come back. It expects that many: of eight answered rows, six.
func TestExpectsTheLearnedShare(t *testing.T) {
	t.Parallel()
	r, now := taught(t, 1)
	for range 20 {
		r.Answer(64, now, 20*ms) // the memory is as long: the ratio is that of the last window
		r.Arrive(48, now+ms/2)
		now += 20 * ms
	}
	r.Answer(8, now, 20*ms)
	r.Arrive(5, now)
	if r.Wait(1, 20, 64, now) <= now {
		t.Error("it does not wait for the sixth")
	}
	r.Arrive(1, now)
	if r.Wait(1, 20, 64, now) > now {
		t.Error("it waits for a seventh")
	}
}

// A batch waits until its limit, even if the window is prolonged by the answers of another instance.
// The next batch has a limit of its own.
func TestLimit(t *testing.T) {
	t.Parallel()
	r, now := taught(t, 2)
	r.Answer(4, now, 20*ms)
	if got := r.Wait(1, 8, 8, now); got != now+ms {
		t.Errorf("the wait ends after %v, want 1 ms", got-now)
	}
	r.Answer(4, now+ms/2, 20*ms)
	if got := r.Wait(1, 4, 8, now+ms/2); got != now+ms {
		t.Errorf("prolonged to %v, want 1 ms", got-now)
	}
	if got := r.Wait(1, 4, 8, now+ms); got > now+ms {
		t.Errorf("at its limit the wait goes on until %v", got-now)
	}
	r.Take()
	if got := r.Wait(1, 4, 8, now+ms); got != now+3*ms/2 {
		t.Errorf("the wait of the next batch ends after %v, want 1.5 ms", got-now)
	}
	if got := r.Wait(1, 4, 8, now+2*ms); got > now+2*ms {
		t.Errorf("after the window the wait ends at %v", got-now)
	}
}

// The limit is that of a run of the share, although a longer run has just ended. One row takes 20 ms, 16
// take 160 and 32 take 320.
func TestLimitIsOfTheShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		came, running int
		want          time.Duration
	}{
		{"two rows: (1 + 1 + 2)/2", 28, 1, ms}, // of 32 rows, 0.95 are expected: 30
		{"sixteen: (1 + 0 + 30)/2", 0, 0, 8 * ms},
		{"the most", 0, 40, 16 * ms},
	} {
		r, now := taught(t, 1)
		r.usual.add(16, 160*ms)
		r.Answer(32, now, 320*ms)
		r.Arrive(tc.came, now)
		if got := r.Wait(1, tc.running, 32, now); got != now+tc.want {
			t.Errorf("%s: the wait ends after %v, want %v", tc.name, got-now, tc.want)
		}
	}
}

// Nothing is waited for, or learned, after runs below 2 ms: the wait would be below 100 µs.
func TestShortRuns(t *testing.T) {
	t.Parallel()
	r := New(1)
	now := time.Duration(0)
	for range 1000 {
		now += 10 * ms
		r.Answer(8, now, 2*ms-1)
		r.Arrive(8, now)
		if r.end != 0 || r.Wait(1, 0, 8, now) > now {
			t.Fatal("a window is open")
		}
	}
}

// A run that took a hundred times as long as usual makes no long window.
func TestDisturbedRun(t *testing.T) {
	t.Parallel()
	r, now := taught(t, 1)
	r.Answer(4, now, 20*ms)
	now += 20 * ms
	r.Answer(4, now, 2000*ms)
	if got := r.Wait(1, 0, 8, now); got > now+ms {
		t.Errorf("the wait ends after %v, want 1 ms at most", got-now)
	}
}

// Whatever happens: no wait is longer than a 20th of the longest run, and the ratio is one.
func FuzzRule(f *testing.F) {
	f.Add(uint8(2), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252, 253, 254, 255})
	f.Fuzz(func(t *testing.T, instances uint8, script []byte) {
		r := New(int(instances))
		now, longest, began := time.Duration(0), time.Duration(0), time.Duration(-1)
		for i, b := range script {
			rows := 1 + int(b>>4)
			now += time.Duration(b) * 10 * time.Microsecond
			switch (i + int(b)) % 4 {
			case 0:
				run := time.Duration(b) * ms
				longest = max(longest, run)
				r.Answer(rows, now, run)
			case 1:
				r.Arrive(rows, now)
			case 2:
				r.Take()
				began = -1
			case 3:
				until := r.Wait(rows, rows, 16, now)
				if until > now && began < 0 {
					began = now
				}
				if until > now && until > began+longest/part {
					t.Fatalf("it waits from %v until %v, the longest run is %v", began, until, longest)
				}
			}
			if math.IsNaN(r.ratio) || r.ratio < 0 || r.ratio > 1 {
				t.Fatalf("the ratio is %v", r.ratio)
			}
		}
	})
}

func TestClasses(t *testing.T) {
	t.Parallel()
	last := 0
	for rows := 1; rows < 1<<12; rows++ {
		if c := class(rows); c < last || c > last+2 || c >= len(times{}) {
			t.Fatalf("class %d of %d rows after %d", c, rows, last)
		}
		last = class(rows)
	}
	for _, same := range [][2]int{{4, 5}, {6, 7}, {8, 11}, {12, 15}, {1 << 20, 3<<19 - 1}} {
		if class(same[0]) != class(same[1]) || class(same[1]) == class(same[1]+1) {
			t.Errorf("%d to %d rows are not a class", same[0], same[1])
		}
	}
	if class(math.MaxInt32) >= len(times{}) {
		t.Error("a class is missing")
	}
}

// The usual time of three rows is that of two until three have run.
func TestUsualTimes(t *testing.T) {
	t.Parallel()
	var u times
	if u.of(3) != 0 {
		t.Error("a time is known")
	}
	u.add(2, 8*ms)
	if got := u.of(3); got != 8*ms {
		t.Errorf("three rows take %v, want 8 ms", got)
	}
	if got := u.of(1); got != 0 {
		t.Errorf("one row takes %v, want nothing", got)
	}
	if got := u.add(2, 16*ms); got != 8*ms {
		t.Errorf("the shorter one is %v, want 8 ms", got)
	}
	if got := u.of(2); got != 9*ms { // 8 + (16 − 8)/8
		t.Errorf("two rows take %v, want 9 ms", got)
	}
}
