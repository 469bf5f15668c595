package deployment

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestChartIsTheManifests renders the chart and compares it, and the claim beside it, with the
// manifests of the same result. Both are the same deployment.
func TestChartIsTheManifests(t *testing.T) {
	for name, args := range variants {
		t.Run(name, func(t *testing.T) {
			want := map[string]any{}
			files, err := filepath.Glob(filepath.Join(export(t, "kubernetes", args...), "manifests", "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				addSpecs(t, want, read(t, file))
			}
			got := map[string]any{}
			chart := export(t, "helm", args...)
			addSpecs(t, got, rendered(t, chart))
			if claim := filepath.Join(chart, "models-claim.yaml"); exists(t, claim) {
				addSpecs(t, got, read(t, claim))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-manifests +chart:\n%s", diff)
			}
		})
	}
}

// Servers are spread by the labels that they have, also under another name of the release. A selector of
// the user's stays.
func TestChartSpreadsItsOwnPods(t *testing.T) {
	dir := export(t, "helm", "--plan", "hpa.json")
	selectors := func(args ...string) (pods any, got []any) {
		t.Helper()
		specs := map[string]any{}
		addSpecs(t, specs, run(t, dir, helm(t), append([]string{"template", "other", "chart", "--kube-version", "1.30"}, args...)...))
		spec := specs["Deployment"].(map[string]any)
		for _, c := range spec["template"].(map[string]any)["spec"].(map[string]any)["topologySpreadConstraints"].([]any) {
			got = append(got, c.(map[string]any)["labelSelector"])
		}
		return spec["selector"], got
	}
	pods, got := selectors()
	if diff := cmp.Diff([]any{pods, pods}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, got = selectors("--set-json", `topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "mine"}}}]`)
	if diff := cmp.Diff([]any{map[string]any{"matchLabels": map[string]any{"app": "mine"}}}, got); diff != "" {
		t.Errorf("with a selector (-want +got):\n%s", diff)
	}
}

// addSpecs adds the specifications of all objects by kind. It omits what only a chart has: the pull
// policy of images, the usual type of a service, and the namespace in the query of an autoscaler.
func addSpecs(t *testing.T, specs map[string]any, text []byte) {
	t.Helper()
	for _, document := range documents(t, text) {
		var object struct {
			Kind string         `yaml:"kind"`
			Spec map[string]any `yaml:"spec"`
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		if template, ok := object.Spec["template"].(map[string]any); ok {
			for _, container := range template["spec"].(map[string]any)["containers"].([]any) {
				delete(container.(map[string]any), "imagePullPolicy")
			}
		}
		if object.Spec["type"] == "ClusterIP" {
			delete(object.Spec, "type")
		}
		if triggers, ok := object.Spec["triggers"].([]any); ok {
			metadata := triggers[0].(map[string]any)["metadata"].(map[string]any)
			metadata["query"] = strings.Replace(metadata["query"].(string), `namespace="default",`, "", 1)
		}
		specs[object.Kind] = object.Spec
	}
}

// helm refuses values that the chart's schema does not have, and a Kubernetes without
// preStop.sleep.
func TestChartRefuses(t *testing.T) {
	dir := export(t, "helm")
	for args, fault := range map[[2]string]string{
		{"--set", "replica=2"}: "'replica' not allowed", {"--set", "replicas=many"}: "got string, want integer",
		{"--kube-version", "1.29"}: "chart requires kubeVersion: >=1.30.0-0",
	} {
		cmd := exec.CommandContext(t.Context(), helm(t), "template", "minilm", "chart", "--kube-version", "1.30", args[0], args[1])
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), fault) {
			t.Errorf("%s %s: %v\n%s", args[0], args[1], err, out)
		}
	}
}

// The ServiceMonitor finds the service by its labels, and the metrics by the port's name. It exists
// only on request.
func TestServiceMonitor(t *testing.T) {
	dir := export(t, "helm")
	if bytes.Contains(rendered(t, dir), []byte("kind: ServiceMonitor")) {
		t.Error("it is there by default, and not every cluster knows its kind")
	}
	var service struct {
		Metadata struct {
			Labels map[string]string `yaml:"labels"`
		} `yaml:"metadata"`
		Spec struct {
			Ports []struct {
				Name string `yaml:"name"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
	var monitor struct {
		Metadata struct {
			Labels map[string]string `yaml:"labels"`
		} `yaml:"metadata"`
		Spec struct {
			Selector  map[string]map[string]string `yaml:"selector"`
			Endpoints []map[string]string          `yaml:"endpoints"`
		} `yaml:"spec"`
	}
	for _, document := range documents(t, rendered(t, dir, "--set", "serviceMonitor.enabled=true", "--set", "serviceMonitor.labels.release=prometheus")) {
		into := map[bool]any{true: &service, false: &monitor}[bytes.Contains(document, []byte("kind: Service\n"))]
		if bytes.Contains(document, []byte("kind: Service")) {
			if err := yaml.Unmarshal(document, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	labels := monitor.Spec.Selector["matchLabels"]
	for label, value := range labels {
		if service.Metadata.Labels[label] != value {
			t.Errorf("the service has not the label %s: %s", label, value)
		}
	}
	metrics := service.Spec.Ports[len(service.Spec.Ports)-1].Name
	want := []map[string]string{{"port": metrics, "interval": "15s"}}
	if diff := cmp.Diff(want, monitor.Spec.Endpoints); diff != "" || len(labels) == 0 || monitor.Metadata.Labels["release"] != "prometheus" {
		t.Errorf("the monitor is %+v (endpoints -want +got):\n%s", monitor, diff)
	}
}
