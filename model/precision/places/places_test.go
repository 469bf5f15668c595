package places

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/search"
)

// Figures of another build are not reused, nor those of another library with the same version.
func TestKeyNamesEveryBuild(t *testing.T) {
	t.Parallel()
	library := filepath.Join(t.TempDir(), "libonnxruntime.so.1.31.1")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(library, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cpu, newer := ortlib.Build{Flavour: "cpu", Version: "1.31.1"}, ortlib.Build{Flavour: "openvino", Version: "1.24.1"}
	host := hostinfo.Host{Arch: "amd64", CPU: hostinfo.CPU{Features: []string{"AVX2", "AVX512VNNI"}}, GPUs: []hostinfo.GPU{{Name: "NVIDIA H100"}}}
	mine := ortlib.Build{Flavour: ortlib.External, Version: "1.31.1", Library: library}
	tool := func(base, openvino ortlib.Build, providers ...string) string {
		t.Helper()
		text, err := Builds(func(provider string) ortlib.Build {
			if provider == "openvino" {
				return openvino
			}
			return base
		}).Key("tuner 1.2.3", host, providers)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const program = "tuner 1.2.3, "
	check := func(got, want string) {
		t.Helper()
		want = program + want + ", amd64, AVX2, AVX512VNNI"
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(tool(cpu, newer, "cpu", "openvino"), "cpu@1.31.1, openvino on openvino@1.24.1")
	check(tool(cpu, newer, "cpu"), "cpu@1.31.1") // openvino's build does not affect it
	check(tool(cpu, cpu, "cpu", "openvino"), "cpu@1.31.1")
	write("a")
	// sha256 of "a", and of "b".
	const a, b = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
	check(tool(mine, mine, "cpu"), "external@1.31.1 ("+a+")")
	write("b")
	check(tool(mine, mine, "cpu"), "external@1.31.1 ("+b+")")
	check(tool(cpu, mine, "openvino"), "cpu@1.31.1, openvino on external@1.31.1 ("+b+")")
	if _, err := Builds(func(string) ortlib.Build { return ortlib.Build{Flavour: ortlib.External, Library: "absent"} }).Key("tuner", host, nil); err == nil {
		t.Error("no error for a library that is not there")
	}
}

// Figures of another machine are not reused: other instruction sets round differently, and so do
// other GPUs.
func TestKeyNamesTheMachine(t *testing.T) {
	t.Parallel()
	tool := func(host hostinfo.Host, places ...string) string {
		t.Helper()
		text, err := Builds(func(string) ortlib.Build { return ortlib.Build{Flavour: "cuda", Version: "1.31.1"} }).Key("tuner", host, places)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	with := func(gpu string, features ...string) hostinfo.Host {
		return hostinfo.Host{Arch: "amd64", CPU: hostinfo.CPU{Features: features}, GPUs: []hostinfo.GPU{{Name: gpu}}}
	}
	h100, h200, newer := with("H100", "AVX2"), with("H200", "AVX2"), with("H100", "AVX2", "AVX512VNNI")
	for _, place := range []string{"cpu", "cuda", "tensorrt in cuda@1.31.1"} {
		if tool(h100, place) == tool(newer, place) {
			t.Errorf("%s: another CPU has the same name, %s", place, tool(newer, place))
		}
		if isSame, want := tool(h100, place) == tool(h200, place), place == "cpu"; isSame != want {
			t.Errorf("%s: another GPU has the same name: %t, want %t", place, isSame, want)
		}
	}
}

// A place names its build if several are measured. Otherwise the default's serves.
func TestBuildOfAPlace(t *testing.T) {
	t.Parallel()
	builds := []ortlib.Build{{Flavour: "cpu", Version: "1"}, {Flavour: "openvino", Version: "2"}}
	serving := OfCampaign(builds, search.Facts{Runtimes: []search.RuntimeFacts{{Name: "cpu@1"}, {Name: "openvino@2"}}})
	for place, want := range map[string]ortlib.Build{
		"cpu": builds[0], "cpu in cpu@1": builds[0], "cpu in openvino@2": builds[1], "openvino in openvino@2": builds[1],
	} {
		if got := serving(place); got != want {
			t.Errorf("%s: %v, want %v", place, got, want)
		}
	}
	if got := OfCampaign(builds[1:], search.Facts{})("openvino"); got != builds[1] {
		t.Errorf("without the knob: %v, want the only build", got)
	}
}

// The installed build of a provider's flavour serves it. If flag or environment names a build, that
// serves all.
func TestBuildFor(t *testing.T) {
	cache := t.TempDir()
	library := filepath.Join(cache, "runtimes", "openvino@1.2.3", "onnxruntime", "capi", "libonnxruntime.so.1.2.3")
	if err := errors.Join(os.MkdirAll(filepath.Dir(library), 0o755), os.WriteFile(library, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TUNER_CACHE", cache)
	base := ortlib.Build{Flavour: ortlib.External, Version: "1.31.1", Library: "mine.so"}
	check := func(environment, named, provider, want string) {
		t.Helper()
		t.Setenv("TUNER_ORT_LIBRARY", environment)
		if got := buildFor(provider, named, base); got.Library != want {
			t.Errorf("%s, with %q in the environment and %q as the flag: %q, want %q", provider, environment, named, got.Library, want)
		}
	}
	check("", "", "openvino", library)
	check("", "", "cuda", base.Library) // not installed
	check("", "", "xnnpack", base.Library)
	check("", "mine.so", "openvino", base.Library)
	check("mine.so", "", "openvino", base.Library)
}
