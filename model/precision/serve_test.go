package precision

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

	"tuner/internal/durable"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/runner"
)

// Requests have the file's own shapes. One instance is on the device that the provider needs.
func TestConfigure(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{
		"cpu":      "KIND_CPU [] [] []",
		"openvino": "KIND_CPU [] [] [openvino]",
		"cuda":     "KIND_GPU [0] [] []",
		"tensorrt": "KIND_GPU [0] [tensorrt] []",
	} {
		c, err := configure(build.MLP(), provider, nil)
		if err != nil {
			t.Errorf("%s: %v", provider, err)
			continue
		}
		options, err := modelconfig.ORTOptions(c)
		if err != nil {
			t.Errorf("%s: %v", provider, err)
		}
		names := func(list []modelconfig.Accelerator) string {
			text := "["
			for _, a := range list {
				text += a.Name
			}
			return text + "]"
		}
		group := c.GetInstanceGroup()[0]
		gpus := "[]"
		if len(group.GetGpus()) == 1 && group.GetGpus()[0] == 0 {
			gpus = "[0]"
		}
		got := group.GetKind().String() + " " + gpus + " " + names(options.GPUAccelerators) + " " + names(options.CPUAccelerators)
		if got != want || len(c.GetInstanceGroup()) != 1 || group.GetCount() != 1 {
			t.Errorf("%s: %s, want %s", provider, got, want)
		}
		if dims := c.GetInput()[0].GetDims(); c.GetMaxBatchSize() != 0 || len(dims) != 2 || dims[0] != -1 {
			t.Errorf("%s: max_batch_size %d, dims %v", provider, c.GetMaxBatchSize(), dims)
		}
	}
}

// A model with a file is served from it. Another model is served from a copy with its external
// data.
func TestPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "mlp.onnx")
	if err := build.MLP().Write(path, 1); err != nil {
		t.Fatal(err)
	}
	fromFile := read(t, path)
	derived, err := fromFile.Replace(fromFile.Proto())
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*onnx.Model{"file": fromFile, "derived": derived, "built": build.MLP()} {
		config, err := configure(m, "cpu", nil)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		v, err := writeRepository(folder, m, config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		served := read(t, filepath.Join(v.Dir, servedName, "1", "model.onnx"))
		for i, tensor := range m.Initializers() {
			a, err := m.Data(tensor)
			if err != nil {
				t.Fatal(err)
			}
			b, err := served.Data(served.Initializers()[i])
			if err != nil || string(a) != string(b) {
				t.Errorf("%s: tensor %q differs (%v)", name, tensor.GetName(), err)
			}
		}
	}
}

// unlaunchable is a launcher whose engines do not start.
type unlaunchable struct{ err error }

func (l unlaunchable) Launch(context.Context, runner.Server) (runner.Engine, error) {
	return nil, l.err
}

// Errors about the model or its provider are refusals. Errors about the machine are not. No files
// remain.
func TestOpenRefusals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	open := func(launch, library error) error {
		o := NewOpener(ServeOptions{Runner: runner.Options{Launcher: unlaunchable{launch}}, Folder: folder,
			Library: func(string) (string, error) { return "libonnxruntime.so", library }})
		_, err := o.Open(t.Context(), build.MLP(), "cpu")
		return err
	}
	var refused *RefusedError
	if err := open(nil, errors.New("no build has openvino")); !errors.As(err, &refused) || refused.Reason != "no build has openvino" {
		t.Errorf("without a library: %v", err)
	}
	if err := open(&runner.StartError{Reason: "it ended"}, nil); !errors.As(err, &refused) || refused.Reason != "it ended" {
		t.Errorf("an engine that does not start: %v", err)
	}
	if err := open(errBroken, nil); !errors.Is(err, errBroken) || errors.As(err, new(*RefusedError)) {
		t.Errorf("no engine can be launched: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(folder, ".*"))
	if diff := cmp.Diff([]string(nil), left); err != nil || diff != "" {
		t.Errorf("left behind: %s, %v", diff, err)
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	const frame = "load failed for model 'model': version 1 is at UNAVAILABLE state: "
	err := readable(&RefusedError{frame + `Internal: Load model from /tmp/x/1/model.onnx failed:/src/a.h:46 "/tmp/x/1"`}, "/tmp/x")
	if want := `Internal: Load model from the file failed:/src/a.h:46 "the file"`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if err := readable(errBroken, "/tmp/x"); err != errBroken {
		t.Errorf("%v", err)
	}
}

// Leftovers of killed processes are removed. Files in use never are, for every age that the clock
// gives them.
func TestStaleFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	inUse, err := durable.NewScratch(root, servingKind)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{filepath.Base(inUse.Dir), ".serving-1111111", ".new-2222222", "entry"}
	for i, name := range names {
		path, when := filepath.Join(root, name), time.Now().Add(time.Duration(i-1)*8*24*time.Hour)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := server{ServeOptions{Folder: root}}.newFolder()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{filepath.Base(inUse.Dir), filepath.Base(made.Dir), "entry"}
	if diff := cmp.Diff(want, left, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
