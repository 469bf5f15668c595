package precision

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/precision/recipe"
)

func read(t *testing.T, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The second time, nothing is converted or run. A changed entry is made again.
func TestCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLab(t, eight())
	cached := func(change func(*Options)) *Maker {
		return l.maker(5, func(o *Options) {
			o.Cache = dir
			if change != nil {
				change(o)
			}
		})
	}
	first := l.make(cached(nil), recipe.Int8, "cpu")
	again := l.make(cached(nil), recipe.Int8, "cpu")
	if !again.FromCache || len(l.opened) != 0 || again.Path != first.Path || nodes(again.Kept) != "a" || again.Converted != 7 {
		t.Errorf("%v were opened; %+v", l.opened, again)
	}
	if again.Accuracy["cpu"].Outputs["y"].MaxAbs != 3.96875 {
		t.Errorf("accuracy %+v", again.Accuracy)
	}
	more := l.make(cached(nil), recipe.Int8, "cpu", "openvino")
	if more.FromCache || len(l.opened) != 2 || more.Path != first.Path { // the original and the variant on openvino
		t.Errorf("with another provider %v were opened; %+v", l.opened, more)
	}
	for name, change := range map[string]func(*Options){
		"data":  func(o *Options) { o.Data = rows(21) },
		"tool":  func(o *Options) { o.Tool = "newer" },
		"share": func(o *Options) { o.MaxKept = .5 },
		"bits":  func(o *Options) { o.WeightBits = 7 },
		"limit": func(o *Options) { o.Limit = nil },
	} {
		if v := l.make(cached(change), recipe.Int8, "cpu"); v.FromCache || v.Path == first.Path {
			t.Errorf("with another %s: %s, from the cache: %t", name, v.Path, v.FromCache)
		}
	}
	checkNothingElse(t, dir, 6)
}

// checkNothingElse fails unless the cache has exactly this number of entries.
func checkNothingElse(t *testing.T, dir string, entries int) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != entries || len(hidden) != 0 {
		t.Errorf("the cache has %v and %v, want %d entries", list, hidden, entries)
	}
}

// An incomplete or foreign entry is made again in its place.
func TestCacheDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(folder string) error{
		"torn model":    func(folder string) error { return os.Truncate(filepath.Join(folder, modelName), 20) },
		"changed model": func(folder string) error { return appendTo(filepath.Join(folder, modelName)) },
		"no model":      func(folder string) error { return os.Remove(filepath.Join(folder, modelName)) },
		"torn receipt":  func(folder string) error { return os.Truncate(filepath.Join(folder, receiptName), 20) },
		"empty receipt": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, receiptName), []byte("{}"), 0o644)
		},
		"foreign receipt": func(folder string) error { return foreign(filepath.Join(folder, receiptName)) },
		"no receipt":      func(folder string) error { return os.Remove(filepath.Join(folder, receiptName)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, eight())
			k := l.maker(5, nil)
			first := l.make(k, recipe.Int8, "cpu")
			if err := damage(filepath.Dir(first.Path)); err != nil {
				t.Fatal(err)
			}
			again := l.make(k, recipe.Int8, "cpu")
			if again.FromCache || again.Path != first.Path || again.Digest != first.Digest {
				t.Errorf("%+v, before %+v", again, first)
			}
			if last := l.make(k, recipe.Int8, "cpu"); !last.FromCache {
				t.Error("what was made again was not found")
			}
			checkNothingElse(t, k.options.Cache, 1)
		})
	}
}

// appendTo adds a field that changes a model and keeps it valid: a second producer name.
func appendTo(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, 0x12, 1, 'x'), 0o644)
}

// foreign makes a receipt belong to another tool version.
func foreign(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(content, []byte(`"tool": "test"`), []byte(`"tool": "tost"`), 1), 0o644)
}

// Any receipt is read or ignored. A receipt that was read can be written.
func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"key":{},"digest":"d","reports":{"cpu":{"rows":1,"outputs":{"y":{"cosine_mean":null}}}}}`))
	f.Add([]byte(`{"reports":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		defer alloctest.Bound(t, len(content))()
		var r receipt
		if json.Unmarshal(content, &r) != nil {
			return
		}
		c, err := newCache(t.TempDir(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(c.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.folder, receiptName), content, 0o644); err != nil {
			t.Fatal(err)
		}
		e := c.findReceipt()
		if e == nil {
			if r.Reports != nil {
				t.Errorf("%s was not found again", content)
			}
			return
		}
		if err := c.update(e); err != nil {
			t.Error(err)
		}
	})
}
