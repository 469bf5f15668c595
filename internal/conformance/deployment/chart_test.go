package deployment

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// TestChartIsTheManifests renders the chart and compares it with the manifests of the same result: both are the same deployment.
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
			addSpecs(t, got, rendered(t, export(t, "helm", args...)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-manifests +chart:\n%s", diff)
			}
		})
	}
}

// addSpecs adds the specifications of all objects by kind, without what a chart alone says: when images are pulled, and the usual type of a
// service.
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
		specs[object.Kind] = object.Spec
	}
}
