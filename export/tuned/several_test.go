package tuned_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/export/tuned"
	"tuner/export/tuned/tunedtest"
	"tuner/measure"
	"tuner/report/result"
)

// Each of several models has its load at the answer's scale, and its own figures and limits. Memory and launch
// are the server's, and stand with the first model.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	models, err := tuned.Read(tunedtest.Analyzed(t, "../..", tunedtest.Two), nil)
	if err != nil {
		t.Fatal(err)
	}
	encoder, ranker := models[0], models[1]
	// 60 requests/s, and a concurrency of 2, at scale 3
	loads := []measure.Load{{RequestRate: 180, BatchSize: 1}, {Concurrency: 6, BatchSize: 2}}
	if diff := cmp.Diff(loads, []measure.Load{encoder.Load, ranker.Load}); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	for _, m := range models {
		// the limit on the server's memory is no limit of a model
		if len(m.Limits) != 1 || m.Limits[0].Metric != measure.LatencyP99 || *m.Limits[0].Max != m.P99Limit || !m.Together {
			t.Errorf("%s has the limits %+v", m.Name, m.Limits)
		}
		if _, has := m.Values[measure.Scale]; has || m.Values[measure.CPU].Value != 1.5 {
			t.Errorf("%s has the figures %v", m.Name, m.Values)
		}
	}
	if encoder.P99Limit != 0.05 || ranker.P99Limit != 0.01 {
		t.Errorf("limits %g and %g", encoder.P99Limit, ranker.P99Limit)
	}
	if a, b := encoder.Values[measure.Throughput].Value, ranker.Values[measure.Throughput].Value; a != 180 || b != 2038.5 {
		t.Errorf("throughputs %g and %g, want those of each, not the sum", a, b)
	}
	if encoder.SHA256 != "abencoder" || ranker.SHA256 != "abranker" || encoder.Memory != 330e6 || ranker.Memory != 0 || ranker.LaunchTime != 0 {
		t.Errorf("models %+v and %+v", encoder, ranker)
	}
	if bytes := tuned.Memory(models); bytes != 330e6 {
		t.Errorf("%g bytes, want those of one server", bytes)
	}
}

// Cores of models that were measured together: the threads of all, the cores that the server used plus one, and
// at most the machine's.
func TestCoresTogether(t *testing.T) {
	t.Parallel()
	check := func(want, machine int, used float64, threads ...int) {
		t.Helper()
		var models []tuned.Model
		for _, n := range threads {
			m := tuned.Model{Together: true, Instances: 2, Threads: n, Values: map[measure.Metric]measure.Estimate{measure.CPU: {Value: used}}}
			m.Host.CPU.Logical = machine
			models = append(models, m)
		}
		if got := tuned.Cores(models); got != want {
			t.Errorf("threads %v on %d cores: %d, want %d", threads, machine, got, want)
		}
	}
	check(6, 16, 1, 1, 2) // 2 · 1 + 2 · 2
	check(9, 16, 7.5, 1)  // ⌈7.5⌉ + 1, once for all
	check(9, 16, 7.5, 1, 1)
	check(4, 4, 3, 1, 2)   // the machine
	check(16, 16, 1, 1, 0) // one has a thread for each core
	check(4, 0, 1, 1, 0)   // an unknown machine
}

// A model that was measured alone is no part of a group.
func TestGroups(t *testing.T) {
	t.Parallel()
	of := func(name, input string, together bool) tuned.Model {
		return tuned.Model{Name: name, Input: input, Together: together}
	}
	groups := tuned.Groups([]tuned.Model{of("a", "1", true), of("b", "1", true), of("c", "2", true), of("d", "2", false), of("e", "2", false)})
	var got []string
	for _, g := range groups {
		var names []string
		for _, m := range g {
			names = append(names, m.Name)
		}
		got = append(got, strings.Join(names, "+"))
	}
	if diff := cmp.Diff([]string{"a+b", "c", "d", "e"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// A result that contradicts itself is refused.
func TestWrongResultsOfSeveralModels(t *testing.T) {
	t.Parallel()
	check := func(want string, replace ...string) {
		t.Helper()
		if _, err := tuned.Parse("result.json", tunedtest.Text(t, "../..", tunedtest.Two, replace...), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check(`has no configuration of the model "other"`, `"models": [
    {
      "model": "encoder"`, `"models": [
    {
      "model": "other"`)
	check(`"ranker" is configured as "other"`, `name: \"ranker\"\nplatform`, `name: \"other\"\nplatform`)
	check("is not a load", `"scale": 3,`, `"scale": 0,`)
	check(`host_policies of encoder+ranker_config_3: cannot read the host policy "$(reboot),cpu-cores=0"`,
		`"name": "encoder+ranker_config_3",`, `"name": "encoder+ranker_config_3", "host_policies": ["$(reboot),cpu-cores=0"],`)
}

// Each model has the host policies that its own configuration names.
func TestPoliciesOfModels(t *testing.T) {
	t.Parallel()
	models, err := tuned.Parse("result.json", tunedtest.Text(t, "../..", tunedtest.Two, tunedtest.Divided()...), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"cores_0-0,cpu-cores=0-0"}, {"cores_1-1,cpu-cores=1-1"}}
	if diff := cmp.Diff(want, [][]string{models[0].Policies, models[1].Policies}); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// The models of a result may stand in any order. Their figures, and the server's cores, memory and queue, are the same.
func TestAnyOrderOfModels(t *testing.T) {
	t.Parallel()
	text := tunedtest.Text(t, "../..", tunedtest.Two)
	d, err := result.Parse("result.json", text)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(d.Models)
	for i := range d.Configurations {
		slices.Reverse(d.Configurations[i].Models)
	}
	swapped, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	one, err := tuned.Parse("result.json", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := tuned.Parse("result.json", swapped, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tuned.Cores(one) != tuned.Cores(two) || tuned.Memory(one) != tuned.Memory(two) || tuned.QueueTime(one) != tuned.QueueTime(two) {
		t.Errorf("cores %d and %d, %g and %g bytes, queues of %v and %v", tuned.Cores(one), tuned.Cores(two), tuned.Memory(one), tuned.Memory(two), tuned.QueueTime(one), tuned.QueueTime(two))
	}
	for i, m := range one {
		other := two[1-i]
		if m.Name != other.Name || m.Load != other.Load || m.SHA256 != other.SHA256 || m.P99Limit != other.P99Limit || !maps.Equal(m.Values, other.Values) {
			t.Errorf("%s: %+v, and in the other order %+v", m.Name, m, other)
		}
	}
}
