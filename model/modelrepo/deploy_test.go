package modelrepo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/internal/alloctest"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	m := source(t)
	dir := filepath.Join(t.TempDir(), "out", "repository")
	if err := Write(dir, m, config(t, `name: "m" max_batch_size: 4`)); err != nil {
		t.Fatal(err)
	}
	got := tree(t, dir)
	if !strings.Contains(got["m/.tuner.json"], `"1/data/more.bin"`) {
		t.Errorf("receipt: %s", got["m/.tuner.json"])
	}
	delete(got, "m/.tuner.json")
	want := map[string]string{
		"m/config.pbtxt": "name: \"m\"\nmax_batch_size: 4\n", "m/1/model.onnx": "graph",
		"m/1/w.bin": "weights", "m/1/data/more.bin": "more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// The original is overwritten in place. The deployed file stays.
	if err := os.WriteFile(m.Path, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dir)["m/1/model.onnx"]; got != "graph" {
		t.Errorf("deployed model is %q", got)
	}

	// Another model beside it, and a second write.
	if err := Write(dir, m, config(t, `name: "n"`)); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, m, config(t, `name: "m" max_batch_size: 8 default_model_filename: "net.onnx"`)); err != nil {
		t.Fatal(err)
	}
	checkOnly(t, dir, "m", "n")
	checkOnly(t, filepath.Join(dir, "m", "1"), "data", "net.onnx", "w.bin")
}

// A variant's folder is copied into a repository, replaced by another variant's, and removed. A
// foreign folder is refused.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir, root := t.TempDir(), t.TempDir()
	put(t, dir, "n/config.pbtxt", "")
	for _, c := range []string{`name: "m" max_batch_size: 4`, `name: "m" max_batch_size: 8`} {
		v, err := Build(root, source(t), config(t, c))
		if err != nil {
			t.Fatal(err)
		}
		if err := Copy(dir, v); err != nil {
			t.Fatal(err)
		}
		got, want := tree(t, filepath.Join(dir, "m")), tree(t, filepath.Join(v.Dir, "m"))
		delete(got, receiptName)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-variant +copy:\n%s", diff)
		}
		if digest, err := Digest(source(t), config(t, c)); err != nil || digest != filepath.Base(v.Dir) {
			t.Errorf("digest %s, %v, want that of %s", digest, err, v.Dir)
		}
	}
	if !Wrote(dir, "m") || Wrote(dir, "n") || Wrote(dir, "nosuch") {
		t.Errorf("own folders: m %t, n %t, nosuch %t", Wrote(dir, "m"), Wrote(dir, "n"), Wrote(dir, "nosuch"))
	}
	foreign, err := Build(root, source(t), config(t, `name: "n"`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Copy(dir, foreign); err == nil || !strings.Contains(err.Error(), "it was not written by tuner") {
		t.Errorf("another's folder: %v", err)
	}
	if err := Copy(dir, Variant{Dir: root, Model: "nosuch"}); err == nil {
		t.Error("a variant that is not there was copied")
	}
	if err := Remove(dir, "m"); err != nil {
		t.Error(err)
	}
	checkOnly(t, dir, "n")
}

// Nothing is replaced that Write did not make.
func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	c := config(t, `name: "m"`)
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string) // makes something at dir/m
		want    string
	}{
		{"another's folder", func(t *testing.T, dir string) { put(t, dir, "m/config.pbtxt", "") }, "it was not written by tuner"},
		{"a file", func(t *testing.T, dir string) { put(t, dir, "m", "") }, "it is not a folder"},
		{"changed configuration", func(t *testing.T, dir string) {
			write(t, dir, c)
			put(t, dir, "m/config.pbtxt", "name: \"m\"\nmax_batch_size: 2\n")
		}, "it was changed since"},
		{"added file", func(t *testing.T, dir string) { write(t, dir, c); put(t, dir, "m/2/model.onnx", "mine") }, "it was changed since"},
		{"replaced model", func(t *testing.T, dir string) { write(t, dir, c); put(t, dir, "m/1/model.onnx", "GRAPH") }, "1/model.onnx in it was changed since"},
		{"edited labels", func(t *testing.T, dir string) {
			write(t, dir, config(t, `name: "m" output { name: "y" label_filename: "labels.txt" }`))
			put(t, dir, "m/labels.txt", "cat\nfox\n")
		}, "labels.txt in it was changed since"},
		{"missing file", func(t *testing.T, dir string) {
			write(t, dir, c)
			if err := os.Remove(filepath.Join(dir, "m", "1", "w.bin")); err != nil {
				t.Fatal(err)
			}
		}, "1/w.bin in it was changed since"},
		{"receipt of an earlier tuner", func(t *testing.T, dir string) {
			write(t, dir, c)
			put(t, dir, "m/.tuner.json", `{"config_sha256": "", "files": ["config.pbtxt"]}`)
		}, "of an earlier tuner"},
		{"damaged receipt", func(t *testing.T, dir string) { write(t, dir, c); put(t, dir, "m/.tuner.json", "{") }, "is damaged"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.prepare(t, dir)
			before := tree(t, dir)
			if err := Remove(dir, "m"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Remove: error %v lacks %q", err, test.want)
			}
			if err := Write(dir, source(t), c); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v lacks %q", err, test.want)
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("something was changed: -before +after:\n%s", diff)
			}
			checkOnly(t, dir, "m")
		})
	}
}

// A label file may have several paths. A folder with it is still recognized.
func TestLabelPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		write(t, dir, config(t, `name: "m" output { name: "y" label_filename: "./labels.txt" } output { name: "z" label_filename: "labels.txt" }`))
	}
	if got := tree(t, dir)["m/labels.txt"]; got != "cat\ndog\n" {
		t.Errorf("labels are %q", got)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, config(t, `name: "m"`))
	write(t, dir, config(t, `name: "n"`))
	for range 2 { // the second time there is nothing to remove
		if err := Remove(dir, "m"); err != nil {
			t.Error(err)
		}
		checkOnly(t, dir, "n")
	}
}

func TestCopyDeployed(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	write(t, from, config(t, `name: "m"`))
	size, err := CopyDeployed(to, filepath.Join(from, "m"), false)
	if err != nil {
		t.Fatal(err)
	}
	want := tree(t, from)
	delete(want, "m/.tuner.json")
	if diff := cmp.Diff(want, tree(t, to)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	total := 0
	for _, content := range want {
		total += len(content)
	}
	if size != int64(total) {
		t.Errorf("%d bytes, want %d", size, total)
	}
	shared := t.TempDir()
	if _, err := CopyDeployed(shared, filepath.Join(from, "m"), true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tree(t, shared)); diff != "" {
		t.Errorf("shared (-want +got):\n%s", diff)
	}
	// Users may edit the configuration, but not the model.
	for path, want := range map[string]bool{"m/config.pbtxt": false, "m/1/model.onnx": true} {
		if got := isSameFile(t, filepath.Join(from, path), filepath.Join(shared, path)); got != want {
			t.Errorf("%s is the same file: %t, want %t", path, got, want)
		}
		if isSameFile(t, filepath.Join(from, path), filepath.Join(to, path)) {
			t.Errorf("%s is no copy", path)
		}
	}
	edited := t.TempDir()
	write(t, edited, config(t, `name: "m"`))
	put(t, edited, "m/1/model.onnx", "GRAPH")
	if _, err := CopyDeployed(t.TempDir(), filepath.Join(edited, "m"), false); err == nil || !strings.Contains(err.Error(), "1/model.onnx in it was changed since") {
		t.Errorf("a replaced model: %v", err)
	}
	put(t, from, "m/config.pbtxt", "name: \"m\"\nmax_batch_size: 2\n")
	if _, err := CopyDeployed(t.TempDir(), filepath.Join(from, "m"), false); err == nil || !strings.Contains(err.Error(), "it was changed since") {
		t.Errorf("a changed folder: %v", err)
	}
	if _, err := CopyDeployed(t.TempDir(), filepath.Join(from, "nosuch"), false); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no folder: %v", err)
	}
}

func write(t *testing.T, dir string, c *modelconfig.Config) {
	t.Helper()
	if err := Write(dir, source(t), c); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir, path, content string) {
	t.Helper()
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAddWarmup(t *testing.T) {
	t.Parallel()
	inputs := []Sample{
		{Tensor: modelconfig.Tensor{Name: "ids", DataType: configpb.DataType_TYPE_INT64, Dims: []int64{-1, 32}}},
		{Tensor: modelconfig.Tensor{Name: "image", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{-1, 3, 8}}},
		{Tensor: modelconfig.Tensor{Name: "index", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{-1, 5}}, Zeros: true},
		{Tensor: modelconfig.Tensor{Name: "scale", DataType: configpb.DataType_TYPE_BOOL, Dims: []int64{-1}}},
	}
	sample := func(batch string) string {
		return `model_warmup { name: "batch_` + batch + `" batch_size: ` + batch + `
			inputs { key: "ids" value { data_type: TYPE_INT64 dims: 32 zero_data: true } }
			inputs { key: "image" value { data_type: TYPE_FP32 dims: [3, 8] random_data: true } }
			inputs { key: "index" value { data_type: TYPE_FP32 dims: 5 zero_data: true } }
			inputs { key: "scale" value { data_type: TYPE_BOOL dims: 1 zero_data: true } } }`
	}
	const own = `model_warmup { name: "mine" batch_size: 2 }`
	in := config(t, `name: "m" max_batch_size: 8 `+own)
	got, err := AddWarmup(in, inputs, 1, 8, 8, 16)
	if err != nil {
		t.Fatal(err)
	}
	want := config(t, `name: "m" max_batch_size: 8 `+own+sample("1")+sample("8"))
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if again, err := AddWarmup(got, inputs, 1, 8); err != nil || !modelconfig.Equal(got, again) {
		t.Errorf("a second time: %v, %v", again, err)
	}
	if len(in.GetModelWarmup()) != 1 {
		t.Error("the argument was changed")
	}

	// Without batching there is one request with the whole shape.
	whole := []Sample{{Tensor: modelconfig.Tensor{Name: "x", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{1, 4}}}}
	got, err = AddWarmup(config(t, `name: "m"`), whole, 1, 8)
	if err != nil {
		t.Fatal(err)
	}
	want = config(t, `name: "m" model_warmup { name: "batch_1" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [1, 4] random_data: true } } }`)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	open := []Sample{{Tensor: modelconfig.Tensor{Name: "x", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{-1, -1}}}}
	if _, err := AddWarmup(in, open, 1); err == nil || !strings.Contains(err.Error(), `input "x" has shape [-1,-1]; give it a size`) {
		t.Errorf("a shape that is not concrete: %v", err)
	}
}

// The added warm-up is distinguished from the user's, which come first.
func TestAddedWarmup(t *testing.T) {
	t.Parallel()
	const mine, added = `model_warmup { name: "mine" batch_size: 8 } `, `model_warmup { name: "batch_1" batch_size: 1 } model_warmup { name: "batch_8" batch_size: 8 } `
	for text, want := range map[string]string{mine + added: "batch_8", added: "batch_8", mine: "", "": ""} {
		if got := AddedWarmup(config(t, `name: "m" `+text)).GetName(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A receipt vouches for a folder only if it has the digest of each file there. It never reads a file
// outside.
func FuzzReceipt(f *testing.F) {
	const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of no bytes
	f.Add([]byte(`{"sha256":{"1/model.onnx":"` + digest + `"}}`))
	f.Add([]byte(`{"sha256":{"1/model.onnx":"` + digest + `","../outside":"` + digest + `"}}`))
	f.Add([]byte(`{"sha256":{}}`))
	f.Add([]byte(`{"sha256":{"1/model.onnx":"` + digest + `"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := makeTree(t, map[string]string{"m/1/model.onnx": "", "outside": "", "m/" + receiptName: string(text)})
		before := alloctest.Bound(t, len(text))
		files, foreign, err := written(filepath.Join(dir, "m"))
		before()
		if err != nil || foreign != "" {
			return
		}
		if !bytes.Contains(text, []byte(digest)) || len(files) != 2 {
			t.Errorf("the receipt %q vouches for %v", text, files)
		}
		put(t, dir, "m/1/model.onnx", "changed")
		if _, foreign, _ := written(filepath.Join(dir, "m")); foreign == "" {
			t.Errorf("the receipt %q vouches for a file that was changed", text)
		}
	})
}
