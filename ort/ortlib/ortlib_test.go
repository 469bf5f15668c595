package ortlib

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/provider"
)

// storeWith makes a store on linux/amd64 in which builds are installed, by flavour@version.
func storeWith(t *testing.T, names ...string) Store {
	t.Helper()
	store := StoreFor(t.TempDir(), "linux/amd64")
	for _, name := range names {
		_, version, _ := strings.Cut(name, "@")
		touch(t, filepath.Join(store.dir, name, "onnxruntime", "capi", "libonnxruntime.so."+version))
		touch(t, filepath.Join(store.dir, name, "onnxruntime", "capi", "libonnxruntime_providers_shared.so"))
	}
	return store
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestListOrdersBuilds(t *testing.T) {
	t.Parallel()
	store := storeWith(t, "openvino@1.24.1", "cpu@1.9.0", "cpu@1.31.1", "zeta@1.0", "cuda@1.31.1")
	// The files of an interrupted installation are not a build.
	touch(t, filepath.Join(store.dir, ".cpu@1.30.0-1234567", "onnxruntime", "capi", "libonnxruntime.so.1.30.0"))
	touch(t, filepath.Join(store.dir, "downloads", "cpu.whl"))
	builds, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range builds {
		names = append(names, b.Name())
	}
	want := []string{"cpu@1.31.1", "cpu@1.9.0", "openvino@1.24.1", "cuda@1.31.1", "zeta@1.0"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	dir := filepath.Join(store.dir, "cpu@1.31.1", "onnxruntime", "capi")
	if diff := cmp.Diff(Build{"cpu", "1.31.1", filepath.Join(dir, "libonnxruntime.so.1.31.1"), dir}, builds[0]); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	store := storeWith(t, "openvino@1.24.1", "cpu@1.24.4", "cpu@1.31.1")
	tests := []struct{ selector, want string }{
		{"", "cpu@1.31.1"},
		{"cpu", "cpu@1.31.1"},
		{"cpu@1.24.4", "cpu@1.24.4"},
		{"openvino", "openvino@1.24.1"},
	}
	for _, tt := range tests {
		build, err := store.Find(tt.selector)
		if err != nil || build.Name() != tt.want {
			t.Errorf("Find(%q) = %v, %v; want %s", tt.selector, build.Name(), err, tt.want)
		}
	}
}

func TestFindErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		store    Store
		selector string
		want     string
	}{
		{storeWith(t), "", "run 'tuner runtime install cpu'"},
		{storeWith(t), "openvino", `runtime "openvino" is not installed (installed: none); run 'tuner runtime install openvino'`},
		{storeWith(t, "cpu@1.31.1"), "cpu@1.0", `runtime "cpu@1.0" is not installed (installed: cpu@1.31.1); cannot install runtime "cpu@1.0": for linux/amd64 there are cpu@1.31.1, `},
	}
	for _, tt := range tests {
		_, err := tt.store.Find(tt.selector)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Find(%q): error %v, want one with %q", tt.selector, err, tt.want)
		}
	}
}

// A damaged build does not affect the others. It is listed separately. A user who names it sees the
// remedy.
func TestDamagedBuilds(t *testing.T) {
	t.Parallel()
	store := storeWith(t, "cpu@1.24.4", "cpu@1.31.1", "openvino@1.24.1", "cuda@1.31.1", "zeta@1.0")
	remove := func(path ...string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(store.dir, filepath.Join(path...))); err != nil {
			t.Fatal(err)
		}
	}
	remove("cpu@1.31.1", "onnxruntime", "capi", "libonnxruntime.so.1.31.1")
	remove("openvino@1.24.1", "onnxruntime")
	remove("zeta@1.0")
	folder := filepath.Join(store.dir, "cuda@1.31.1", "onnxruntime", "capi", "libonnxruntime.so.1.31.1")
	for _, err := range []error{os.Symlink("nowhere", filepath.Join(store.dir, "zeta@1.0")), os.Remove(folder), os.Mkdir(folder, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	builds, err := store.List()
	if err != nil || len(builds) != 1 || builds[0].Name() != "cpu@1.24.4" {
		t.Errorf("%v, %v; want cpu@1.24.4 alone", builds, err)
	}
	damaged, err := store.Damaged()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ name, cause, remedy string }{
		{"cpu@1.31.1", "there is no ONNX Runtime library in", "; run 'tuner runtime install cpu@1.31.1', which repairs it, or delete "},
		{"cuda@1.31.1", "is not a regular file", "; run 'tuner runtime install cuda@1.31.1', which repairs it, or delete "},
		{"openvino@1.24.1", "no such file or directory", "; run 'tuner runtime install openvino@1.24.1', which repairs it, or delete "},
		{"zeta@1.0", "no such file or directory", "; delete "},
	} {
		if i >= len(damaged) {
			t.Fatalf("%d builds are damaged, want 4", len(damaged))
		}
		d := damaged[i]
		text := d.Err.Error()
		if d.Name != want.name || d.Dir != filepath.Join(store.dir, want.name) || !strings.HasPrefix(text, `runtime "`+want.name+`" is damaged: `) ||
			!strings.Contains(text, want.cause) || !strings.HasSuffix(text, want.remedy+strconv.Quote(d.Dir)) {
			t.Errorf("got %s in %s: %s; want %+v", d.Name, d.Dir, text, want)
		}
		if _, err := store.Find(want.name); err == nil || err.Error() != text {
			t.Errorf("Find(%q): error %v, want %s", want.name, err, text)
		}
	}
	if build, err := store.Find("cpu"); err != nil || build.Name() != "cpu@1.24.4" {
		t.Errorf("Find(cpu) = %s, %v", build.Name(), err)
	}
	remove("cpu@1.24.4")
	if _, err := store.Find(""); err == nil || !strings.Contains(err.Error(), `"cpu@1.31.1" is damaged`) {
		t.Errorf("damaged ones alone: error %v", err)
	}
}

// A build may be a link to a folder elsewhere.
func TestLinkedBuild(t *testing.T) {
	t.Parallel()
	elsewhere, store := storeWith(t, "cpu@1.31.1"), storeWith(t, "cpu@1.24.4")
	if err := os.Symlink(filepath.Join(elsewhere.dir, "cpu@1.31.1"), filepath.Join(store.dir, "cpu@1.31.1")); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(store.dir, "cpu@1.31.1", "onnxruntime", "capi", "libonnxruntime.so.1.31.1")
	if build, err := store.Find("cpu"); err != nil || build.Library != library {
		t.Errorf("Find(cpu) = %v, %v; want %s", build, err, library)
	}
}

// An installation replaces a build that does not open.
func TestUnpackReplacesDamagedBuild(t *testing.T) {
	t.Parallel()
	store := storeWith(t)
	touch(t, filepath.Join(store.dir, "cpu@1.31.1", "onnxruntime", "capi", "libonnxruntime_providers_shared.so"))
	file, err := os.Create(filepath.Join(t.TempDir(), "cpu.whl"))
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	_, err = archive.Create("onnxruntime/capi/libonnxruntime.so.1.31.1")
	if err := errors.Join(err, archive.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := store.unpack(file.Name(), "cpu@1.31.1"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Find("cpu@1.31.1"); err != nil {
		t.Error(err)
	}
}

func TestInstallTwiceDownloadsNothing(t *testing.T) {
	t.Parallel()
	store := storeWith(t, "cpu@1.31.1")
	var progress bytes.Buffer
	build, err := store.Install(context.Background(), "cpu", &progress)
	if err != nil || build.Name() != "cpu@1.31.1" || progress.Len() != 0 {
		t.Errorf("Install = %v, %v, progress %q", build, err, progress.String())
	}
}

func TestInstallErrors(t *testing.T) {
	t.Parallel()
	elsewhere := StoreFor(t.TempDir(), "plan9/mips")
	tests := []struct {
		store    Store
		selector string
		want     string
	}{
		{storeWith(t), "gpu", `cannot install runtime "gpu": for linux/amd64 there are cpu@1.31.1, cpu@1.32.0, cpu@1.24.4, openvino@1.24.1, cuda@1.31.1`},
		{storeWith(t), "cpu@1.0", `cannot install runtime "cpu@1.0"`},
		{elsewhere, "cpu", "there are no builds for plan9/mips"},
	}
	for _, tt := range tests {
		_, err := tt.store.Install(context.Background(), tt.selector, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Install(%q): error %v, want one with %q", tt.selector, err, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("TUNER_CACHE", cache)
	t.Setenv("TUNER_ORT_LIBRARY", "")
	if _, err := Resolve(""); err == nil || !strings.Contains(err.Error(), "tuner runtime install cpu") {
		t.Errorf("nothing installed: error %v", err)
	}
	touch(t, filepath.Join(cache, "runtimes", "cpu@1.31.1", "onnxruntime", "capi", "libonnxruntime.so.1.31.1"))
	mine := filepath.Join(cache, "mine", "libonnxruntime.so.1.27.0")
	touch(t, mine)
	other := filepath.Join(cache, "other", "ort.so")
	touch(t, other)
	check := func(flag, env string, want Build) {
		t.Helper()
		t.Setenv("TUNER_ORT_LIBRARY", env)
		got, err := Resolve(flag)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want.Name()+" "+want.Library, got.Name()+" "+got.Library); diff != "" {
			t.Error(diff)
		}
	}
	installed, err := NewStore(cache).Find("")
	if err != nil {
		t.Fatal(err)
	}
	check("", "", installed)
	check("", mine, Build{Flavour: External, Version: "1.27.0", Library: mine})
	check(other, mine, Build{Flavour: External, Library: other})
	check("cpu", mine, installed)
	check("", "cpu@1.31.1", installed)
	if _, err := Resolve("openvino"); err == nil || !strings.Contains(err.Error(), `--ort-library: "openvino" is not a library file, and runtime "openvino" is not installed`) {
		t.Errorf("selector of nothing: error %v", err)
	}
	for _, bad := range []string{filepath.Dir(mine), filepath.Join(cache, "absent")} {
		if _, err := Resolve(bad); err == nil || !strings.Contains(err.Error(), "--ort-library: ") {
			t.Errorf("Resolve(%q): error %v", bad, err)
		}
	}
}

// The name of a flavour is not a file, even if a file has that name. Any other name is a file if
// there is one.
func TestResolveInAFolderOfSuchNames(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("TUNER_CACHE", cache)
	touch(t, filepath.Join(cache, "runtimes", "cpu@1.31.1", "onnxruntime", "capi", "libonnxruntime.so.1.31.1"))
	t.Chdir(t.TempDir())
	for _, path := range []string{"cpu/x", "cpu@1.31.1", "openvino/x", "mine.so", "lib/x"} {
		touch(t, path)
	}
	check := func(selector, want string) {
		t.Helper()
		if build, err := Resolve(selector); err != nil || build.Name() != want {
			t.Errorf("Resolve(%q) = %s, %v; want %s", selector, build.Name(), err, want)
		}
	}
	check("cpu", "cpu@1.31.1")
	check("cpu@1.31.1", "cpu@1.31.1")
	check("./cpu@1.31.1", External)
	check("mine.so", External)
	for selector, want := range map[string]string{
		"openvino": `--ort-library: "openvino" is not a library file, and runtime "openvino" is not installed (installed: cpu@1.31.1)`,
		"./cpu":    `--ort-library: "./cpu" is a folder; name the library file in it`,
		"lib":      `--ort-library: "lib" is a folder; name the library file in it`,
	} {
		if _, err := Resolve(selector); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q): error %v, want one with %s", selector, err, want)
		}
	}
}

func TestResolveAll(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("TUNER_CACHE", cache)
	for _, name := range []string{"cpu@1.24.4", "cpu@1.31.1", "openvino@1.24.1"} {
		_, version, _ := strings.Cut(name, "@")
		touch(t, filepath.Join(NewStore(cache).dir, name, "onnxruntime", "capi", "libonnxruntime.so."+version))
	}
	mine := filepath.Join(cache, "mine", "libonnxruntime.so.1.27.0")
	touch(t, mine)
	builds, err := ResolveAll([]string{"openvino", "cpu", mine, "cpu@1.24.4"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range builds {
		names = append(names, b.Name())
	}
	if diff := cmp.Diff([]string{"openvino@1.24.1", "cpu@1.31.1", "external@1.27.0", "cpu@1.24.4"}, names); diff != "" {
		t.Error(diff)
	}

	_, err = ResolveAll([]string{"cpu@1.31.1", "cuda", "cpu", "abacus"})
	remedy := `run 'tuner runtime install cuda'`
	if _, err := findRelease("cuda", NewStore(cache).platform); err != nil {
		remedy = err.Error()
	}
	for _, want := range []string{`runtime "cuda" is not installed`, remedy,
		`runtime "cpu@1.31.1" and "cpu" are both cpu@1.31.1: leave one out`, `runtime "abacus" is not installed`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %s", err, want)
		}
	}
	if same := new(SameError); !errors.As(err, &same) || same.Name != "cpu@1.31.1" {
		t.Errorf("got %v, want a SameError of cpu@1.31.1", err)
	}
	if _, err := ResolveAll([]string{"cuda"}); err == nil || errors.As(err, new(*SameError)) {
		t.Errorf("got %v, want an error, and none of two selectors", err)
	}
}

// A library reports its version only when it is opened, so two files may turn out to have one name.
func TestCheckDistinct(t *testing.T) {
	t.Parallel()
	check := func(a, b Build, same bool) {
		t.Helper()
		if err := CheckDistinct([]Build{a, b}, []string{"a", "b"}); errors.As(err, new(*SameError)) != same {
			t.Errorf("%v and %v: error %v, want one: %t", a, b, err, same)
		}
	}
	check(Build{Flavour: External, Version: "1", Library: "x"}, Build{Flavour: External, Version: "1", Library: "y"}, true)
	check(Build{Flavour: External, Version: "1", Library: "x"}, Build{Flavour: "cpu", Version: "1", Library: "x"}, true)
	check(Build{Flavour: External, Version: "1", Library: "x"}, Build{Flavour: "cpu", Version: "1", Library: "y"}, false)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "darwin" {
		t.Skip("the variable's name is Linux's")
	}
	build := Build{Dir: "/builds/cpu"}
	check := func(base, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, build.Environment(base)); diff != "" {
			t.Error(diff)
		}
	}
	check([]string{"A=1"}, []string{"A=1", "LD_LIBRARY_PATH=/builds/cpu"})
	check([]string{"LD_LIBRARY_PATH=/usr/x", "A=1"}, []string{"A=1", "LD_LIBRARY_PATH=/builds/cpu:/usr/x"})
	check([]string{"LD_LIBRARY_PATH="}, []string{"LD_LIBRARY_PATH=/builds/cpu"})
}

func TestIsWanted(t *testing.T) {
	t.Parallel()
	wanted := []string{"onnxruntime/capi/libonnxruntime.so.1.31.1", "onnxruntime/capi/libonnxruntime.1.31.1.dylib",
		"onnxruntime/capi/libtbb.so.12", "onnxruntime/LICENSE"}
	unwanted := []string{"onnxruntime/capi/onnxruntime_pybind11_state.so", "onnxruntime/__init__.py",
		"onnxruntime/capi/deep/libx.so", "libx.so", "onnxruntime/datasets/sigmoid.onnx"}
	for _, name := range wanted {
		if !isWanted(name) {
			t.Errorf("%s is left out", name)
		}
	}
	if i := slices.IndexFunc(unwanted, isWanted); i >= 0 {
		t.Errorf("%s is unpacked", unwanted[i])
	}
}

// Each release is complete. Each platform with builds has the cpu flavour, which every remedy
// names.
func TestReleases(t *testing.T) {
	t.Parallel()
	platforms := map[string]bool{}
	for _, r := range releases() {
		if digest, err := hex.DecodeString(r.digest); err != nil || len(digest) != 32 {
			t.Errorf("%s for %s: digest %q", r.name(), r.platform, r.digest)
		}
		_, isVersion := libraryVersion("libonnxruntime.so." + r.version)
		if _, isKnown := provider.BuildOf(r.flavour); !isVersion || !isKnown || r.tag == "" {
			t.Errorf("%s for %s is incomplete", r.name(), r.platform)
		}
		platforms[r.platform] = true
	}
	for platform := range platforms {
		if _, err := findRelease("cpu", platform); err != nil {
			t.Error(err)
		}
	}
}

// A package of tuner brings a build, which is never written to. An installed build hides it.
func TestShippedBuilds(t *testing.T) {
	t.Parallel()
	shipped := storeWith(t, "cpu@1.31.1")
	store := storeWith(t)
	store.shipped = shipped.dir
	for _, selector := range []string{"", "cpu", "cpu@1.31.1"} {
		if build, err := store.Find(selector); err != nil || !strings.HasPrefix(build.Library, shipped.dir) {
			t.Errorf("%q: found %q (%v), want the shipped build", selector, build.Library, err)
		}
	}
	// Nothing is downloaded: without a network, an installation would fail.
	if build, err := store.Install(t.Context(), "cpu", os.Stderr); err != nil || !strings.HasPrefix(build.Library, shipped.dir) {
		t.Errorf("installed %q (%v), want the shipped build", build.Library, err)
	}
	touch(t, filepath.Join(store.dir, "cpu@1.31.1", "onnxruntime", "capi", "libonnxruntime.so.1.31.1"))
	builds, err := store.List()
	if err != nil || len(builds) != 1 || !strings.HasPrefix(builds[0].Library, store.dir) {
		t.Errorf("listed %v (%v), want the installed build alone", builds, err)
	}
}

// `uv tool install` and people link to a program. Its build stands beside the program itself.
func TestShippedBesideALink(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(dir, "tool", "bin", "tuner"))
	link := filepath.Join(dir, "tuner")
	if err := os.Symlink(filepath.Join(dir, "tool", "bin", "tuner"), link); err != nil {
		t.Fatal(err)
	}
	if got, want := shippedBeside(link), filepath.Join(dir, "tool", "lib", "tuner", "runtimes"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
