package steering

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"tuner/adaptive"
)

// table has two configurations of a model: one for low rates, one for high ones.
func table(pays bool) *adaptive.Table {
	config := func(instances int) []byte {
		return fmt.Appendf(nil, `{"name": "m", "instance_group": [{"count": %d}]}`, instances)
	}
	l := func(v float64) adaptive.Latency { return adaptive.Latency{Value: v, Low: 0.95 * v, High: 1.05 * v} }
	return &adaptive.Table{
		Format: adaptive.Format, Model: "m", Pays: pays, Summary: "because", Quantile: 0.99, Static: "large", Rates: []float64{100, 1000},
		Configurations: []adaptive.Configuration{
			{Name: "small", Config: config(1), Latencies: []adaptive.Latency{l(0.010), l(0.100)}},
			{Name: "large", Config: config(2), Latencies: []adaptive.Latency{l(0.020), l(0.020)}},
		},
	}
}

// fake is a server that counts requests, and keeps the configurations that it got.
type fake struct {
	arrived uint64
	missing bool
	got     []string
	fail    error
	tries   int
}

func (f *fake) Arrived(context.Context, string) (uint64, error) {
	if f.missing {
		return 0, errors.New("it is not served")
	}
	return f.arrived, nil
}
func (f *fake) Reconfigure(_ context.Context, _, config string) error {
	f.tries++
	if f.fail == nil {
		f.got = append(f.got, config)
	}
	return f.fail
}

func newFake(t *testing.T, f *fake, x *adaptive.Table) *Wheel {
	t.Helper()
	w, err := New(t.Context(), f, x, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tick lets a wheel decide a second after its last count.
func tick(t *testing.T, w *Wheel) {
	t.Helper()
	w.tick(t.Context(), w.at.Add(adaptive.Tick))
}

// The model gets the static configuration, and another one when its load asks for it.
func TestWheelsFollowTheRule(t *testing.T) {
	t.Parallel()
	x, f := table(true), &fake{arrived: 500}
	w := newFake(t, f, x)
	small, large := string(x.Configurations[0].Config), string(x.Configurations[1].Config)
	for range 20 {
		f.arrived += 30
		tick(t, w)
	}
	for range 5 {
		f.arrived += 900
		tick(t, w)
	}
	if want := []string{large, small, large}; !slices.Equal(f.got, want) {
		t.Errorf("%q, want %q", f.got, want)
	}
}

// A count that falls, since a request has begun to execute, is no request, and none is counted twice.
func TestWheelsCountOnce(t *testing.T) {
	t.Parallel()
	f := &fake{}
	w := newFake(t, f, table(true))
	f.arrived = 100
	tick(t, w)
	f.arrived = 95
	tick(t, w)
	f.arrived = 110
	tick(t, w)
	if w.seen != 110 {
		t.Errorf("%d requests seen, want 110", w.seen)
	}
}

// A change that fails leaves the configuration, and is tried again after a minute.
func TestWheelsTryAgain(t *testing.T) {
	t.Parallel()
	x, f := table(true), &fake{}
	w := newFake(t, f, x)
	f.fail = errors.New("no memory")
	for range 60 {
		tick(t, w)
	}
	if got := w.rule.Current().Name; got != "large" || len(f.got) != 1 || f.tries != 2 {
		t.Errorf("the rule has %s after %d changes and %d tries, want large after 1 and 2", got, len(f.got), f.tries)
	}
	f.fail = nil
	tick(t, w)
	if got := w.rule.Current().Name; got != "small" || len(f.got) != 2 {
		t.Errorf("the rule has %s after %d changes", got, len(f.got))
	}
}

// Where changing does not pay nothing happens, and a table of another model is refused.
func TestWheelsAreLeftOut(t *testing.T) {
	t.Parallel()
	f := &fake{}
	if w := newFake(t, f, table(false)); w != nil || len(f.got) != 0 {
		t.Errorf("%v after %d changes", w, len(f.got))
	}
	_, err := New(t.Context(), &fake{missing: true}, table(true), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "not served") {
		t.Errorf("%v", err)
	}
}

// Counts are those of a tick, whatever time has passed: twice as many in two seconds are the same rate, and a
// moment after a change nothing is counted.
func TestWheelsScaleCounts(t *testing.T) {
	t.Parallel()
	f := &fake{}
	w := newFake(t, f, table(true))
	for range 3 { // 1,800 requests in two seconds are 900/s, at which the large configuration stays
		f.arrived += 1800
		w.tick(t.Context(), w.at.Add(2*adaptive.Tick))
	}
	if len(f.got) != 1 {
		t.Errorf("%d changes at 900/s", len(f.got)-1)
	}
	before := w.at
	w.tick(t.Context(), w.at.Add(adaptive.Tick/10))
	if w.at != before {
		t.Error("a tenth of a tick was counted")
	}
	for range 20 {
		f.arrived += 60
		w.tick(t.Context(), w.at.Add(2*adaptive.Tick))
	}
	if len(f.got) != 2 {
		t.Errorf("%d changes at 30/s, want one", len(f.got)-1)
	}
}

// A server that does not answer is spoken of once, and the model keeps its configuration meanwhile.
func TestWheelsWaitForServers(t *testing.T) {
	t.Parallel()
	f := &fake{}
	var log strings.Builder
	w, err := New(t.Context(), f, table(true), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	f.missing = true
	for range 5 {
		tick(t, w)
	}
	if n := strings.Count(log.String(), "cannot count the requests"); n != 1 || len(f.got) != 1 {
		t.Errorf("%d messages, %d changes", n, len(f.got)-1)
	}
}

// A server that did not answer may have been started again, with the configuration of its repository. It gets the rule's
// again, once, also a minute after a try that failed.
func TestWheelsRestoreConfigurations(t *testing.T) {
	t.Parallel()
	x, f := table(true), &fake{}
	w := newFake(t, f, x)
	serve := func(ticks int) {
		t.Helper()
		for range ticks {
			f.arrived += 900
			tick(t, w)
		}
	}
	serve(3)
	f.missing = true
	serve(2)
	f.missing, f.fail = false, errors.New("it is loading")
	serve(1)
	f.fail = nil
	serve(60)
	large := string(x.Configurations[1].Config)
	if want := []string{large, large}; !slices.Equal(f.got, want) {
		t.Errorf("%q, want %q", f.got, want)
	}
	if f.tries != 3 {
		t.Errorf("%d tries, want 3", f.tries)
	}
}
