package addon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/addon"
)

// compile makes a shared library of C code.
func compile(t *testing.T, name, code string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path)
	cmd.Stdin = strings.NewReader(code)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot compile: %v\n%s", err, out)
	}
	return path
}

const (
	operators = "void RegisterCustomOps(void) {}\n"
	ofPython  = operators + "extern void PyList_New(void); void f(void) { PyList_New(); }\n"
)

func TestResolve(t *testing.T) {
	t.Setenv("LD_PRELOAD", "")
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	good, python := compile(t, "good.so", operators), compile(t, "python.so", ofPython)
	for name, c := range map[string]struct {
		names []string
		want  string // in the error; "": none
	}{
		"none":                      {nil, ""},
		"a library":                 {[]string{good}, ""},
		"no file":                   {[]string{"absent.so"}, `op_libraries: "absent.so" is not a file`},
		"a folder":                  {[]string{t.TempDir()}, "is not a file"},
		"twice":                     {[]string{good, filepath.Dir(good) + "/./good.so"}, "is named twice"},
		"a text":                    {[]string{text}, "is not a library"},
		"a library of another kind": {[]string{compile(t, "other.so", "void f(void) {}\n")}, "it has no function RegisterCustomOps"},
		"only a use of the name":    {[]string{compile(t, "use.so", "extern void RegisterCustomOps(void); void f(void) { RegisterCustomOps(); }\n")}, "it has no function RegisterCustomOps"},
		"a module of Python":        {[]string{python}, "set LD_PRELOAD=libpython3.N.so.1.0"},
		"all mistakes":              {[]string{"absent.so", python}, "is a module of Python"},
	} {
		got, err := addon.Libraries{Operators: c.names}.Resolve(addon.InFile())
		switch {
		case c.want == "" && err == nil:
			if diff := cmp.Diff(c.names, got.Operators); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		case c.want == "" || err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	t.Setenv("LD_PRELOAD", "/usr/lib/libpython3.11.so.1.0")
	if _, err := (addon.Libraries{Operators: []string{python}}).Resolve(addon.InFile()); err != nil {
		t.Errorf("with Python's library: %v", err)
	}
}

// A library with an execution provider has a function of its own. Mistakes of both kinds are told, each
// with the name of its flag.
func TestResolveProvider(t *testing.T) {
	t.Parallel()
	good := compile(t, "good.so", "void CreateEpFactories(void) {}\n")
	other := compile(t, "other.so", "void RegisterCustomOps(void) {}\n")
	got, err := addon.Libraries{Provider: good}.Resolve(addon.InFlags())
	if err != nil || got.Provider != good || got.Operators != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"--ep-library=" + good}, got.Flags()); diff != "" {
		t.Error(diff)
	}
	_, err = addon.Libraries{Operators: []string{good}, Provider: other}.Resolve(addon.InFlags())
	if err == nil {
		t.Fatal("wrong libraries are accepted")
	}
	for _, want := range []string{"--op-library: \"" + good, "it has no function RegisterCustomOps", "--ep-library: \"" + other, "with an execution provider for ONNX Runtime: it has no function CreateEpFactories"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A configuration means a library by its path, or by its file's name alone.
func TestOperator(t *testing.T) {
	t.Parallel()
	l := addon.Libraries{Operators: []string{"/opt/a.so", "/opt/b.so"}}
	for name, want := range map[string]string{
		"/opt/b.so": "/opt/b.so", "/opt/./b.so": "/opt/b.so", "b.so": "/opt/b.so", "a.so": "/opt/a.so",
		"./b.so": "", "/usr/b.so": "", "c.so": "", "": "",
	} {
		if got, ok := l.Operator(name); got != want || ok != (want != "") {
			t.Errorf("%q is %q (%t), want %q", name, got, ok, want)
		}
	}
	if diff := cmp.Diff([]string{"--allow-op-library=/opt/a.so", "--allow-op-library=/opt/b.so"}, l.Flags()); diff != "" {
		t.Error(diff)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.so")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := addon.Libraries{Operators: []string{path}, Provider: path}.Files()
	// the SHA-256 of nothing
	file := addon.File{Path: path, SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
	want := addon.Files{Operators: []addon.File{file}, Provider: &file}
	if diff := cmp.Diff(want, files); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got := file.String(); got != "a.so (e3b0c44298fc)" {
		t.Errorf("it is called %s", got)
	}
	for _, l := range []addon.Libraries{{Operators: []string{path + ".absent"}}, {Provider: path + ".absent"}} {
		if _, err := l.Files(); err == nil {
			t.Error("a file that is gone has a digest")
		}
	}
}
