package roots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/spec"
	"tuner/spec/reference"
)

// tree makes a folder "open" beside a folder "other", with links between them. It returns the folder
// of both, without links.
func tree(t testing.TB) string {
	t.Helper()
	dir, err := realPath(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"open/sub", "open-too", "other", "linked"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"open/model.onnx", "open/sub/file", "other/secret", "open-too/file"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"open/out": "../other", "open/secret": "../other/secret", "open/in": "sub", "open/nowhere": "../other/new", "linked/secret": "../other/secret",
		"open/loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A path is found if it is below the folders without its links, whether it exists or not.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	r, err := Open([]string{filepath.Join(dir, "open")})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{ // "": refused
		"model.onnx":                     "open/model.onnx",
		".":                              "open",
		"sub/../model.onnx":              "open/model.onnx",
		"in/file":                        "open/sub/file",
		"new/folder":                     "open/new/folder",
		"in/new":                         "open/sub/new",
		filepath.Join(dir, "open/sub"):   "open/sub",
		"":                               "",
		" ":                              "",
		"a\x00b":                         "",
		"..":                             "",
		"../other/secret":                "",
		"../open-too/file":               "", // its name begins like that of the open folder
		"secret":                         "",
		"out/secret":                     "",
		"out/new":                        "",
		"out/../model.onnx":              "open/model.onnx", // the path, not the file system, says what .. is
		"nowhere":                        "",
		"nowhere/more":                   "",
		"loop":                           "",
		"model.onnx/below":               "",
		"/etc/passwd":                    "",
		filepath.Join(dir, "open-too"):   "",
		filepath.Join(dir, "other/none"): "",
	} {
		got, err := r.Find(path)
		switch {
		case want == "" && exit.CodeOf(err) != exit.Usage:
			t.Errorf("%q is found at %q: %v", path, got, err)
		case want != "" && (err != nil || got != filepath.Join(dir, want)):
			t.Errorf("%q is found at %q, want %q: %v", path, got, want, err)
		}
	}
}

// Each of several folders is open, and relative paths are below the first.
func TestSeveralFolders(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	r, err := Open([]string{filepath.Join(dir, "open"), filepath.Join(dir, "open/out")}) // the user's own link
	if err != nil {
		t.Fatal(err)
	}
	for path, isFound := range map[string]bool{"secret": true, "out/new": true, filepath.Join(dir, "other/secret"): true, "../open-too/file": false} {
		if got, err := r.Find(path); (err == nil) != isFound {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	for _, bad := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "open/model.onnx")} {
		if _, err := Open([]string{bad}); exit.CodeOf(err) != exit.Usage {
			t.Errorf("%q is open: %v", bad, err)
		}
	}
}

// A folder with a link to the outside is refused, since its files are read and written.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	r, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for path, isFound := range map[string]bool{"linked": true, "open/sub": true, "open/sub/file": true, "new": true, "open": false /* its link leads nowhere */} {
		if got, err := r.Folder(path); (err == nil) != isFound {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	r = Roots{filepath.Join(dir, "linked")}
	if got, err := r.Folder("."); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("a folder with a link to the outside: %q, %v", got, err)
	}
}

// outside are fields of a profile.yaml that do more than measure below the folders, each with the
// line that says it.
var outside = map[string]string{
	"config":                      "config: /etc/config.pbtxt",
	"output":                      "output: /tmp/elsewhere",
	"model":                       "",
	"op_libraries":                "op_libraries: [operators.so]",
	"ep_library":                  "ep_library: provider.so",
	"runner.server":               "runner: {mode: local, server: /bin/sh}",
	"runner.log":                  "runner: {mode: local, log: /tmp/log}",
	"runner.model_repository":     "runner: {mode: remote, url: 'localhost:8001', model_repository: /tmp}",
	"runner.tls.ca":               "runner: {mode: remote, url: 'grpcs://localhost:8001', tls: {ca: /etc/ca}}",
	"runner.tls.certificate":      "runner: {mode: remote, url: 'grpcs://localhost:8001', tls: {certificate: /etc/c, key: /etc/k}}",
	"runner.tls.key":              "runner: {mode: remote, url: 'grpcs://localhost:8001', tls: {certificate: /etc/c, key: /etc/k}}",
	"finals.runner":               "finals: {runner: {mode: local}}",
	"search.earlier":              "search: {earlier: [/tmp/earlier]}",
	"space.precision":             "space: {precision: {fp32: model.onnx, mine: /tmp/mine.onnx}}",
	"space.runtime":               "deploy_target: tuner\nspace: {runtime: [cpu, /tmp/libonnxruntime.so]}",
	"space.runtime without slash": "deploy_target: tuner\nspace: {runtime: [cpu, libonnxruntime.so]}",
	"load.inputs.data":            "load: {inputs: {data: /tmp/rows.npz}}",
	"load.inputs.mix.histogram":   "load: {inputs: {mix: {dimension: n, histogram: /tmp/lengths.csv}}}",
	"load.arrivals.trace":         "load: {arrivals: {trace: /tmp/trace.csv}}",
	"accuracy.data":               "space: {precision: [fp32, int8]}\naccuracy: {data: /tmp/rows.npz}",
	"accuracy.calibration":        "space: {precision: [fp32, int8_static]}\naccuracy: {calibration: /tmp/rows.npz}",
	"models.NAME.model":           "models: {a: {model: model.onnx, load: {concurrency: 1}, constraints: {latency_p99: 50ms}}, b: {model: /tmp/model.onnx, load: {concurrency: 1}, constraints: {latency_p99: 50ms}}}",
	"models.NAME.config":          "models: {a: {model: model.onnx, load: {concurrency: 1}, constraints: {latency_p99: 50ms}}, b: {model: sub/mine.onnx, config: /etc/config.pbtxt, load: {concurrency: 1}, constraints: {latency_p99: 50ms}}}",
	"pipeline":                    "pipeline: /tmp/search\nmodels: {encoder: {}, head: {}}\nload: {concurrency: 1}",
	"pipeline at the root":        "pipeline: .\nmodels: {encoder: {}, head: {}}\nload: {concurrency: 1}",
	"accuracy.command":            "space: {precision: [fp32, int8]}\nconstraints: {accuracy: {metric: command, min: 1}}\naccuracy: {command: touch /tmp/x}",
}

// A profile that names programs, libraries, servers or files elsewhere is refused, and the error
// names the field.
func TestCheckRun(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	r := Roots{filepath.Join(dir, "open")}
	check := func(text string) error {
		t.Helper()
		path := filepath.Join(dir, "open", "profile.yaml")
		p, err := spec.ParseProfile(path, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return r.CheckRun(p, spec.Analyze{Path: path, Input: p.Output, Output: p.Output})
	}
	const good = "model: model.onnx\noutput: out2\n"
	for _, more := range []string{"", "space: {runtime: [cpu]}\n", "space: {runtime: ['cpu@1.31.1']}\n", "runner: {mode: bundled}\n", "space: {precision: {fp32: model.onnx, mine: sub/mine.onnx}}\n"} {
		if err := check(good + more); err != nil {
			t.Errorf("%q is refused: %v", more, err)
		}
	}
	for name, line := range outside {
		text := good + line + "\n"
		switch name {
		case "model":
			text = "model: /tmp/model.onnx\noutput: out2\n"
		case "output":
			text = "model: model.onnx\n" + line + "\n"
		case "models.NAME.model", "models.NAME.config", "pipeline", "pipeline at the root":
			text = "output: out2\n" + line + "\n"
		}
		field, _, _ := strings.Cut(name, " ")
		section, _, _ := strings.Cut(field, ".")
		if err := check(text); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), section) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := spec.Profile{Path: "p", Model: spec.ModelSource{Path: filepath.Join(dir, "open/model.onnx")}, Output: filepath.Join(dir, "open/o")}
	for _, a := range []spec.Analyze{{Path: "a", Input: p.Output, Output: "/tmp/elsewhere"}, {Path: "a", Input: "/tmp/elsewhere", Output: p.Output}} {
		if err := r.CheckRun(p, a); exit.CodeOf(err) != exit.Usage {
			t.Errorf("%+v is allowed", a)
		}
	}
}

// Every field of profile.yaml that is a path or a program is among those that are refused. A new one
// needs a line above, and a check.
func TestEveryPathIsChecked(t *testing.T) {
	t.Parallel()
	found := 0
	reference.Each(reference.Profile().Fields, func(path []string, f reference.Field) {
		name := strings.Join(path, ".")
		isFile := strings.Contains(f.Type.Name, "path") || strings.Contains(f.Type.Name, "FILE") || strings.Contains(f.Type.Name, "program") ||
			strings.Contains(f.Type.Name, "ONNX file") || strings.HasSuffix(name, ".command") || strings.HasSuffix(name, "histogram")
		if !isFile {
			return
		}
		found++
		isKnown := false
		for known := range outside {
			isKnown = isKnown || strings.HasPrefix(known, name)
		}
		if !isKnown {
			t.Errorf("%s (%s) names a file or a program, and no test refuses it", name, f.Type.Name)
		}
	})
	if found < 15 { // model, config, output, five of runner, earlier, precision, data, trace, three of accuracy
		t.Errorf("%d fields with files were found", found)
	}
}

// What is found is below the folder, whatever the path.
func FuzzFind(f *testing.F) {
	dir := tree(f)
	for _, seed := range []string{"model.onnx", "../other/secret", "out/secret", "in/../../other", "sub//file", "./.", "/", "nowhere/x", "in/new/../../..", "a\x00", "loop/a"} {
		f.Add(seed)
	}
	root := filepath.Join(dir, "open")
	r := Roots{root}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := r.Find(path)
		if err != nil {
			return
		}
		if got != root && !strings.HasPrefix(got, root+string(filepath.Separator)) {
			t.Fatalf("%q is found at %q", path, got)
		}
		if real, err := filepath.EvalSymlinks(got); err == nil && real != got {
			t.Fatalf("%q is found at %q, which leads to %q", path, got, real)
		}
	})
}
