package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

const twoModels = `models:
  encoder: {model: minilm.onnx, load: {request_rate: 120}, constraints: {latency_p99: 50ms}, space: {instance_count: [1, 2]}}
  ranker: {model: mlp.onnx, load: {concurrency: 8, client_batch_size: 2}, constraints: {latency_p99: 5ms}}
`

func parseModels(t *testing.T, text string) spec.Profile {
	t.Helper()
	p, err := spec.ParseProfile("work/profile.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProfileOfSeveralModels(t *testing.T) {
	t.Parallel()
	p := parseModels(t, twoModels+"constraints: {memory: 2GB}\nscale: [2, 0.5, 1]\n")
	if !p.IsSeveral() || p.Name != "encoder+ranker" || p.Output != "work/out/encoder+ranker" || p.Search.Strategy != plan.Colocation {
		t.Errorf("got name %q, output %q, strategy %q", p.Name, p.Output, p.Search.Strategy)
	}
	encoder, ranker := p.Models[0], p.Models[1]
	if encoder.Name != "encoder" || encoder.Model.Path != "work/minilm.onnx" || len(encoder.Knobs) != 1 || ranker.Knobs != nil || encoder.Output != p.Output {
		t.Errorf("got models %+v", p.Models)
	}
	var goal []string
	for _, c := range p.Goal.Constraints {
		goal = append(goal, fmt.Sprintf("%s ≤ %g", c.Metric, *c.Max))
	}
	if diff := cmp.Diff([]string{"encoder.latency_p99 ≤ 0.05", "ranker.latency_p99 ≤ 0.005", "memory ≤ 2e+09"}, goal); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]search.Term{{Metric: measure.Scale, Weight: 1}}, p.Goal.Objective.Terms); diff != "" {
		t.Error(diff)
	}
	facts := search.Facts{Cores: 2, Batching: true}
	s := p.Space(search.Facts{Cores: 2, Parts: map[string]search.Facts{"encoder": facts, "ranker": facts}})
	load := s.Load.At(2)
	if got := load.Of("encoder"); got != (measure.Load{RequestRate: 240, BatchSize: 1}) {
		t.Errorf("at scale 2 the encoder has %v", got)
	}
	if got := load.Of("ranker"); got != (measure.Load{Concurrency: 16, BatchSize: 2}) {
		t.Errorf("at scale 2 the ranker has %v", got)
	}
	if diff := cmp.Diff([]float64{0.5, 1, 2}, s.Load.Levels); diff != "" {
		t.Error(diff)
	}
	if n, _ := s.Candidates().Len(); n == 0 {
		t.Error("the space has no candidate")
	}
}

// Names swapped in the file are names swapped in the space, and nothing else.
// Cores of their own are a knob of the server with all divisions of the machine's cores.
func TestIsolation(t *testing.T) {
	t.Parallel()
	const three = twoModels + "  images: {model: cnn.onnx, load: {request_rate: 9}, constraints: {latency_p99: 9ms}}\n"
	for _, c := range []struct {
		text   string
		cores  int
		values []search.Value // nil: no knob
		err    string         // of CheckCores
	}{
		{twoModels, 2, nil, ""},
		{twoModels + "isolation: shared\n", 2, nil, ""},
		{twoModels + "isolation: [shared, cores]\n", 2, []search.Value{"shared", "cores:1,1"}, ""},
		{twoModels + "isolation: cores\n", 4, []search.Value{"cores:1,3", "cores:2,2", "cores:3,1"}, ""},
		{three + "isolation: [cores, shared]\n", 4, []search.Value{"cores:1,1,2", "cores:1,2,1", "cores:2,1,1", "shared"}, ""},
		{three + "isolation: cores\n", 2, nil, "work/profile.yaml: isolation: 3 models cannot have cores of their own, since this machine has 2; write isolation: shared"},
		// 511 over 2 = 130,305
		{three + "isolation: cores\n", 512, nil, "work/profile.yaml: isolation: 512 cores can be divided among 3 models in more than 65536 ways; write isolation: shared, or serve fewer models together"},
	} {
		p := parseModels(t, c.text)
		err := p.CheckCores(c.cores)
		if got := fmt.Sprint(err); err != nil && got != c.err || err == nil && c.err != "" {
			t.Errorf("%s on %d cores: error %v, want %q", c.text, c.cores, err, c.err)
		}
		if c.err != "" {
			continue
		}
		facts := search.Facts{Cores: c.cores, Parts: map[string]search.Facts{}}
		for _, name := range p.ModelNames() {
			facts.Parts[name] = search.Facts{Cores: c.cores, Batching: true}
		}
		s := p.Space(facts)
		var values []search.Value
		if len(s.Server) > 0 {
			values = s.Server[0].Values
		}
		if diff := cmp.Diff(c.values, values); diff != "" || len(s.Server) > 1 {
			t.Errorf("%s on %d cores (-want +got):\n%s", c.text, c.cores, diff)
		}
		if v, _ := s.Candidates().First(); len(c.values) > 0 && s.Value(v, search.KnobIsolation) != c.values[0] {
			t.Errorf("%s: the first candidate is %s", c.text, v)
		}
	}
}

func TestSwappedNamesChangeOnlyNames(t *testing.T) {
	t.Parallel()
	keys := func(text string) string {
		facts := search.Facts{Cores: 2, Batching: true}
		s := parseModels(t, text).Space(search.Facts{Cores: 2, Parts: map[string]search.Facts{"encoder": facts, "ranker": facts}})
		var b strings.Builder
		for _, c := range s.Candidates().All() {
			fmt.Fprintln(&b, c)
		}
		return b.String()
	}
	swap := strings.NewReplacer("encoder", "ranker", "ranker", "encoder")
	if diff := cmp.Diff(swap.Replace(keys(twoModels)), keys(swap.Replace(twoModels))); diff != "" {
		t.Error(diff)
	}
}

// The default scales go from a quarter to eight times the traffic, in steps of 2^(1/64) = 1.1 %, and
// have the profile's own.
func TestDefaultScales(t *testing.T) {
	t.Parallel()
	levels := parseModels(t, twoModels).Scales
	if levels[0] != 0.25 || levels[len(levels)-1] != 8 || len(levels) != 5*64+1 { // five octaves
		t.Errorf("got %d levels from %g to %g", len(levels), levels[0], levels[len(levels)-1])
	}
	has := false
	for i, l := range levels {
		has = has || l == 1
		if i > 0 && (l/levels[i-1] < 1.01 || l/levels[i-1] > 1.012) {
			t.Errorf("levels %g and %g are neighbours", levels[i-1], l)
		}
	}
	if !has {
		t.Error("the profile's own traffic is no level")
	}
}

// The default strategy is the first one that knows the objective.
func TestStrategyFollowsFromTheObjective(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": plan.Colocation, "search: {strategy: alternating}\n": plan.Alternating, "weights: {encoder.throughput: 3, ranker.throughput: 1}\n": plan.Alternating, "search: {strategy: random}\n": plan.Random,
	} {
		if p := parseModels(t, twoModels+text); p.Search.Strategy != want {
			t.Errorf("%q has the strategy %s, want %s", text, p.Search.Strategy, want)
		}
	}
}

func TestMistakesInModels(t *testing.T) {
	t.Parallel()
	const ok = `{model: a.onnx, load: {request_rate: 10}, constraints: {latency_p99: 5ms}}`
	for name, c := range map[string]struct{ text, want string }{
		"no model":              {"models: {}", "has no model"},
		"a list":                {"models: [a]", "must be a mapping"},
		"a bad name":            {"models: {a.b: " + ok + "}", "cannot be the name"},
		"a knob's word":         {"models: {session: " + ok + "}", "cannot be the name"},
		"a metric":              {"models: {throughput: " + ok + "}", "collides with the metric"},
		"scale as a name":       {"models: {scale: " + ok + "}", "collides with the metric"},
		"a name twice":          {"models:\n  a: " + ok + "\n  a: " + ok, "is given twice"},
		"a model twice":         {"models:\n  a: " + ok + "\n  b: " + ok, "is the file of a, too"},
		"a model beside models": {"model: a.onnx\nmodels: {a: " + ok + "}", "belongs to a model"},
		"a load at the top":     {"load: {request_rate: 3}\nmodels: {a: " + ok + "}", "belongs to a model"},
		"a server's field":      {"models: {a: {model: a.onnx, load: {request_rate: 1}, constraints: {latency_p99: 1ms}, output: x}}", "does not belong to one of several models"},
		"a rate of zero":        {"models: {a: {model: a.onnx, load: {request_rate: 0}}}", "is out of range"},
		"no load":               {"models: {a: {model: a.onnx, constraints: {latency_p99: 1ms}}}", "models.a.load: is required"},
		"several loads":         {"models: {a: {model: a.onnx, load: {request_rate: [1, 2]}, constraints: {latency_p99: 1ms}}}", "must be one rate or concurrency"},
		"an automatic load":     {"models: {a: {model: a.onnx, load: {concurrency: auto}, constraints: {latency_p99: 1ms}}}", "must be one rate or concurrency"},
		"no file":               {"models: {a: {load: {request_rate: 1}, constraints: {latency_p99: 1ms}}}", "models.a.model: is required"},
		"a limit on memory":     {"models: {a: {model: a.onnx, load: {request_rate: 1}, constraints: {latency_p99: 1ms, memory: 1GB}}}", "is a figure of the server"},
		"a limit on nothing":    {"models: {a: {model: a.onnx, load: {request_rate: 1}}}", "has no limit on a latency"},
		"a conflict":            {"scale: {max: 2}\nmodels: {a: {model: a.onnx, load: {request_rate: 10}, constraints: {latency_p99: 1ms, throughput: 21}}}", "cannot hold together with load: at scale 2, the highest, clients ask for 20 inferences/s"},
		"a latency at the top":  {"constraints: {latency_p99: 5ms}\nmodels: {a: " + ok + "}", "is not a figure of the whole server"},
		"an unknown model":      {"objective: encodr.throughput\nmodels: {encoder: " + ok + "}", `did you mean "encoder.throughput"?`},
		"a sum":                 {"objective: throughput\nmodels: {a: " + ok + "}", "is not a metric of this server"},
		"one model's strategy":  {"search: {strategy: guided}\nmodels: {a: " + ok + "}", "is not known"},
		"a strategy of scale":   {"objective: a.throughput\nsearch: {strategy: colocation}\nmodels: {a: " + ok + "}", "searches for the largest scale, which is not the objective"},
		"a remote server":       {"runner: {mode: remote, url: 'host:1'}\nmodels: {a: " + ok + "}", "is not supported beside models"},
		"earlier campaigns":     {"search: {earlier: [out/a]}\nmodels: {a: " + ok + "}", "is not supported beside models"},
		"a mode":                {"mode: online\nmodels: {a: " + ok + "}", "is not supported beside models"},
		"a scale of zero":       {"scale: [0, 1]\nmodels: {a: " + ok + "}", "must be a factor"},
		"scales swapped":        {"scale: {min: 2, max: 1}\nmodels: {a: " + ok + "}", "has a min above its max"},
		"a trace":               {"models: {a: {model: a.onnx, load: {request_rate: 1, arrivals: {trace: t.csv}}, constraints: {latency_p99: 1ms}}}", "repeats, which is not supported"},
		"a curve":               {"models: {a: {model: a.onnx, load: {request_rate: 1, arrivals: {curve: {0s: 1, 9s: 2}}}, constraints: {latency_p99: 1ms}}}", "repeats, which is not supported"},
		"scale of one model":    {"model: a.onnx\nscale: {max: 2}", "belongs to a profile of several models"},
		"objective of one":      {"model: a.onnx\nobjective: scale", "is not a metric"},
		"a name before one's":   {"model: a.onnx\nobjective: a.throughput", "is not a metric"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := spec.ParseProfile("profile.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant an error with %q", err, c.want)
			}
		})
	}
}
