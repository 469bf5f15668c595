package compare

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// defaultConfig is the text of a default configuration with so many instances.
func defaultConfig(instances int) string {
	return fmt.Sprintf("name: \"m\"\nbackend: \"onnxruntime\"\nmax_batch_size: 4\ninstance_group { kind: KIND_CPU count: %d }\ndynamic_batching {}\n", instances)
}

// twoConfigs is a campaign of the default and a configuration with pairs of knob and value.
func twoConfigs(t *testing.T, instances int, pairs ...string) Run {
	t.Helper()
	settings := []map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		settings = append(settings, map[string]string{"knob": pair[0], "value": pair[1]})
	}
	points := []map[string]any{{"load": map[string]int{"concurrency": 8, "batch_size": 1}, "values": map[string]any{"throughput": map[string]int{"value": 100, "lo": 99, "hi": 101}}}}
	text, err := json.Marshal(map[string]any{"format": 1, "configurations": []map[string]any{
		{"name": "m_config_default", "default": true, "settings": []int{}, "setup": map[string]string{"runtime": "cpu@1.31.1"}, "config": defaultConfig(instances), "points": points},
		{"name": "m_config_0", "settings": settings, "points": points},
	}})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Parse("result.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Configurations are the same whatever the order of their settings, and if one names the value of the default that the
// other leaves alone.
func TestSameSettings(t *testing.T) {
	t.Parallel()
	a := []string{"precision", "int8", "max_batch_size", "16"}
	for _, tt := range []struct {
		a, b          []string
		instances     int // of b's default; a's has 2
		isSame        bool
		keyOf, reason string
	}{
		{a, []string{"max_batch_size", "16", "precision", "int8"}, 2, true, "max_batch_size=16 precision=int8", "the order"},
		{a, append([]string{"max_queue_delay", "0us", "execution_provider", "cpu", "runtime", "cpu@1.31.1"}, a...), 2, true, "max_batch_size=16 precision=int8", "values of the default"},
		{a, append([]string{"max_queue_delay", "100us"}, a...), 2, false, "", "another value"},
		{a, append([]string{"session.x", "1"}, a...), 2, false, "", "a knob whose value in the default is unknown"},
		{[]string{"max_batch_size", "4"}, []string{"max_batch_size", "4"}, 2, true, "max_batch_size=4", "all values of the default"},
		{append([]string{"instance_count", "2"}, a...), append([]string{"instance_count", "1"}, a...), 1, false, "", "defaults that differ"},
		{append([]string{"instance_count", "2"}, a...), append(a, "instance_count", "2"), 1, true, "instance_count=2 max_batch_size=16 precision=int8", "the default's value in one run"},
		// XNNPACK's threads do not spin, unlike the default's.
		{[]string{"execution_provider", "xnnpack"}, []string{"execution_provider", "xnnpack", "allow_spinning", "true"}, 2, false, "", "spinning"},
		{[]string{"max_batch_size", "16"}, []string{"max_batch_size", "16", "allow_spinning", "true"}, 2, true, "max_batch_size=16", "spinning as by default"},
	} {
		c := Of([]Run{twoConfigs(t, 2, tt.a...), twoConfigs(t, tt.instances, tt.b...)}, 0.02)
		if p := c.Pairs[0]; len(p.Changes) != map[bool]int{true: 2, false: 1}[tt.isSame] || (len(p.OnlyA)+len(p.OnlyB) == 0) != tt.isSame {
			t.Errorf("%s: %d changes; only in a %q, only in b %q", tt.reason, len(p.Changes), p.OnlyA, p.OnlyB)
		} else if tt.isSame && p.Changes[1].Key != tt.keyOf {
			t.Errorf("%s: key %q, want %q", tt.reason, p.Changes[1].Key, tt.keyOf)
		}
	}
}

// The profile of another campaign of several models names more knobs, in another order.
func TestSameSettingsOfSeveralModels(t *testing.T) {
	t.Parallel()
	const path = "../report/testdata/two.json"
	run, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file["configurations"].([]any) {
		c := c.(map[string]any)
		if settings := c["settings"].([]any); len(settings) > 0 {
			slices.Reverse(settings)
			c["settings"] = append(settings, map[string]any{"knob": "isolation", "value": "shared"}, map[string]any{"knob": "encoder.max_queue_delay", "value": "0us"})
		}
	}
	if text, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	other, err := Parse("later.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if p := Of([]Run{run, other}, 0.02).Pairs[0]; len(p.OnlyA)+len(p.OnlyB) > 0 || len(p.Changes) != len(Of([]Run{run, run}, 0.02).Pairs[0].Changes) {
		t.Errorf("%d changes; only in a %q, only in b %q", len(p.Changes), p.OnlyA, p.OnlyB)
	}
}
