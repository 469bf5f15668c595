package json

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/spec"
)

// ofTwo returns the result of two models.
func ofTwo(t *testing.T) analyze.Result {
	t.Helper()
	r, err := analyze.Analyze(analyzetest.OfTwo(t).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const schemaPath = "../../docs/reference/result.schema.json"

// Every result.json is valid under the published schema, and has only fields that the schema names.
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
	limited := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	limited.Reused = []analyze.Reused{{From: "out/first", Trials: 41}}
	limited.Configs[0].Points[0].GPUs = []measure.GPUWindow{{UUID: "GPU-1", Utilization: 0.5, Power: 61.25, MemoryUsed: 2.5e9, MemoryTotal: 8e9, Energy: 61}}
	elsewhere := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	elsewhere.Header.Finals = &journal.ServerInfo{Mode: "remote", Where: "10.0.0.1:8001", Name: "triton", Version: "2.51.0"}
	elsewhere.Header.Server = &journal.ServerInfo{Mode: "local", Where: "/opt/tritonserver"}
	elsewhere.Steps = steps.List{{Name: steps.Precision, State: steps.Skipped, Text: "fp32 alone is asked for"}}
	for name, r := range map[string]analyze.Result{
		"found":      limited,
		"elsewhere":  elsewhere,
		"infeasible": reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}),
		"variants":   reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}),
		"predicted":  reporttest.Predicted(t),
		"top3-mean":  reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Rank: spec.RankTop3Mean}),
		"at a load":  reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 8}}}),
		"unmeasured": reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{}),
		"imported":   reporttest.Imported(t),
		"minilm":     reporttest.Recorded(t, "minilm"),
		"guided":     reporttest.Recorded(t, "guided"),
		"two models": ofTwo(t),
	} {
		var b bytes.Buffer
		if err := Write(&b, r); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key := range reporttest.KeysOf(value) {
			if _, isMetric := measure.Metric(key).Info(); !isMetric && !strings.Contains(string(text), `"`+key+`"`) && len(key) < 40 {
				t.Errorf("%s: the schema does not name %q", name, key)
			}
		}
	}
}

// Without this test, a schema that accepts everything would pass the test above.
func TestSchemaRefusesOtherResults(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, reporttest.Recorded(t, "minilm")); err != nil {
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

// documentation returns the pages that list the keys of result.json.
func documentation(t *testing.T) string {
	t.Helper()
	var pages strings.Builder
	for _, name := range []string{"result-fields.md", "accuracy-fields.md", "metrics.md"} {
		page, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(page)
	}
	return pages.String()
}

// The documentation has every key of result.json.
func TestResultFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	doc := documentation(t)
	for _, r := range []analyze.Result{
		reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}),
	} {
		var b bytes.Buffer
		if err := Write(&b, r); err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(b.Bytes(), &value); err != nil {
			t.Fatal(err)
		}
		for key := range reporttest.KeysOf(value) {
			if !strings.Contains(doc, key) {
				t.Errorf("the documentation does not mention %q", key)
			}
		}
	}
}

// The documentation has the explanation's keys, including those that a grid does not write.
func TestExplanationFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	doc := documentation(t)
	var b bytes.Buffer
	if err := Write(&b, reporttest.Predicted(t)); err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(b.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	keys := reporttest.KeysOf(value["explanation"])
	for _, want := range []string{"possible_gain", "service_curve", "simulated", "barred"} {
		if !keys[want] {
			t.Errorf("the explanation has no %q", want)
		}
	}
	for key := range keys {
		if !strings.Contains(doc, "`"+key) {
			t.Errorf("the documentation does not mention %q", key)
		}
	}
}
