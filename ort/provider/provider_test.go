package provider_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/ort/provider"
)

// TestRows checks that each row is complete, and that the providers and builds it names exist.
func TestRows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range provider.All() {
		if seen[row.Name] || row.Name == "" || row.Title == "" || row.Class == "" {
			t.Errorf("%q: a name is missing, or not its own", row.Name)
		}
		seen[row.Name] = true
		if got := provider.FromORT(row.ORTName()); got != row.Name {
			t.Errorf("%s: ONNX Runtime's name %s reads as %s", row.Name, row.ORTName(), got)
		}
		if _, known := provider.Find(row.Behind); row.Behind != "" && !known {
			t.Errorf("%s: there is no provider %q to stand behind it", row.Name, row.Behind)
		}
		if _, known := provider.BuildOf(row.Flavour); row.Flavour != "" && !known {
			t.Errorf("%s: there is no build %q", row.Name, row.Flavour)
		}
		if _, known := row.Option(row.Threads.Option); row.Threads.Option != "" && !known {
			t.Errorf("%s: it has no option %q for its threads", row.Name, row.Threads.Option)
		}
		if o, known := row.Option(row.Device.Option); known && !o.Form.Holds(row.Device.Usual) {
			t.Errorf("%s: the usual device %q is refused", row.Name, row.Device.Usual)
		}
		for _, o := range row.Options {
			if o.Form.Holds == nil || o.Parameter && row.Defaults[o.Name] == "" || o.Coded && len(o.Form.Words) == 0 {
				t.Errorf("%s.%s: the row is not whole", row.Name, o.Name)
			}
			if slices.Contains(row.Files, o.Name) || slices.Contains(row.Addresses, o.Name) {
				t.Errorf("%s.%s: it is an option, and refused", row.Name, o.Name)
			}
		}
		if names := row.OptionNames(); len(slices.Compact(names)) != len(row.Options) {
			t.Errorf("%s: an option stands there twice: %v", row.Name, names)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"cpu", "openvino", "cuda", "tensorrt", "xnnpack", "dnnl", "coreml", "plugin"}, provider.Names()); diff != "" {
		t.Errorf("in profiles (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cpu", "openvino", "cuda", "tensorrt"}, provider.OfTriton()); diff != "" {
		t.Errorf("in a stock Triton (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"cuda": true, "tensorrt": true, "cpu": false, "openvino": false, "nobody": false, "": false} {
		if provider.OnGPU(name) != want {
			t.Errorf("%q is on a GPU: %t", name, !want)
		}
	}
	if p := provider.Of("nobody"); p.ORTName() != "nobodyExecutionProvider" || p.GenericName() != "nobody" || p.Triton != provider.Missing {
		t.Errorf("an unknown provider: %+v", p)
	}
}

// TestDocumented checks that the reference of profile.yaml names each provider.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/profile-fields.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range provider.Names() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/reference/profile-fields.md does not name %s", name)
		}
	}
}

// TestFiles checks that a configuration may name caches below the working folder, and no other
// file.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		option, value string
		want          bool
	}{
		{"cache_dir", "blobs", false}, {"cache_dir", "/etc", true}, {"cache_dir", "../..", true}, {"cache_dir", "", false},
		{"trt_engine_cache_path", "a/b", false}, {"trt_engine_cache_path", "/a", true},
		{"int8_calibration_table_name", "table", false}, {"int8_calibration_table_name", "/etc/passwd", true},
		{"trt_extra_plugin_lib_paths", "a.so", true}, {"trt_onnx_model_folder_path", "a", true}, {"context", "1", true},
		{"ModelCacheDirectory", "/tmp", true},
		{"load_config", `{"CPU": {"ENABLE_CPU_PINNING": "NO"}}`, false}, {"load_config", `{"CPU": {"CACHE_DIR": "x"}}`, true},
		{"num_streams", "/etc", false}, {"", "", false},
	} {
		if got := provider.OpensFile(test.option, test.value); got != test.want {
			t.Errorf("%s = %s: %t", test.option, test.value, got)
		}
	}
	if !provider.IsAddress("user_compute_stream") || provider.IsAddress("prefer_nhwc") || provider.IsAddress("") {
		t.Error("addresses are not told apart")
	}
}

func TestLowersPrecision(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		provider, name, value string
		want                  bool
	}{
		{"openvino", "num_of_threads", "2", false},
		{"openvino", "precision", "ACCURACY", false},
		{"openvino", "precision", "FP16", true},
		{"openvino", "load_config", `{"CPU": {"ENABLE_CPU_PINNING": "NO"}}`, false},
		{"openvino", "load_config", `{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}`, false},
		{"openvino", "load_config", `{"CPU": {"ENABLE_CPU_PINNING": "NO", "INFERENCE_PRECISION_HINT": "bf16"}}`, true},
		{"openvino", "load_config", `{"CPU": {"EXECUTION_MODE_HINT": "PERFORMANCE"}, "GPU": {}}`, true},
		{"openvino", "load_config", `{"CPU": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 32}}`, true},
		{"tensorrt", "precision_mode", "FP32", false},
		{"tensorrt", "precision_mode", "INT8", true},
		{"coreml", "AllowLowPrecisionAccumulationOnGPU", "1", true},
		{"cuda", "prefer_nhwc", "1", false},
	} {
		if got := provider.Of(test.provider).LowersPrecision(test.name, test.value); got != test.want {
			t.Errorf("%s.%s = %s: %t", test.provider, test.name, test.value, got)
		}
	}
}

// Values of options come over the wire, too. None makes their checks fail or take much memory, and
// none that is taken names a cache of OpenVINO's.
func FuzzOptionValues(f *testing.F) {
	for _, value := range []string{"", "1", "true", `{"CPU": {"ENABLE_CPU_PINNING": "NO"}}`, `{"CPU": {"CACHE_DIR": "/etc"}}`, `{"CPU": {"\u0043ACHE_DIR": 1}}`,
		"GPU.0", "HETERO:GPU,CPU", "../../file", "18446744073709551616", "1e999", strings.Repeat("[", 1000)} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		options := 0
		for _, p := range provider.All() {
			for _, name := range p.OptionNames() {
				o, ok := p.Option(name)
				if !ok {
					t.Fatalf("%s has no option %s", p.Name, name)
				}
				check := alloctest.Bound(t, len(value))
				options++
				holds := o.Form.Holds == nil || o.Form.Holds(value)
				_, _ = p.LowersPrecision(name, value), provider.OpensFile(name, value)
				if o.Native != nil {
					_, _ = o.Native(value)
				}
				check()
				var devices map[string]map[string]any
				if name != "load_config" || !holds || json.Unmarshal([]byte(value), &devices) != nil {
					continue
				}
				for _, properties := range devices {
					if _, isNamed := properties["CACHE_DIR"]; isNamed {
						t.Errorf("%q is taken", value)
					}
				}
			}
		}
		if options == 0 {
			t.Error("no provider has options, so nothing was tested")
		}
	})
}
