package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/objects"
)

// bucket is a store in memory that the test changes.
type bucket struct {
	mu      sync.Mutex
	content map[string]string // by key
	gone    error             // of all calls
	broken  map[string]error  // of reads, by key
	sizes   map[string]int64  // that a list says in place of the right ones
	reads   []string
	lists   int
}

func (b *bucket) List(_ context.Context, prefix string, flat bool) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.lists++; b.gone != nil {
			yield(objects.Object{}, b.gone)
			return
		}
		folders := map[string]bool{}
		for key, text := range b.content {
			rest, ok := strings.CutPrefix(key, prefix)
			if !ok {
				continue
			}
			o := objects.Object{Key: key, Size: int64(len(text)), Tag: fmt.Sprint(text)}
			if size, ok := b.sizes[key]; ok {
				o.Size = size
			}
			if at := strings.IndexByte(rest, '/'); !flat && at >= 0 {
				o = objects.Object{Key: prefix + rest[:at+1]}
				if folders[o.Key] {
					continue
				}
				folders[o.Key] = true
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (b *bucket) Read(_ context.Context, o objects.Object) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads = append(b.reads, o.Key)
	switch text, ok := b.content[o.Key]; {
	case b.gone != nil:
		return nil, b.gone
	case b.broken[o.Key] != nil:
		return io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{b.broken[o.Key]})), nil
	case !ok || text != o.Tag:
		return nil, errors.New("precondition failed")
	default:
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// newMirror makes a mirror of a bucket's folder repo.
func newMirror(t *testing.T, content map[string]string) (*Repositories, *repository, *bucket) {
	t.Helper()
	b := &bucket{content: content}
	at, err := objects.Parse("s3://bucket/repo")
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRepository(at, b, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &Repositories{all: []*repository{r}}, r, b
}

// tree returns the files below a folder, and the empty folders with a slash behind them.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if e.IsDir() {
			if entries, _ := os.ReadDir(path); len(entries) == 0 {
				out[filepath.ToSlash(name)+"/"] = ""
			}
			return nil
		}
		text, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *bucket) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.Sorted(slices.Values(b.reads))
	b.reads = nil
	return out
}

// Each step changes the bucket, and has what is fetched then and what the folders hold.
func TestFetchAll(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	all, r, b := newMirror(t, m{
		"repo/README": "beside", "repo/a/config.pbtxt": "c", "repo/a/1/model.onnx": "1", "repo/b/": "", "repo/b/1/": "", "other/x/1/model.onnx": "o",
	})
	for i, step := range []struct {
		change func()
		reads  []string
		want   m
	}{
		{func() {}, []string{"repo/a/1/model.onnx", "repo/a/config.pbtxt"}, m{"a/config.pbtxt": "c", "a/1/model.onnx": "1", "b/1/": ""}},
		{func() {}, nil, m{"a/config.pbtxt": "c", "a/1/model.onnx": "1", "b/1/": ""}},
		{func() { b.content["repo/a/1/model.onnx"] = "two" }, []string{"repo/a/1/model.onnx"}, m{"a/config.pbtxt": "c", "a/1/model.onnx": "two", "b/1/": ""}},
		{func() { delete(b.content, "repo/a/config.pbtxt"); b.content["repo/a/2/model.onnx"] = "3" }, []string{"repo/a/2/model.onnx"},
			m{"a/1/model.onnx": "two", "a/2/model.onnx": "3", "b/1/": ""}},
		{func() { delete(b.content, "repo/b/"); delete(b.content, "repo/b/1/") }, nil, m{"a/1/model.onnx": "two", "a/2/model.onnx": "3"}},
	} {
		step.change()
		if err := all.FetchAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.reads, b.take()); d != "" {
			t.Errorf("step %d: reads (-want +got):\n%s", i, d)
		}
		if d := cmp.Diff(step.want, tree(t, r.dir)); d != "" {
			t.Errorf("step %d: files (-want +got):\n%s", i, d)
		}
		if left := tree(t, r.staging); len(left) != 0 {
			t.Errorf("step %d: left behind: %v", i, left)
		}
	}
}

// A file that has not changed keeps its time, and one that has gets another, also if it is as long: by
// these the engine sees what has changed.
func TestTimesOfFiles(t *testing.T) {
	t.Parallel()
	all, r, b := newMirror(t, map[string]string{"repo/a/1/model.onnx": "1", "repo/a/config.pbtxt": "c"})
	times := func() (out [2]int64) {
		for i, name := range []string{"a/1/model.onnx", "a/config.pbtxt"} {
			info, err := os.Stat(filepath.Join(r.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			out[i] = info.ModTime().UnixNano()
		}
		return out
	}
	if err := all.FetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := times()
	b.content["repo/a/1/model.onnx"] = "2"
	if err := all.FetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := times(); after[0] == before[0] || after[1] != before[1] {
		t.Errorf("times %v, then %v: the first must change alone", before, after)
	}
}

// A store that cannot be read, or a model that cannot be fetched, leaves what was there. Nothing of a
// download that fails stays.
func TestFailuresKeepWhatWasThere(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	all, r, b := newMirror(t, m{"repo/a/1/model.onnx": "1", "repo/b/1/model.onnx": "1"})
	if err := all.FetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(what string, want m) {
		t.Helper()
		if d := cmp.Diff(want, tree(t, r.dir)); d != "" {
			t.Errorf("%s: files (-want +got):\n%s", what, d)
		}
		if left := tree(t, r.staging); len(left) != 0 {
			t.Errorf("%s: left behind: %v", what, left)
		}
	}
	b.gone = errors.New("no such bucket")
	if err := all.FetchAll(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot list s3://bucket/repo: no such bucket") {
		t.Errorf("got %v", err)
	}
	check("a bucket that is gone", m{"a/1/model.onnx": "1", "b/1/model.onnx": "1"})
	b.gone = nil
	b.content = m{"repo/a/1/model.onnx": "22", "repo/a/1/more": "33", "repo/b/1/model.onnx": "44"}
	b.broken = map[string]error{"repo/a/1/more": errors.New("connection reset")}
	if err := all.FetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("a download that fails", m{"a/1/model.onnx": "1", "b/1/model.onnx": "44"})
	b.broken = nil
	for name, size := range map[string]int64{"longer": 1, "shorter": 3, "without a size": -1} {
		b.sizes = map[string]int64{"repo/a/1/model.onnx": size}
		if err := all.FetchAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("an object that is "+name, m{"a/1/model.onnx": "1", "b/1/model.onnx": "44"})
	}
	b.sizes = nil
	if err := all.FetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("afterwards", m{"a/1/model.onnx": "22", "a/1/more": "33", "b/1/model.onnx": "44"})
}

// Objects whose names lead elsewhere, or are no paths, keep their model from being fetched. Others are
// not affected, and nothing is written outside.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"repo/bad/../../../etc/x", "repo/bad/..", "repo/bad/./x", "repo/bad//x", "repo/bad//etc/passwd", `repo/bad/..\..\x`, "repo/bad/a\x00b", "repo/bad/a\nb",
		"repo/bad/\xff", "repo/bad/" + strings.Repeat("x", 256), "repo/bad/" + strings.Repeat("x/", 600) + "y",
	} {
		all, r, b := newMirror(t, map[string]string{"repo/good/1/model.onnx": "1", "repo/bad/1/model.onnx": "1", key: "x"})
		if err := all.FetchAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]string{"good/1/model.onnx": "1"}, tree(t, r.dir)); d != "" {
			t.Errorf("%.60q (-want +got):\n%s", key, d)
		}
		if err := all.Fetch(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "has a name that is no path") || len(err.Error()) > 400 {
			t.Errorf("%.60q: got %v", key, err)
		}
		if slices.Contains(b.take(), key) {
			t.Errorf("%.60q was read", key)
		}
	}
	for _, key := range []string{"repo/../x", "repo//x", "repo/./x", "repo/a\x00/x"} { // they belong to no model
		all, r, _ := newMirror(t, map[string]string{"repo/good/1/model.onnx": "1", key: "x"})
		if err := all.FetchAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Names(t.Context())
		if d := cmp.Diff(map[string]string{"good/1/model.onnx": "1"}, tree(t, r.dir)); d != "" {
			t.Errorf("%q (-want +got):\n%s", key, d)
		}
	}
	// an object below another one cannot be stored
	all, _, _ := newMirror(t, map[string]string{"repo/a/1": "file", "repo/a/1/model.onnx": "1"})
	if err := all.Fetch(t.Context(), "a"); err == nil {
		t.Error("an object below another one: no error")
	}
	// names of a load request
	for _, name := range []string{"..", "", "a/b", "a/../b", "a\x00"} {
		if err := all.Fetch(t.Context(), name); err != nil {
			t.Errorf("%q: %v; the engine refuses it", name, err)
		}
	}
}

// A model that does not fit is refused before anything of it is downloaded.
func TestRoom(t *testing.T) {
	t.Parallel()
	all, r, b := newMirror(t, map[string]string{"repo/a/1/model.onnx": "12345678901"})
	r.room = func(string) (int64, error) { return 11, nil }
	// 11 bytes are free, and 1 of them is spared
	if err := all.Fetch(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "has room for 10") || len(b.take()) > 0 {
		t.Errorf("got %v, %v", err, b.reads)
	}
	r.room = func(string) (int64, error) { return 13, nil }
	if err := all.Fetch(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// In explicit mode the index has the names of models, and a load fetches one of them.
func TestNames(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	all, r, b := newMirror(t, m{"repo/a/1/model.onnx": "1", "repo/b/1/model.onnx": "2", "repo/file": "f"})
	all.Names(t.Context())
	if d := cmp.Diff(m{"a/": "", "b/": ""}, tree(t, r.dir)); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if err := all.Fetch(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	all.Names(t.Context()) // at once again: nobody is asked
	if d := cmp.Diff(m{"a/": "", "b/1/model.onnx": "2"}, tree(t, r.dir)); d != "" || b.lists != 2 {
		t.Errorf("after a load, %d lists (-want +got):\n%s", b.lists, d)
	}
	r.looked = r.looked.Add(-namesAge)
	b.gone = errors.New("gone")
	if all.Names(t.Context()); len(tree(t, r.dir)) != 2 {
		t.Error("a store that cannot be listed took the models away")
	}
	b.gone = nil
	r.looked = r.looked.Add(-namesAge)
	b.content = m{"repo/a/1/model.onnx": "1"}
	if all.Names(t.Context()); !cmp.Equal(m{"a/": ""}, tree(t, r.dir)) {
		t.Errorf("a model that is gone: %v", tree(t, r.dir))
	}
	if err := all.Fetch(t.Context(), "missing"); err != nil {
		t.Errorf("a model that is not there: %v", err)
	}
}

// A model that comes, and is fetched, while the names are listed keeps its folder, although the list does not
// have it. The next list without it takes it away.
func TestFetchedDuringAList(t *testing.T) {
	t.Parallel()
	all, r, b := newMirror(t, map[string]string{"repo/a/1/model.onnx": "1"})
	during := func(when string, fetch func()) {
		t.Helper()
		r.looked = time.Time{}
		r.store = listing{b, fetch}
		all.Names(t.Context())
		r.store = b
		if d := cmp.Diff(map[string]string{"a/": "", "new/1/model.onnx": "2"}, tree(t, r.dir)); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	fetch := func() {
		one := &repository{at: r.at, store: &bucket{content: map[string]string{"repo/new/1/model.onnx": "2"}}, dir: r.dir, staging: r.staging,
			slots: r.slots, room: r.room, log: r.log, models: r.models}
		if err := one.fetch(t.Context(), "new"); err != nil {
			t.Error(err)
		}
	}
	during("new", fetch)
	during("fetched again, unchanged", fetch)
	r.looked = time.Time{}
	if all.Names(t.Context()); !cmp.Equal(map[string]string{"a/": ""}, tree(t, r.dir)) {
		t.Errorf("a model that no list has: %v", tree(t, r.dir))
	}
}

// listing is a store in which something happens after a list.
type listing struct {
	objects.Store
	after func()
}

func (l listing) List(ctx context.Context, prefix string, flat bool) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		for o, err := range l.Store.List(ctx, prefix, flat) {
			if !yield(o, err) {
				return
			}
		}
		l.after()
	}
}

// A folder of files has no mirror, and its path stays.
func TestOpen(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	log := slog.New(slog.DiscardHandler)
	m, paths, err := Open(t.Context(), []string{"/models"}, none, log)
	if m != nil || !slices.Equal(paths, []string{"/models"}) || err != nil || m.Close() != nil || m.FetchAll(t.Context()) != nil {
		t.Errorf("got %v, %q, %v", m, paths, err)
	}
	for address, want := range map[string]string{
		"s3://":               "it names no bucket",
		"s3://k:secret@b/x":   "an address has no user",
		"s3://b/../x":         "cannot be a part of a path",
		"as://account":        "it names no bucket",
		"gs://b?token=secret": "an address has no user",
	} {
		if _, _, err := Open(t.Context(), []string{address}, none, log); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
}

// Systems without a call for it have exchangeInSteps.
func TestExchange(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(new, old string) error{"in one": exchange, "in steps": exchangeInSteps} {
		dir := t.TempDir()
		for i, have := range []string{"", "old"} {
			staged, old := filepath.Join(dir, fmt.Sprint("new", i)), filepath.Join(dir, fmt.Sprint("old", i))
			err := os.MkdirAll(filepath.Join(staged, "n"), 0o700)
			if have != "" {
				err = errors.Join(err, os.MkdirAll(filepath.Join(old, "o"), 0o700))
			}
			if err := errors.Join(err, swap(staged, old)); err != nil {
				t.Fatal(name, err)
			}
			if _, err := os.Stat(filepath.Join(old, "n")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Stat(filepath.Join(old, "o")); err == nil {
				t.Errorf("%s: the old folder is still there", name)
			}
		}
	}
}
