package meter

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/measure"
)

const us = time.Microsecond

// counters returns the statistics of a version after n requests of 2 rows each, executed two by
// two. Each request was 1 µs in the queue, 2, 3 and 4 µs in the parts of computing, and 10 µs in
// all.
func counters(version string, n uint64) api.ModelStatistics {
	sum := func(us uint64) api.Duration { return api.Duration{Count: n, NS: n * us * 1000} }
	return api.ModelStatistics{
		Name: "m", Version: version, InferenceCount: 2 * n, ExecutionCount: n / 2,
		InferenceStats: api.InferenceStatistics{Success: sum(10), Queue: sum(1), ComputeInput: sum(2), ComputeInfer: sum(3), ComputeOutput: sum(4)},
		BatchStats:     []api.BatchStatistics{{BatchSize: 4, ComputeInfer: api.Duration{Count: n / 2, NS: n / 2 * 3000}}},
	}
}

// served returns the change by n such requests.
func served(n int) measure.ServerStats {
	d := time.Duration(n)
	return measure.ServerStats{
		Requests: n, Inferences: 2 * n, Executions: n / 2, Queue: d * us, ComputeInput: d * 2 * us, ComputeInfer: d * 3 * us, ComputeOutput: d * 4 * us,
		Success: d * 10 * us, Batches: []measure.BatchStat{{Size: 4, Executions: n / 2, ComputeInfer: d / 2 * 3 * us}},
	}
}

func TestServed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to []api.ModelStatistics
		want     measure.ServerStats
	}{
		"one version":              {[]api.ModelStatistics{counters("1", 10)}, []api.ModelStatistics{counters("1", 110)}, served(100)},
		"the version that grew":    {[]api.ModelStatistics{counters("1", 10), counters("2", 500)}, []api.ModelStatistics{counters("1", 110), counters("2", 500)}, served(100)},
		"the one that grew most":   {[]api.ModelStatistics{counters("1", 10), counters("2", 500)}, []api.ModelStatistics{counters("2", 560), counters("1", 20)}, served(60)},
		"none grew":                {[]api.ModelStatistics{counters("1", 10)}, []api.ModelStatistics{counters("1", 10)}, measure.ServerStats{}},
		"loaded in between":        {nil, []api.ModelStatistics{counters("3", 40)}, served(40)},
		"loaded anew":              {[]api.ModelStatistics{counters("1", 100)}, []api.ModelStatistics{counters("1", 40)}, served(40)},
		"unloaded in between":      {[]api.ModelStatistics{counters("1", 100)}, nil, measure.ServerStats{}},
		"a server without figures": {nil, nil, measure.ServerStats{}},
	} {
		got := Served(Counters{Own: c.from}, Counters{Own: c.to})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// With a cache and with failures, Served has the figures that perf_analyzer reports (PA §5), and no
// others.
func TestServedFromCacheOrNotAtAll(t *testing.T) {
	t.Parallel()
	from := counters("1", 0)
	to := counters("1", 8)
	to.InferenceStats.CacheHit = api.Duration{Count: 5, NS: 5000}
	to.InferenceStats.CacheMiss = api.Duration{Count: 3, NS: 9000}
	to.InferenceStats.Fail = api.Duration{Count: 2, NS: 700}
	got := Served(Counters{Own: []api.ModelStatistics{from}}, Counters{Own: []api.ModelStatistics{to}})
	want := served(8)
	want.CacheHits, want.CacheHit, want.CacheMisses, want.CacheMiss, want.Failures = 5, 5*us, 3, 9*us, 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// If all requests of a version fail, it is still the version in use.
	failing := from
	failing.InferenceStats.Fail.Count = 7
	if got := Served(Counters{Own: []api.ModelStatistics{from}}, Counters{Own: []api.ModelStatistics{failing}}); got.Failures != 7 {
		t.Errorf("%+v, want 7 failures", got)
	}
}

func TestServedByAnEnsemble(t *testing.T) {
	t.Parallel()
	// 10 requests. The first model ran once for each, the second twice. Another version of the
	// second is busy for other clients, but less.
	from := Counters{
		Own:      []api.ModelStatistics{counters("1", 0)},
		Together: [][]api.ModelStatistics{{counters("1", 5)}, {counters("1", 0), counters("2", 0)}},
	}
	to := Counters{
		Own:      []api.ModelStatistics{counters("1", 10)},
		Together: [][]api.ModelStatistics{{counters("1", 15)}, {counters("1", 8), counters("2", 20)}},
	}
	if diff := cmp.Diff([]Part{{Model{"m", "1"}, served(10)}, {Model{"m", "2"}, served(20)}}, Composed(from, to)); diff != "" {
		t.Errorf("the parts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Part{{Model: Model{"m", "1"}}, {Model: Model{"m", "2"}}}, Composed(to, to)); diff != "" {
		t.Errorf("parts that served nothing (-want +got):\n%s", diff)
	}
	want := served(10)
	want.Queue, want.ComputeInput, want.ComputeInfer, want.ComputeOutput = 30*us, 60*us, 90*us, 120*us
	if diff := cmp.Diff(want, Served(from, to)); diff != "" {
		t.Errorf("the ensemble (-want +got):\n%s", diff)
	}
}

func TestBatchDelta(t *testing.T) {
	t.Parallel()
	stat := func(size, count int) api.BatchStatistics {
		return api.BatchStatistics{BatchSize: uint64(size), ComputeInfer: api.Duration{Count: uint64(count), NS: uint64(count) * 1000}}
	}
	got := batchDelta([]api.BatchStatistics{stat(1, 5), stat(4, 2)}, []api.BatchStatistics{stat(8, 3), stat(4, 6), stat(1, 5)})
	want := []measure.BatchStat{{Size: 4, Executions: 4, ComputeInfer: 4 * us}, {Size: 8, Executions: 3, ComputeInfer: 3 * us}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	s := api.Statistics{ModelStats: []api.ModelStatistics{counters("1", 1), {Name: "other", Version: "7"}, counters("3", 2)}}
	if got, err := versions(s, "m", ""); err != nil || len(got) != 2 {
		t.Errorf("all versions: %+v, %v", got, err)
	}
	if got, err := versions(s, "m", "3"); err != nil || len(got) != 1 || got[0].Version != "3" {
		t.Errorf("version 3: %+v, %v", got, err)
	}
	for _, c := range []struct{ model, version, want string }{
		{"m", "2", `cannot find version "2" of model "m" in the server's statistics: there is 1, 3`},
		{"n", "", `cannot find model "n" in the server's statistics`},
	} {
		if got, err := versions(s, c.model, c.version); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %+v, %v, want %q", c.model, c.version, got, err, c.want)
		}
	}
}
