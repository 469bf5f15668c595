package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/capacity"
)

// planned is a plan for the golden result.
func planned(s capacity.Scaling, configuration string) *capacity.Plan {
	return &capacity.Plan{
		Format: capacity.Format, Status: capacity.Satisfied, Model: "minilm", Asked: capacity.Asked{Limit: 0.05},
		Best:           capacity.Fleet{Type: "c7i", Configuration: configuration, Scaling: s, Within: 0.9931, WorstDay: 0.9905},
		Configurations: []capacity.Candidate{{Type: "c7i", Configuration: configuration, Safe: 400}},
	}
}

var hpa = capacity.Scaling{Scaler: capacity.HPA, Min: 8, Max: 14, Target: 300, Tolerance: 0.03, Down: 120, Window: 60, Startup: 30}

func withPlan(t *testing.T, s capacity.Scaling) Options {
	t.Helper()
	o := defaults(analyzed(t))
	o.Plan = planned(s, "minilm_config_4")
	return o
}

// An export with a plan has the plan's numbers and autoscaler, whatever Kubernetes target it is for.
func TestPlansAreExported(t *testing.T) {
	t.Parallel()
	check := func(target, file string, o Options, want any, at ...string) {
		t.Helper()
		switch want := want.(type) {
		case int:
			var got int
			if exported(t, target, file, o, &got, at...); got != want {
				t.Errorf("%s: %s %v: %d, want %d", target, file, at, got, want)
			}
		case string:
			var got string
			if exported(t, target, file, o, &got, at...); got != want {
				t.Errorf("%s: %s %v: %q, want %q", target, file, at, got, want)
			}
		}
	}
	o := withPlan(t, hpa)
	check(Kubernetes, "manifests/autoscaler.yaml", o, 8, "spec", "minReplicas")
	check(Kubernetes, "manifests/autoscaler.yaml", o, 14, "spec", "maxReplicas")
	check(Kubernetes, "manifests/autoscaler.yaml", o, "300000m", "spec", "metrics", "0", "pods", "target", "averageValue")
	check(Kubernetes, "manifests/autoscaler.yaml", o, "30m", "spec", "behavior", "scaleUp", "tolerance")
	check(Kubernetes, "manifests/autoscaler.yaml", o, 120, "spec", "behavior", "scaleDown", "stabilizationWindowSeconds")
	// Of 8 servers at 300/s, two may go: 8 × 300 / 6 is 400/s, at which the limit is kept.
	check(Kubernetes, "manifests/disruption-budget.yaml", o, 2, "spec", "maxUnavailable")
	check(Kubernetes, "manifests/deployment.yaml", o, "kubernetes.io/hostname", "spec", "template", "spec", "topologySpreadConstraints", "1", "topologyKey")
	check(Helm, "chart/values.yaml", o, "300000m", "autoscaler", "averageValue")
	check(Helm, "chart/values.yaml", o, 2, "disruptionBudget", "maxUnavailable")
	check(KServe, "inferenceservice.yaml", o, "external", "metadata", "annotations", "serving.kserve.io/autoscalerClass")
	check(KServe, "inferenceservice.yaml", o, 14, "spec", "predictor", "maxReplicas")
	check(KServe, "autoscaler.yaml", o, "minilm-predictor", "spec", "scaleTargetRef", "name")
	check(KServe, "disruption-budget.yaml", o, "minilm", "spec", "selector", "matchLabels", "serving.kserve.io/inferenceservice")

	keda := hpa
	keda.Scaler, keda.Tolerance = capacity.KEDA, 0.1
	o = withPlan(t, keda)
	o.Prometheus = "http://prometheus:9090"
	check(Kubernetes, "manifests/autoscaler.yaml", o, "http://prometheus:9090", "spec", "triggers", "0", "metadata", "serverAddress")
	check(Helm, "chart/values.yaml", o, `sum(rate(nv_inference_request_success{namespace="{{ .Release.Namespace }}",pod=~"{{ include "triton.name" . }}-[a-z0-9]+(-[a-z0-9]{5})?"}[60s]))`, "autoscaler", "keda", "query")
	check(KServe, "autoscaler.yaml", o, "ScaledObject", "kind")

	o = withPlan(t, capacity.Scaling{Scaler: capacity.Fixed, Min: 3, Max: 3})
	check(Kubernetes, "manifests/deployment.yaml", o, 3, "spec", "replicas")
	check(Kubernetes, "manifests/disruption-budget.yaml", o, 1, "spec", "maxUnavailable")
	check(KServe, "inferenceservice.yaml", o, "none", "metadata", "annotations", "serving.kserve.io/autoscalerClass")
}

// READMEs say what the plan promises, and what it needs.
func TestPlansAreExplained(t *testing.T) {
	t.Parallel()
	for _, target := range []string{Kubernetes, Helm, KServe} {
		dir := filepath.Join(t.TempDir(), "deploy")
		e, err := Write(target, dir, withPlan(t, hpa))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"`tuner plan` chose 8 to 14 replicas of minilm_config_4", "99.31 % of the requests keep 50 ms", "| OpenShift |", "lets 2 of them be taken away"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: the README lacks %q:\n%s", target, want, text)
			}
		}
		if notes := strings.Join(e.Deployment.Notes, "\n"); !strings.Contains(notes, `calls "c7i"`) || !strings.Contains(notes, "needs Kubernetes 1.35") {
			t.Errorf("%s: notes %q", target, notes)
		}
	}
}

// A plan for another model, configuration or kind of target is refused.
func TestPlansThatDoNotFit(t *testing.T) {
	t.Parallel()
	check := func(target, want string, change func(*Options)) {
		t.Helper()
		o := withPlan(t, hpa)
		change(&o)
		if _, err := Write(target, filepath.Join(t.TempDir(), "deploy"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check(Compose, "a plan is for a cluster, and compose is none", func(*Options) {})
	check(Kubernetes, `it is for the model "resnet", and the result is of "minilm"`, func(o *Options) { o.Plan.Model = "resnet" })
	check(Kubernetes, `it is for the configuration "other", and the export has "minilm_config_4"`, func(o *Options) { o.Plan.Best.Configuration = "other" })
	check(Kubernetes, `--prometheus "prometheus"`, func(o *Options) { o.Prometheus = "prometheus" })
}
