package report

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/journal"
	"tuner/measure"
	"tuner/modelconfig"
	"tuner/search"
	"tuner/spec"
	"tuner/steps"
)

const schemaPath = "../docs/reference/result.schema.json"

// recorded is the result of a campaign that was recorded with the journal format of the time.
func recorded(t testing.TB, name string) analyze.Result {
	t.Helper()
	c, err := analyze.Replay("../testdata/journals/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := analyze.Analyze(c, analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// imported is the result of another program's figures, without intervals, counts and a machine.
func imported(t testing.TB) analyze.Result {
	t.Helper()
	point := analyze.RecordedPoint{Load: measure.Load{Concurrency: 2}, Values: map[measure.Metric]float64{measure.Throughput: 200, measure.LatencyP99: 0.01}}
	rec := analyze.Recording{Model: "mlp", Source: "0.ckpt", Configs: []analyze.RecordedConfig{
		{Name: "mlp_config_default", Default: true, Deployed: &modelconfig.Config{}, Points: []analyze.RecordedPoint{point}}}}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	r, err := rec.Rank(goal, analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every result.json keeps the published schema, and has no field that the schema does not name.
func TestResultsKeepTheSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	limited := ranked(t, typical(t), analyze.Options{})
	limited.Reused = []analyze.Reused{{From: "out/first", Trials: 41}}
	limited.Configs[0].Points[0].GPUs = []measure.GPUWindow{{UUID: "GPU-1", Utilization: 0.5, Power: 61.25, MemoryUsed: 2.5e9, MemoryTotal: 8e9, Energy: 61}}
	elsewhere := ranked(t, typical(t), analyze.Options{})
	elsewhere.Header.Finals = &journal.ServerInfo{Mode: "remote", Where: "10.0.0.1:8001", Name: "triton", Version: "2.51.0"}
	elsewhere.Header.Server = &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver"}
	elsewhere.Steps = steps.List{{Name: steps.Precision, State: steps.Skipped, Text: "fp32 alone is asked for"}}
	for name, r := range map[string]analyze.Result{
		"found":      limited,
		"elsewhere":  elsewhere,
		"infeasible": ranked(t, typical(t), analyze.Options{Goal: tight()}),
		"variants":   ranked(t, withVariants(t), analyze.Options{}),
		"predicted":  predicted(t),
		"top3-mean":  ranked(t, typical(t), analyze.Options{Rank: spec.RankTop3Mean}),
		"at a load":  ranked(t, typical(t), analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 8}}}),
		"unmeasured": ranked(t, analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{}),
		"imported":   imported(t),
		"minilm":     recorded(t, "minilm"),
		"guided":     recorded(t, "guided"),
	} {
		var b bytes.Buffer
		if err := WriteJSON(&b, r); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key := range keysOf(value) {
			if _, isMetric := measure.Metric(key).Info(); !isMetric && !strings.Contains(string(text), `"`+key+`"`) && len(key) < 40 {
				t.Errorf("%s: the schema does not name %q", name, key)
			}
		}
	}
}

// A schema that takes everything would pass the test above.
func TestSchemaRefusesOtherResults(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, recorded(t, "minilm")); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"format": 1`, `"format": 2`}, {`"status": "satisfied"`, `"status": "good"`}, {`"batch_size": 1`, `"batch_size": 0`},
		{`"probability": 1`, `"probability": 1.5`}, {`"lo": `, `"low": `}, {`"stage": "start"`, `"stage": "begin"`}, {`"bottleneck": "`, `"bottleneck": "no`},
		{`"latency_p99": {`, `"latency99": {`}, {`"at": "best"`, `"at": "8"`},
	} {
		changed := strings.ReplaceAll(b.String(), change[0], change[1])
		if changed == b.String() {
			t.Fatalf("%s is not in the result", change[0])
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(changed))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err == nil {
			t.Errorf("a result with %s keeps the schema", change[1])
		}
	}
}
