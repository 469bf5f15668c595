package capacity

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// A plan that was written is read as it was.
func TestPlanIsReadAgain(t *testing.T) {
	t.Parallel()
	want := find(t, question(t, "peak 500/s, evenings"), box("c7i", 1))
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePlan("plan.json", text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v:\n%+v, want\n%+v", err, got, want)
	}
}

// What no plan has is refused, with file and field.
func TestImpossiblePlans(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Plan{Format: 1, Best: Fleet{Scaling: Scaling{Scaler: HPA, Min: 1, Max: 3, Target: 10, Window: 60}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][3]string{
		{`"format":1`, `"format":2`, "format is 2"},
		{`"autoscaler":"hpa"`, `"autoscaler":"clairvoyant"`, "best.scaling.autoscaler"},
		{`"min":1`, `"min":0`, "0 to 3 replicas"},
		{`"max":3`, `"max":100000`, "1 to 100000 replicas"},
		{`"target":10`, `"target":-1`, "best.scaling.target"},
		{`"metric_window":60`, `"metric_window":0`, "best.scaling.metric_window"},
		{`"startup":0`, `"startup":-1`, "best.scaling.startup"},
		{`"startup":0`, `"scale_down_stabilization":99999`, "best.scaling.scale_down_stabilization"},
		{`"startup":0`, `"tolerance":2`, "best.scaling.tolerance"},
		{`"format":1`, `"format":true`, "plan.json is no plan"},
	} {
		changed := strings.Replace(string(text), x[0], x[1], 1)
		if changed == string(text) {
			t.Fatalf("%s is not in %s", x[0], text)
		}
		if _, err := ParsePlan("plan.json", []byte(changed)); err == nil || !strings.Contains(err.Error(), x[2]) {
			t.Errorf("%s: %v, want %q", x[1], err, x[2])
		}
	}
}

// Any bytes are a plan that can be exported, or an error.
func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(`{"format":1,"best":{"scaling":{"autoscaler":"hpa","min":1,"max":3,"target":10,"metric_window":60}}}`))
	f.Add([]byte(`{"format":1,"best":{"scaling":{"autoscaler":"fixed","min":2,"max":2}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePlan("plan.json", text)
		if err == nil && (p.Best.Scaling.Min < 1 || p.Best.Scaling.Max > MostReplicas) {
			t.Errorf("%+v", p.Best.Scaling)
		}
	})
}
