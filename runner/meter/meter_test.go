package meter

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/measure"
)

// control implements Control with a function.
type control func(ctx context.Context, model string) (api.Statistics, error)

func (c control) Statistics(ctx context.Context, model string) (api.Statistics, error) {
	return c(ctx, model)
}

func TestReadingOfThisProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	var requests uint64
	m, err := Open(t.Context(), Options{Models: []Subject{{Model: Model{"m", "1"}}}, PID: os.Getpid(), Control: control(func(_ context.Context, model string) (api.Statistics, error) {
		requests += 10
		return api.Statistics{ModelStats: []api.ModelStatistics{counters("1", requests), counters("2", 1)}}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var readings []Reading
	for len(readings) < 2 || readings[1].Engine.CPU == 0 { // the system counts CPU time in steps of 10 ms
		r, err := m.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if readings = append(readings, r); len(readings) > 2 {
			readings = readings[1:]
		}
	}
	if r := readings[1]; r.Memory < 1e6 || r.Engine.CPU <= 0 || r.Client <= 0 || !r.told || len(r.Of(0).Own) != 1 || r.At.Before(readings[0].At) {
		t.Errorf("%+v", r)
	}
	if w := Fill(0, make([]measure.Window, 1), readings); w[0].Server.Requests != 10 {
		t.Errorf("%+v", w[0])
	}
	if err := m.Problem(); err != nil {
		t.Error(err)
	}
	m.Close() // the deferred call closes it again
}

func TestReadingWithoutAServersHelp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options Options
		told    bool
	}{
		"nothing known":          {Options{}, false},
		"elsewhere":              {Options{Remote: true}, false}, // or on this machine, under another address
		"a process that is gone": {Options{PID: 1 << 30}, false},
	} {
		m, err := Open(t.Context(), c.options)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Read(t.Context())
		if err != nil || r.told != c.told || r.Models != nil || r.Engine.CPU != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		m.Close()
	}
}

func TestStatisticsOfAnEnsemble(t *testing.T) {
	t.Parallel()
	var asked []string
	part := func(name string) api.ModelStatistics { return api.ModelStatistics{Name: name, Version: "1"} }
	o := Options{Models: []Subject{{Model{Name: "both"}, []Model{{Name: "first"}, {Name: "second", Version: "1"}}}}, Control: control(func(_ context.Context, model string) (api.Statistics, error) {
		asked = append(asked, model)
		return api.Statistics{ModelStats: []api.ModelStatistics{part("second"), part("both"), part("first"), part("else")}}, nil
	})}
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := m.Read(t.Context())
	if c := r.Of(0); err != nil || len(c.Own) != 1 || len(c.Together) != 2 || c.Together[0][0].Name != "first" || c.Together[1][0].Name != "second" {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff([]string{""}, asked); diff != "" {
		t.Errorf("all in one answer (-want +got):\n%s", diff)
	}
}

// The statistics of several models under load come from one answer. Each completes the windows of its
// own model. The figures of process and machine are the same in all.
func TestStatisticsOfSeveralModels(t *testing.T) {
	t.Parallel()
	var asked []string
	requests := uint64(0)
	o := Options{PID: os.Getpid(), Models: []Subject{
		{Model: Model{Name: "ranker"}}, {Model: Model{Name: "both"}, Together: []Model{{Name: "m"}}}, {Model: Model{Name: "m"}},
	}, Control: control(func(_ context.Context, model string) (api.Statistics, error) {
		asked = append(asked, model)
		requests += 10
		named := func(name string, n uint64) api.ModelStatistics {
			c := counters("1", n)
			c.Name = name
			return c
		}
		return api.Statistics{ModelStats: []api.ModelStatistics{named("m", 2*requests), named("both", 3*requests), named("ranker", requests), named("else", 1)}}, nil
	})}
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var readings []Reading
	for range 2 {
		r, err := m.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		readings = append(readings, r)
	}
	if diff := cmp.Diff([]string{"", ""}, asked); diff != "" {
		t.Errorf("one answer per reading (-want +got):\n%s", diff)
	}
	windows := make([]measure.Window, len(o.Models))
	for i, want := range []int{10, 30, 20} {
		windows[i] = Fill(i, make([]measure.Window, 1), readings)[0]
		if got := windows[i].Server.Requests; got != want {
			t.Errorf("%d requests of %q, want %d", got, o.Models[i].Name, want)
		}
		windows[i].Server, windows[i].Stages = measure.ServerStats{}, nil
		if diff := cmp.Diff(windows[0], windows[i]); diff != "" {
			t.Errorf("process and machine of model %d (-model 0 +model %d):\n%s", i, i, diff)
		}
	}
	if parts := Composed(readings[0].Of(1), readings[1].Of(1)); len(parts) != 1 || parts[0].Requests != 20 {
		t.Errorf("the ensemble's model: %+v", parts)
	}
}

func TestStatisticsThatAreNotGiven(t *testing.T) {
	t.Parallel()
	deaf := control(func(ctx context.Context, _ string) (api.Statistics, error) {
		<-ctx.Done()
		return api.Statistics{}, ctx.Err()
	})
	stopped := errors.New("stopped by the user")
	for name, c := range map[string]struct {
		control control
		cause   error // cause of the context's end
		want    string
	}{
		"refused":     {func(context.Context, string) (api.Statistics, error) { return api.Statistics{}, errors.New("no") }, nil, `cannot read the statistics of model "m": no`},
		"overdue":     {deaf, nil, "reading the statistics took more than 3s"},
		"interrupted": {deaf, stopped, stopped.Error()},
		"no such model": {func(context.Context, string) (api.Statistics, error) { return api.Statistics{}, nil }, nil,
			`cannot find model "m" in the server's statistics`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cause != nil {
					time.AfterFunc(time.Second, func() { cancel(c.cause) })
				}
				m, err := Open(ctx, Options{Models: []Subject{{Model: Model{Name: "m"}}}, Control: c.control, Timeout: 3 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				if r, err := m.Read(ctx); err == nil || err.Error() != c.want {
					t.Errorf("%+v, %v, want %q", r, err, c.want)
				}
			})
		})
	}
}

// A GPU computes half of the time in a rhythm. Samples show 0.1 in the first half of each second
// and 0.9 in the second half.
func TestGPUsAreSampledBetweenReadings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, closed := time.Now(), 0
		source := gpuSource{
			read: func(context.Context) (figures, error) {
				passed := time.Since(begin)
				utilization := 0.9
				if part := passed % time.Second; part > 0 && part <= 500*ms {
					utilization = 0.1
				}
				return figures{gpus: []hostinfo.GPUUsage{gpu("A", utilization, 100, 100*passed.Seconds(), int64(passed.Seconds()))}}, nil
			},
			close: func() { closed++ },
		}
		m, err := open(t.Context(), Options{}, source)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := m.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4*time.Second - ms) // a reading lies between two samples
		}
		r, err := m.Read(t.Context())
		if err != nil || len(r.GPUs) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		g := r.GPUs[0]
		if g.Utilization < 0.49 || g.Utilization > 0.51 || g.Power < 99.9 || g.Power > 100.1 || g.MemoryUsed != 7 || g.Energy < 399 || g.Energy > 401 {
			t.Errorf("%+v, want half of the time, 100 W, 400 J, 7 bytes", g)
		}
		m.Close()
		if closed != 1 {
			t.Errorf("the source was closed %d times", closed)
		}
	})
}

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	var answer atomic.Value // func(http.ResponseWriter)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Load().(func(http.ResponseWriter))(w) }))
	defer server.Close()
	text := func(page string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = w.Write([]byte(page)) }
	}
	missing := func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }
	o := Options{Metrics: server.URL + "/metrics", Interval: time.Hour}

	answer.Store(text(page))
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if r, err := m.Read(t.Context()); err != nil || len(r.GPUs) != 2 || math.Abs(r.GPUs[0].Utilization-0.75) > 1e-9 || m.Problem() != nil {
		t.Errorf("%+v, %v, %v", r, err, m.Problem())
	}
	answer.Store(missing) // after Open it is a problem, but not an error
	if r, err := m.Read(t.Context()); err != nil || len(r.GPUs) != 0 || m.Problem() == nil || !strings.Contains(m.Problem().Error(), "404") {
		t.Errorf("%+v, %v, %v", r, err, m.Problem())
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"missing": {missing, `cannot read the metrics page: ` + o.Metrics + ` answered "404 Not Found"`},
		"HTML":    {text("<html>"), `cannot read the metrics page of ` + o.Metrics + `: is not in Prometheus' text format`},
	} {
		answer.Store(c.answer)
		m, err := Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		answer.Store(text(page))
		if r, err := m.Read(t.Context()); err != nil || len(r.GPUs) != 2 {
			t.Errorf("%s at first: %+v, %v", name, r, err)
		}
		m.Close()
	}
	answer.Store(text("other 1\n"))
	none, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if problem := none.Problem(); problem == nil || !strings.Contains(problem.Error(), "the metrics page of "+o.Metrics+" has none") {
		t.Errorf("a page without GPUs: %v", problem)
	}
	answer.Store(text("nv_cpu_memory_used_bytes 5e9\n"))
	whole, err := Open(t.Context(), Options{Metrics: o.Metrics, MachineMemory: true, Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if r, err := whole.Read(t.Context()); err != nil || r.Memory != 5e9 {
		t.Errorf("the memory of a remote machine is %d, %v", r.Memory, err)
	}
	s, err := ReadPage(t.Context(), o.Metrics)
	if err != nil || s.Lack(measure.Memory) != "" || s.Lack(measure.CPU) == "" || !strings.Contains(s.Lack(measure.GPUMemory), "there are no GPUs on the metrics page") {
		t.Errorf("%+v, %v", s, err)
	}
	answer.Store(text("other 1\n"))
	if s, err = ReadPage(t.Context(), o.Metrics); err != nil || !strings.Contains(s.Lack(measure.Memory), "nv_cpu_memory_used_bytes") {
		t.Errorf("a page without memory: %+v, %v", s, err)
	}
	if s, err = ReadPage(t.Context(), ""); err != nil || !strings.Contains(s.Lack(measure.Memory), "runner.metrics_url") || s.Lack(measure.Throughput) != "" {
		t.Errorf("no page: %+v, %v", s, err)
	}
	if _, err := ReadPage(t.Context(), "http://127.0.0.1:1/metrics"); err == nil {
		t.Error("a page that is not there has sources")
	}
	for _, url := range []string{"http://127.0.0.1:1/metrics", "no url at all"} {
		if _, err := Open(t.Context(), Options{Metrics: url}); err == nil || !strings.Contains(err.Error(), "cannot read the metrics page") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Children that this process starts after Open count as its own, not as others.
func TestStartedProcessesAreOwn(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	m, err := Open(t.Context(), Options{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	first, err := m.Read(t.Context())
	if err != nil || !first.Machine.IsKnown() {
		t.Fatalf("%+v, %v", first, err)
	}
	child := exec.Command("/bin/sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait() // the child was killed
	}()
	for { // wait until the child alone has used ten ticks
		r, err := m.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if usage, err := hostinfo.Process(child.Process.Pid); err != nil || usage.CPU > 100*ms {
			if own, client := r.Own-first.Own, r.Client-first.Client; err != nil || own < client+50*ms {
				t.Errorf("%v are own, of which this process used %v, and the child %v, %v", own, client, usage.CPU, err)
			}
			return
		}
	}
}
