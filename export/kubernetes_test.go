package export

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A server is ready when all models of the export are ready, with any content of the repository.
// Every target with probes checks this at the start and later.
func TestReadiness(t *testing.T) {
	t.Parallel()
	first, second := analyzed(t), analyzed(t, "minilm", "resnet")
	curl := func(port int, models ...string) []string {
		command := []string{"curl", "--fail", "--fail-early", "--silent"}
		for _, m := range models {
			command = append(command, fmt.Sprintf("http://localhost:%d/v2/models/%s/ready", port, m))
		}
		return command
	}
	get := func(port int) probeHandler { return probeHandler{HTTPGet: &httpGet{"/v2/models/minilm/ready", port}} }
	exec := func(port int) probeHandler { return probeHandler{Exec: &execCommand{curl(port, "minilm", "resnet")}} }
	for _, test := range []struct {
		target, file string
		inputs       []string
		at           []string // path of the object with the probes
		want         probeHandler
	}{
		{Kubernetes, "manifests/deployment.yaml", []string{first}, []string{"spec", "template", "spec", "containers", "0"}, get(8000)},
		{Kubernetes, "manifests/deployment.yaml", []string{first, second}, []string{"spec", "template", "spec", "containers", "0"}, exec(8000)},
		{KServe, "inferenceservice.yaml", []string{first}, []string{"spec", "predictor", "model"}, get(8080)},
		{KServe, "inferenceservice.yaml", []string{first, second}, []string{"spec", "predictor", "model"}, exec(8080)},
	} {
		var probes struct {
			Startup   probe `yaml:"startupProbe"`
			Readiness probe `yaml:"readinessProbe"`
		}
		exported(t, test.target, test.file, defaults(test.inputs...), &probes, test.at...)
		for _, got := range []probe{probes.Startup, probes.Readiness} {
			if diff := cmp.Diff(test.want, got.probeHandler); diff != "" {
				t.Errorf("%s with %d models (-want +got):\n%s", test.target, len(test.inputs), diff)
			}
		}
	}
	var values chartValues
	exported(t, Helm, "chart/values.yaml", defaults(first, second), &values)
	if diff := cmp.Diff(exec(8000), values.Probes.Ready); diff != "" {
		t.Errorf("chart (-want +got):\n%s", diff)
	}
	var check []string
	exported(t, Compose, "compose.yaml", defaults(first, second), &check, "services", "triton", "healthcheck", "test")
	if diff := cmp.Diff(append([]string{"CMD"}, curl(8000, "minilm", "resnet")...), check); diff != "" {
		t.Errorf("compose (-want +got):\n%s", diff)
	}
}

// Servers get three times the measured time to load their models, and a rollout waits for that.
func TestLoadTime(t *testing.T) {
	t.Parallel()
	slow := func(seconds string) string { return analyzed(t, `"launch_time": 0.6`, `"launch_time": `+seconds) }
	for _, test := range []struct {
		inputs             []string
		failures, deadline int
	}{
		{[]string{slow("0.6")}, 60, 900},     // minimum: 5 min in probes of 5 s, and 600 s
		{[]string{slow("400")}, 240, 1800},   // 3 · 400 s
		{[]string{slow("300.5")}, 181, 1502}, // 901.5 s, rounded up
		{[]string{slow("200"), analyzed(t, "minilm", "resnet", `"launch_time": 0.6`, `"launch_time": 100`)}, 180, 1500}, // 3 · (200 + 100) s
		{[]string{analyzed(t, gpu()...)}, 360, 2400}, // TensorRT: 30 min
	} {
		var spec struct {
			Deadline int `yaml:"progressDeadlineSeconds"`
			Template struct {
				Spec struct {
					Containers []struct {
						Startup probe `yaml:"startupProbe"`
					} `yaml:"containers"`
				} `yaml:"spec"`
			} `yaml:"template"`
		}
		exported(t, Kubernetes, "manifests/deployment.yaml", defaults(test.inputs...), &spec, "spec")
		if got := spec.Template.Spec.Containers[0].Startup.FailureThreshold; got != test.failures || spec.Deadline != test.deadline {
			t.Errorf("%d failures and a deadline of %d s, want %d and %d s", got, spec.Deadline, test.failures, test.deadline)
		}
	}
}

// If a server has the only claim with the models, it ends before its successor starts. All other
// servers stay until the successor is ready.
func TestRollout(t *testing.T) {
	t.Parallel()
	in := analyzed(t)
	one, shared := defaults(in), defaults(in)
	one.MaxReplicas = 1
	shared.MaxReplicas, shared.Storage = 1, "pvc://shared/models"
	for _, test := range []struct {
		name    string
		options Options
		want    rollout
	}{
		{"several servers", defaults(in), rollout{MaxSurge: 1}},
		{"one server", one, rollout{MaxUnavailable: 1}},
		{"a claim of the user's", shared, rollout{MaxSurge: 1}},
	} {
		var manifest, value, kserve rollout
		exported(t, Kubernetes, "manifests/deployment.yaml", test.options, &manifest, "spec", "strategy", "rollingUpdate")
		exported(t, Helm, "chart/values.yaml", test.options, &value, "rollingUpdate")
		exported(t, KServe, "inferenceservice.yaml", test.options, &kserve, "spec", "predictor", "deploymentStrategy", "rollingUpdate")
		if manifest != test.want || value != test.want || kserve != test.want {
			t.Errorf("%s: manifest %+v, chart %+v, KServe %+v; want %+v", test.name, manifest, value, kserve, test.want)
		}
	}
}

// The chart's schema accepts the written values, knows each of them, and refuses misspelt ones.
func TestChartSchema(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, inputs := range [][]string{{analyzed(t)}, {analyzed(t, gpu()...)}, {analyzed(t), analyzed(t, "minilm", "resnet")}} {
		var values map[string]any
		exported(t, Helm, "chart/values.yaml", defaults(inputs...), &values)
		if err := schema.Validate(values); err != nil {
			t.Errorf("the values are refused: %v", err)
		}
		values["replica"] = 2
		if err := schema.Validate(values); err == nil || !strings.Contains(err.Error(), "replica") {
			t.Errorf("replica for replicas: %v", err)
		}
	}
}
