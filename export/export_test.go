package export

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"tuner/export/tuned"
	"tuner/export/tuned/tunedtest"
	"tuner/internal/alloctest"
	"tuner/internal/exit"
	"tuner/internal/golden"
	"tuner/report/result"
)

// defaults returns the options of a user who gives only inputs.
func defaults(inputs ...string) Options {
	o := DefaultOptions()
	o.Inputs = inputs
	return o
}

// analyzed makes an output folder of `tuner analyze` from package report's golden result, with
// texts replaced.
func analyzed(t *testing.T, replace ...string) string {
	t.Helper()
	return tunedtest.Analyzed(t, "..", tunedtest.One, replace...)
}

// gpu makes the result one of an A100.
func gpu() []string {
	return []string{"KIND_CPU", "KIND_GPU", `"execution_provider": "cpu"`, `"execution_provider": "tensorrt"`,
		`"model": "Formula"`, `"model": "Formula", "features": []`, `"memory": {
      "total": 16000000000
    }`, `"memory": {"total": 16000000000}, "gpus": [{"name": "NVIDIA A100 80GB PCIe"}]`}
}

// parsed reads package report's golden result with texts replaced.
func parsed(t *testing.T, replace ...string) tuned.Model {
	t.Helper()
	models, err := tuned.Parse(result.FileName, tunedtest.Text(t, "..", tunedtest.One, replace...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return models[0]
}

// exported exports, and decodes the value at a path in one of the files.
func exported(t *testing.T, target, file string, o Options, into any, at ...string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "deploy")
	if _, err := Write(target, out, o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, file))
	if err != nil {
		t.Fatal(err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	found := node.Content[0]
	for _, step := range at {
		if i, err := strconv.Atoi(step); err == nil {
			found = found.Content[i]
			continue
		}
		i := slices.IndexFunc(found.Content, func(n *yaml.Node) bool { return n.Value == step })
		if i < 0 {
			t.Fatalf("%s: there is no %s of %v", file, step, at)
		}
		found = found.Content[i+1]
	}
	if err := found.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// tree reads all files below a folder except the model's, by their paths. Temporary folders become
// IN.
func tree(t *testing.T, dir string, inputs ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) == ".onnx" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, in := range inputs {
			text = []byte(strings.ReplaceAll(string(text), in, "IN"))
		}
		found[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestGoldens exports every target. The configuration is the same in all, so only the first has it.
// The chart's templates and schema are omitted, since they are files of this package.
func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, target string
		result       []string
		options      func(*Options)
	}{
		{"triton", Triton, nil, nil},
		{"kubernetes", Kubernetes, nil, nil},
		{"kubernetes-gpu", Kubernetes, gpu(), func(o *Options) {
			o.GPUResource, o.Storage, o.ControlMode, o.HostPolicies = "nvidia.com/mig-1g.5gb", "s3://bucket/models", ControlExplicit, []string{"gpu_0,numa-node=0"}
		}},
		{"helm", Helm, nil, nil},
		{"kserve", KServe, nil, nil},
		{"kserve-gpu", KServe, gpu(), func(o *Options) { o.Image, o.Storage = "registry.example.com/triton:1", "pvc://shared/models" }},
		{"compose", Compose, nil, nil},
		{"compose-gpu", Compose, gpu(), nil},
		{"azureml", AzureML, nil, nil},
		{"azureml-gpu", AzureML, gpu(), func(o *Options) { o.Image, o.ControlMode = "registry.example.com/triton:1", ControlPoll }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in, out := analyzed(t, test.result...), filepath.Join(t.TempDir(), "deploy")
			o := defaults(in)
			if test.options != nil {
				test.options(&o)
			}
			e, err := Write(test.target, out, o)
			if err != nil {
				t.Fatal(err)
			}
			files := tree(t, out, in)
			for _, f := range e.Files {
				if _, ok := files[f]; !ok && !strings.HasSuffix(f, "minilm") {
					t.Errorf("%s is said to be written", f)
				}
			}
			if test.name != "triton" {
				maps.DeleteFunc(files, func(path, _ string) bool {
					return strings.HasPrefix(path, "chart/templates") || strings.HasSuffix(path, ".schema.json") || strings.HasSuffix(path, ".pbtxt")
				})
			}
			golden.CheckTree(t, filepath.Join("testdata", test.name), files)
		})
	}
}

// One server serves several models with the sum of their resources.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	first, second := analyzed(t), analyzed(t, "minilm", "resnet")
	out := filepath.Join(t.TempDir(), "deploy")
	e, err := Write(Kubernetes, out, defaults(first, second))
	if err != nil {
		t.Fatal(err)
	}
	d := e.Deployment
	// Each model has 2 instances of 1 thread, concurrency 16 and a peak of 290 MB. 2 · 290e6 · 1.3
	// B is 719 MiB. 256 MiB are added, in steps of 64.
	if d.Name != "triton" || d.CPUs != 4 || d.Concurrency != 32 || d.Memory != 1024 {
		t.Errorf("name %q, %d cores, concurrency %d, %d MiB; want triton, 4, 32, 1024", d.Name, d.CPUs, d.Concurrency, d.Memory)
	}
	for _, model := range []string{"minilm", "resnet"} {
		if _, err := os.Stat(filepath.Join(out, repositoryFolder, model, "1", "model.onnx")); err != nil {
			t.Error(err)
		}
	}
	if !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, `The deployment is called "triton"`) }) {
		t.Errorf("notes do not tell the name: %q", d.Notes)
	}
}

// A failure in the middle leaves neither the folder nor a temporary one beside it.
func TestNothingHalfWritten(t *testing.T) {
	t.Parallel()
	in, parent := analyzed(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(in, "repository", "minilm", "1", "extra"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Write(Triton, filepath.Join(parent, "deploy"), defaults(in))
	if exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "it was changed since tuner wrote it; run 'tuner analyze' to write it again") {
		t.Errorf("error is %v, want one of the user's input", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

func TestDNSLabel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"minilm": "minilm", "BERT_Squad.v1": "bert-squad-v1", "7b": "m-7b", "__": "model", "": "model", "-a-": "a", "a__b": "a-b",
		"naïve": "na-ve", "x: y\n": "x-y", "${HOME}; rm -rf /": "home-rm-rf",
		strings.Repeat("a", 39) + "-bc": strings.Repeat("a", 39), // cut after 40 characters, without a dash at the end
	} {
		if got := DNSLabel(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := DNSLabel(want); got != want {
			t.Errorf("%q becomes %q, want it to stay", want, got)
		}
	}
}

func TestStorage(t *testing.T) {
	t.Parallel()
	check := func(uri string, want storage) {
		t.Helper()
		if err := checkStorage(kubernetesTarget(), uri); err != nil {
			t.Error(err)
		}
		if got := newStorage(uri, "m"); got != want {
			t.Errorf("%q: %+v, want %+v", uri, got, want)
		}
	}
	check("", storage{URI: "pvc://m-models", Claim: "m-models", Own: true})
	check("pvc://shared", storage{URI: "pvc://shared", Claim: "shared"})
	check("pvc://shared/a/b/", storage{URI: "pvc://shared/a/b", Claim: "shared", Path: "a/b"})
	check("s3://bucket/models", storage{URI: "s3://bucket/models"})
	check("s3://minio:9000/bucket", storage{URI: "s3://minio:9000/bucket"})
	for _, uri := range []string{"pvc://", "pvc://A", "s3://x/../y", "file:///x", "s3://a b", "hf://org/model", "s3://x/$(y)"} {
		if err := checkStorage(kubernetesTarget(), uri); err == nil {
			t.Errorf("%q is accepted", uri)
		}
	}
	if err := checkStorage(kserveTarget(), "hf://org/model"); err != nil {
		t.Error(err)
	}
}

func TestImageTag(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		DefaultImage: "24.10-py3", "triton": "", "localhost:5000/triton": "", "localhost:5000/triton:1": "1", "triton@sha256:ab": "sha256:ab",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("%s: tag %q, want %q", image, got, want)
		}
	}
}

// The README names the machine of each model once, with the GPUs of models that compute on them.
func TestMachines(t *testing.T) {
	t.Parallel()
	d := Deployment{Models: []tuned.Model{parsed(t), parsed(t, gpu()...), parsed(t, `"model": "Formula"`, `"model": "Other | CPU"`)}}
	if got, want := (view{d}).Machines(), `Formula, NVIDIA A100 80GB PCIe, Other \| CPU`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Any content of result.json gives an error, or a model that every target can write.
func FuzzResult(f *testing.F) {
	for _, name := range []string{"found.json", "variants.json", "infeasible.json", "two.json"} {
		text, err := os.ReadFile(filepath.Join("../report/testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		models, err := tuned.Parse(result.FileName, text, nil)
		if err != nil {
			return
		}
		for _, target := range targets() {
			o := defaults("out")
			if target.name == AzureML {
				o.InstanceType = "Standard_F4s_v2"
			}
			d, err := newDeployment(target, models, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.files(); err != nil {
				t.Fatal(err)
			}
			manifest, err := d.Manifest().encode()
			if err != nil {
				t.Fatal(err)
			}
			if back, err := parseManifest(ManifestName, manifest); err != nil || !cmp.Equal(back, d.Manifest()) {
				t.Fatalf("export.json reads back as %+v, %v", back, err)
			}
		}
	})
}

// Any content of export.json gives an error, or a manifest that survives writing and reading.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"repository":"model_repository","models":[{"name":"m","load":{"concurrency":1,"batch_size":1},"throughput":{"value":1}}]}`))
	f.Add([]byte(`{"format":1,"repository":"../x","models":[{"name":"../m"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		m, err := parseManifest(ManifestName, text)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseManifest(ManifestName, again); err != nil || back.Repository != m.Repository || len(back.Models) != len(m.Models) {
			t.Fatalf("reads back as %+v, %v", back, err)
		}
	})
}

// Every way to start the server stops ONNX Runtime from sending telemetry to its maker.
func TestNothingPhonesHome(t *testing.T) {
	t.Parallel()
	type pair struct{ Name, Value string }
	var pairs []pair
	var variables map[string]string
	o := defaults(analyzed(t))
	exported(t, Kubernetes, "manifests/deployment.yaml", o, &pairs, "spec", "template", "spec", "containers", "0", "env")
	want := []pair{{"ORT_DISABLE_TELEMETRY", "1"}}
	if diff := cmp.Diff(want, pairs); diff != "" {
		t.Errorf("kubernetes (-want +got):\n%s", diff)
	}
	pairs = nil
	store := o
	store.Storage = "s3://bucket/models"
	exported(t, KServe, "inferenceservice.yaml", store, &pairs, "spec", "predictor", "model", "env")
	if diff := cmp.Diff(want, pairs); diff != "" {
		t.Errorf("kserve (-want +got):\n%s", diff)
	}
	for target, place := range map[string][]string{
		Compose: {"compose.yaml", "services", "triton", "environment"},
		Helm:    {"chart/values.yaml", "environment"},
		AzureML: {"deployment.yml", "environment_variables"},
	} {
		variables = nil
		exported(t, target, place[0], o, &variables, place[1:]...)
		if diff := cmp.Diff(map[string]string{"ORT_DISABLE_TELEMETRY": "1"}, variables); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	out := filepath.Join(t.TempDir(), "deploy")
	if _, err := Write(Triton, out, o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "README.md"))
	if err != nil || !strings.Contains(string(text), " -e ORT_DISABLE_TELEMETRY=1 ") {
		t.Errorf("the docker run line sets no variable (%v)", err)
	}
}
