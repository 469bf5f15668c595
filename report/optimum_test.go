package report

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/report/reporttest"
)

func TestRequestDims(t *testing.T) {
	t.Parallel()
	check := func(name string, dims, measured, want []int64) {
		t.Helper()
		got, ok := requestDims(dims, measured)
		if ok != (want != nil) || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, want)
		}
	}
	check("fixed", []int64{3, 224, 224}, nil, []int64{3, 224, 224})
	check("measured size", []int64{-1}, []int64{32}, []int64{32})
	check("own batch dimension", []int64{-1, -1}, []int64{32}, []int64{1, 32})
	check("unknown", []int64{-1, 4}, nil, nil)
}

func TestModelFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(file, want string) {
		t.Helper()
		if got := modelFolder(filepath.Join(dir, file)); got != want {
			t.Errorf("model folder of %s is %q, want %q", file, got, want)
		}
	}
	check("repo/minilm/1/model.onnx", "")
	reporttest.CopyFile(t, "testdata/found.pbtxt", reporttest.MakeFolder(t, dir, "repo/minilm")+"/config.pbtxt")
	check("repo/minilm/1/model.onnx", filepath.Join(dir, "repo/minilm"))
	check("repo/minilm/1/model.onnx/model.onnx", filepath.Join(dir, "repo/minilm"))
	check("elsewhere/minilm.onnx", "")
}

func TestLocationErrorsAreReturned(t *testing.T) {
	t.Parallel()
	if err := writeLocation(reporttest.Failing{}, "optimal"); !errors.Is(err, reporttest.ErrFull) {
		t.Errorf("error is %v, want %v", err, reporttest.ErrFull)
	}
}
