package tuned_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tuner/export/tuned"
	"tuner/export/tuned/tunedtest"
	"tuner/measure"
	"tuner/report/result"
)

// A pipeline has the load, figures and limits of its result. Each stage has what belongs to its folder.
func TestPipeline(t *testing.T) {
	t.Parallel()
	models, err := tuned.Read(tunedtest.AnalyzedPipeline(t, "../.."), nil)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := tuned.Parse(tunedtest.One, tunedtest.Text(t, "../..", tunedtest.One), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(models) != 1 || len(models[0].Stages) != 2 {
		t.Fatalf("got %+v", models)
	}
	m, tokenizer, encoder := models[0], models[0].Stages[0], models[0].Stages[1]
	if m.Name != "search" || m.Load != alone[0].Load || m.Memory != alone[0].Memory || m.P99Limit != alone[0].P99Limit || m.SHA256 != "absearch" || m.State != alone[0].State {
		t.Errorf("the pipeline is %+v", m)
	}
	// the tokenizer's threads are another backend's matter
	if tokenizer.Name != "tokenizer" || tokenizer.Instances != 2 || tokenizer.Threads != 1 || tokenizer.SHA256 != "abtokenizer" || !tokenizer.IsForeign() {
		t.Errorf("the first stage is %+v", tokenizer)
	}
	if encoder.Name != alone[0].Name || encoder.Instances != alone[0].Instances || encoder.Threads != alone[0].Threads || encoder.SHA256 != alone[0].SHA256 || encoder.IsForeign() {
		t.Errorf("the second stage is %+v", encoder)
	}
	var folders, computing []string
	for _, f := range m.Folders() {
		folders = append(folders, f.Name)
	}
	for _, f := range m.Computing() {
		computing = append(computing, f.Name)
	}
	if a, b := strings.Join(folders, " "), strings.Join(computing, " "); a != "tokenizer minilm search" || b != "tokenizer minilm" {
		t.Errorf("folders %s, and %s compute", a, b)
	}
}

// A pipeline's request waits in the queues of its stages. The mean over all requests of a server counts those to the
// stages too.
func TestQueueTimeOfPipeline(t *testing.T) {
	t.Parallel()
	figures := func(queue float64) map[measure.Metric]measure.Estimate {
		return map[measure.Metric]measure.Estimate{measure.QueueTime: {Value: queue}, measure.Throughput: {Value: 100}, measure.LatencyP99: {Value: 0.05}}
	}
	m := tuned.Model{Load: measure.Load{Concurrency: 4, BatchSize: 1}, Values: figures(0.001),
		Stages: []tuned.Model{{Calls: 1, Values: figures(0.004)}, {Calls: 2, Values: figures(0.002)}}}
	// 1 ms + 4 ms + 2 · 2 ms for one of the clients' requests, which is four requests to models
	if got := m.Queue(); got != 9*time.Millisecond {
		t.Errorf("a request waits %v", got)
	}
	if got := tuned.QueueTime([]tuned.Model{m}); got != 2250*time.Microsecond {
		t.Errorf("the mean is %v", got)
	}
	// within the noise: a tenth of 50 ms, for one of four requests
	m.Values, m.Stages[0].Values, m.Stages[1].Values = figures(0), figures(0.001), figures(0)
	if got := tuned.QueueTime([]tuned.Model{m}); got != 1250*time.Microsecond {
		t.Errorf("the mean without a queue is %v", got)
	}
}

// A server of a pipeline has cores for the threads of all its stages, at most the machine's.
func TestCoresOfPipeline(t *testing.T) {
	t.Parallel()
	m := tuned.Model{Values: map[measure.Metric]measure.Estimate{measure.CPU: {Value: 1}}, Stages: []tuned.Model{{Instances: 2, Threads: 1}, {Instances: 1, Threads: 3}}}
	for machine, want := range map[int]int{16: 6, 4: 4} { // 2 · 1 + 1 · 3, and one of the pipeline's own code
		m.Host.CPU.Logical = machine
		m.Instances, m.Threads = 1, 1
		if got := tuned.Cores([]tuned.Model{m}); got != want {
			t.Errorf("%d cores of %d, want %d", got, machine, want)
		}
	}
}

// A result that contradicts itself is refused.
func TestWrongResultsOfPipelines(t *testing.T) {
	t.Parallel()
	check := func(want string, change func(*result.Result)) {
		t.Helper()
		d, err := result.Parse("result.json", tunedtest.PipelineText(t, "../.."))
		if err != nil {
			t.Fatal(err)
		}
		change(&d)
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tuned.Parse("result.json", text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check(`has no configuration of the model "search"`, func(d *result.Result) { d.Stages = d.Stages[:1] })
	check(`has no configuration of the model "other"`, func(d *result.Result) { d.Stages[0] = "other" })
	check("is configured as", func(d *result.Result) {
		for i := range d.Configurations {
			d.Configurations[i].Models[1].Config = d.Configurations[i].Models[0].Config
		}
	})
	check("calls of stage", func(d *result.Result) { d.Explanation.Subjects[0].Stages[0].Calls = 1e12 })
}
