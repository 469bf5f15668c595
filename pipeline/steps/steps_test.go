package steps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/internal/alloctest"
)

// watcher records the calls: "convert", then "convert: ok".
type watcher struct{ told []string }

func (w *watcher) Begun(name Name) { w.told = append(w.told, string(name)) }

func (w *watcher) Ended(s Step, before bool) {
	text := string(s.Name) + ": " + string(s.State)
	if before {
		text += " before"
	}
	w.told = append(w.told, text)
}

// run is one `tuner run` in a folder: a log with its observer. The log's clock advances by a second
// with each reading.
type run struct {
	*Log
	*watcher
	t   *testing.T
	dir string
}

func newRun(t *testing.T, dir string) run {
	t.Helper()
	w, clock := &watcher{}, time.Unix(0, 0)
	log, err := Open(dir, w, func() time.Time { clock = clock.Add(time.Second); return clock })
	if err != nil {
		t.Fatal(err)
	}
	return run{log, w, t, dir}
}

// do makes a step with an outcome, and reports whether its function was called.
func (r run) do(name Name, key string, o Outcome) (called bool) {
	r.t.Helper()
	err := r.Do(r.t.Context(), name, key, func() (Outcome, error) { called = true; return o, nil })
	if err != nil {
		r.t.Fatal(err)
	}
	return called
}

// recorded reads the record as "step state text", with a line for each step.
func (r run) recorded() string {
	r.t.Helper()
	list, err := Read(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for _, s := range list {
		lines = append(lines, strings.TrimSpace(string(s.Name)+" "+string(s.State)+" "+s.Text))
	}
	return strings.Join(lines, "\n")
}

func (r run) check(want string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.recorded()); diff != "" {
		r.t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	r := newRun(t, filepath.Join(t.TempDir(), "out"))
	r.do(Convert, "", Skip("%s is fine", "m.onnx"))
	r.do(Precision, "", Outcome{Text: "int8"})
	broken := errors.New("no space")
	if err := r.Do(t.Context(), Accuracy, "", func() (Outcome, error) { return Outcome{}, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the function's", err)
	}
	r.check("convert skipped m.onnx is fine\nprecision ok int8\naccuracy check failed no space")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Do(ended, Accuracy, "", func() (Outcome, error) { return Outcome{}, ended.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the interruption", err)
	}
	r.check("convert skipped m.onnx is fine\nprecision ok int8\naccuracy check interrupted")
	want := []string{"convert", "convert: skipped", "precision", "precision: ok", "accuracy check", "accuracy check: failed",
		"accuracy check", "accuracy check: interrupted"}
	if diff := cmp.Diff(want, r.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	// The clock is read when the function is called and when it ends.
	if s, _ := r.List().Get(Precision); s.Elapsed != time.Second {
		t.Errorf("precision took %v, want 1s", s.Elapsed)
	}
}

// A step of an earlier run is not repeated while key and files are the same.
func TestResume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "repository")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "model")
	write(filepath.Join(folder, "m", "config.pbtxt"), "name: m")
	made := Outcome{Text: "made", Files: []string{file, folder}}
	newRun(t, dir).do(Convert, "a", made)

	check := func(what, key string, want bool) {
		t.Helper()
		r := newRun(t, dir)
		if called := r.do(Convert, key, made); called != want {
			t.Errorf("%s: called %t, want %t", what, called, want)
		}
		if told := r.told[1]; (told == "convert: ok before") == want {
			t.Errorf("%s: told %q", what, told)
		}
	}
	check("the same", "a", false)
	check("another key", "b", true)
	check("that key again", "b", false)
	write(file, "other model")
	check("a changed file", "b", true)
	write(filepath.Join(folder, "m", "config.pbtxt"), "name: mine")
	check("a changed file in the folder", "b", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	made.Files = made.Files[1:]
	check("a missing file", "b", true)
	check("no key", "", true)
	check("no key, again", "", true)

	list, err := Read(dir)
	if err != nil || len(list) != 1 || len(list[0].Files) != 1 || list[0].Files[0].Path != "repository/m/config.pbtxt" {
		t.Errorf("recorded %+v, %v", list, err)
	}
}

// A step that reports that nothing was left to do keeps its record, with its original time.
func TestDoneBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newRun(t, dir).do(Search, "", Outcome{Text: "8 trials", Elapsed: time.Minute})
	r := newRun(t, dir)
	r.do(Search, "", Outcome{Text: "8 trials again", Before: true})
	if s, _ := r.List().Get(Search); s.Text != "8 trials" || s.Elapsed != time.Minute || r.told[1] != "configuration search: ok before" {
		t.Errorf("%+v, told %q", s, r.told)
	}
	// Without a record there is nothing to keep, since it was lost.
	r = newRun(t, t.TempDir())
	r.do(Search, "", Outcome{Text: "8 trials", Before: true})
	r.check("configuration search ok 8 trials")
}

// If a step has a new result, the records of the later steps are removed. The same result changes
// nothing.
func TestLaterStepsFall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := newRun(t, dir)
	first.do(Convert, "", Skip("it is fine"))
	first.do(Search, "", Outcome{Text: "8 trials"})
	first.do(Chart, "", Outcome{Text: "out/helm"})
	const all = "convert skipped it is fine\nconfiguration search ok 8 trials\nchart ok out/helm"
	first.check(all)

	again := newRun(t, dir)
	again.do(Convert, "", Skip("it is fine"))
	again.check(all)
	again.do(Search, "", Outcome{Text: "9 trials"})
	again.check("convert skipped it is fine\nconfiguration search ok 9 trials")
}

// Failed and interrupted steps do not count as done. The next run repeats them.
func TestUnfinishedStepsAreMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRun(t, dir)
	// _: the log records it
	_ = r.Do(t.Context(), Convert, "a", func() (Outcome, error) { return Outcome{}, errors.New("broken") })
	r = newRun(t, dir)
	if !r.do(Convert, "a", Outcome{}) {
		t.Error("a failed step counts as done")
	}
	r.do(Search, "", Outcome{State: Interrupted, Text: "3 trials"})
	r = newRun(t, dir)
	r.do(Search, "", Outcome{Before: true, Text: "8 trials"})
	r.check("convert ok\nconfiguration search ok 8 trials")
}

// A file belongs to a run from the claim on, in every later state of the step, as long as it
// exists.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "m.onnx")
	check := func(what string, want bool) {
		t.Helper()
		if got := newRun(t, dir).Owns(Convert, file); got != want {
			t.Errorf("%s: owned %t, want %t", what, got, want)
		}
	}
	leave := func() {
		t.Helper()
		if err := os.WriteFile(file, []byte("model"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	fail := func(work func(r run)) {
		t.Helper()
		r := newRun(t, dir)
		err := r.Do(t.Context(), Convert, "a", func() (Outcome, error) {
			work(r)
			return Outcome{}, broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("error %v, want the function's", err)
		}
	}
	claim := func(r run) {
		if err := r.Claim(Convert, "a", file); err != nil {
			t.Error(err)
		}
		check("claimed, as after a crash", true)
	}
	check("before the first run", false)
	fail(claim)
	check("claimed, and never made", false)
	fail(func(r run) { claim(r); leave() })
	check("made by a step that failed then", true)
	fail(func(run) {})
	check("after a failure before the claim", true)
	newRun(t, dir).do(Convert, "b", Outcome{Files: []string{file}})
	check("made", true)
	newRun(t, dir).do(Convert, "c", Skip("it is fine"))
	check("not needed any more", true)
	if err := os.WriteFile(file, []byte("another model"), 0o600); err != nil {
		t.Fatal(err)
	}
	if newRun(t, dir).do(Convert, "c", Skip("it is fine")) {
		t.Error("a step that has nothing to do depends on what earlier runs left")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	fail(func(run) {})
	check("removed", false)
}

// A step that had to be repeated and made the same files does not remove the records of later
// steps.
func TestClaimedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "m.onnx")
	convert := func(r run) {
		t.Helper()
		err := r.Do(t.Context(), Convert, "a", func() (Outcome, error) {
			err := errors.Join(r.Claim(Convert, "a", file), os.WriteFile(file, []byte("model"), 0o600))
			return Outcome{Text: "made", Files: []string{file}, Elapsed: time.Minute}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := newRun(t, dir)
	convert(first)
	first.do(Search, "", Outcome{Text: "8 trials"})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	convert(newRun(t, dir))
	first.check("convert ok made\nconfiguration search ok 8 trials")
}

func TestUnwritableFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := write(filepath.Join(file, "out"), nil, Reports{})
	if err == nil || !strings.Contains(err.Error(), FileName) {
		t.Errorf("error %v, want one that names the file", err)
	}
	r := newRun(t, t.TempDir())
	err = r.Do(t.Context(), Convert, "", func() (Outcome, error) { return Outcome{Files: []string{"nosuch"}}, nil })
	if err == nil || !strings.Contains(err.Error(), `"nosuch"`) {
		t.Errorf("error %v, want one that names the missing file", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             "not a record of steps",
		`{"format":2}`: "format 2",
		`{"format":1,"steps":[{"step":"dance","state":"ok"}]}`:                                      `steps[0].step: "dance" is not a step; allowed: ["convert"`,
		`{"format":1,"steps":[{"step":"convert","state":"fine"}]}`:                                  `steps[0].state: "fine" is not a state`,
		`{"format":1,"steps":[{"step":"repository","state":"ok"},{"step":"convert","state":"ok"}]}`: `steps[1].step: "convert" is out of order`,
		`{"format":1,"steps":[{"step":"convert","state":"ok","elapsed_seconds":-1}]}`:               "-1 is not a duration",
	} {
		if _, _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil, nil); err == nil || !strings.Contains(err.Error(), "steps.json") || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("error %v, want the file and the remedy", err)
	}
}

// Reports are written if their dependencies or their files changed. The results of steps in between
// do not matter.
func TestReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "report.md")
	check := func(what, key string, want bool) {
		t.Helper()
		r, called := newRun(t, dir), false
		r.do(Convert, "", Outcome{Text: what})
		err := r.Report(key, func() ([]string, error) {
			called = true
			return []string{file}, os.WriteFile(file, []byte(key), 0o600)
		})
		if err != nil || called != want {
			t.Errorf("%s: written %t, want %t (%v)", what, called, want, err)
		}
	}
	check("the first time", "a", true)
	check("the same", "a", false)
	check("another key", "b", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("a missing file", "b", true)
	check("the same again", "b", false)
	full := errors.New("no space")
	r := newRun(t, dir)
	if err := r.Report("c", func() ([]string, error) { return nil, full }); !errors.Is(err, full) {
		t.Errorf("error %v, want the function's", err)
	}
	if err := r.Report("c", func() ([]string, error) { return []string{"nosuch"}, nil }); err == nil || !strings.Contains(err.Error(), `"nosuch"`) {
		t.Errorf("error %v, want one that names the missing file", err)
	}
	check("after a failure", "b", false)
}

// A record whose last step is still "chart and report" can be continued. Its other steps are valid,
// and the chart must be made.
func TestFormerRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const former = `{"format":1,"steps":[{"step":"repository","state":"ok","text":"out/repository/m","key":"a"},
		{"step":"chart and report","state":"ok","text":"report.md, result.json","key":"b","files":[{"path":"report.md","sha256":"c"}]}]}`
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(former), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRun(t, dir)
	if r.do(Repository, "a", Outcome{}) {
		t.Error("the repository was made again")
	}
	if !r.do(Chart, "b", Outcome{Text: "out/helm"}) {
		t.Error("the chart counts as made")
	}
	r.check("repository ok out/repository/m\nchart ok out/helm")
}

// Any text is refused, or is a record that survives writing and reading.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":1,"steps":[]}`))
	f.Add([]byte(`{"format":1,"steps":[{"step":"convert","state":"ok","text":"a","elapsed_seconds":1.5,"key":"k","files":[{"path":"m","sha256":"d"}]}]}`))
	f.Add([]byte(`{"format":1,"steps":[{"step":"repository","state":"skipped"},{"step":"chart and report","state":"failed"}]}`))
	f.Add([]byte(`{"format":1,"steps":[{"step":"convert","state":"interrupted","text":"","elapsed_seconds":0,"key":"k","files":[{"path":"m"}]}]}`))
	f.Add([]byte(`{"format":1,"steps":[],"reports":{"key":"k","files":[{"path":"report.md","sha256":"d"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		list, reports, err := parse(text)
		if err != nil {
			return
		}
		dir := t.TempDir()
		if err := write(dir, list, reports); err != nil {
			t.Fatal(err)
		}
		again, reportsAgain, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(reports, reportsAgain, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		for i := range list { // the file has milliseconds
			if d := (again[i].Elapsed - list[i].Elapsed).Abs(); d > time.Millisecond {
				t.Errorf("step %d took %v, read back %v", i, list[i].Elapsed, again[i].Elapsed)
			}
			if !isSame(list[i], again[i]) {
				t.Errorf("step %d: %+v, read back %+v", i, list[i], again[i])
			}
		}
	})
}
