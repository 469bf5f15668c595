package onnxruntime_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tuner/engine"
	"tuner/engine/onnxruntime"
	"tuner/internal/orttest"
	"tuner/model/modelconfig"
	"tuner/model/onnx/build"
	"tuner/ort"
	"tuner/ort/provider"
)

// plugged has the library of a child process of TestPlugIn; "none" for none.
const plugged = "TUNER_TEST_PLUGIN"

// A model runs on the provider of a library that the operator names. Without a library, or with one
// that offers no device, it is refused with that reason. A runtime keeps a library, so children open
// their own.
func TestPlugIn(t *testing.T) {
	if library := os.Getenv(plugged); library != "" {
		servePlugged(t, library)
		return
	}
	t.Parallel()
	orttest.Runtime(t)
	device, idle := orttest.PlugInLibrary(t, true), orttest.PlugInLibrary(t, false)
	for library, want := range map[string]string{
		device:                  "ExampleExecutionProvider on CPU: plugin runs Add × 1",
		idle:                    `Execution Accelerator 'plugin' is requested, but the execution provider of the library "` + idle + `" offers no device here`,
		"none":                  "Execution Accelerator 'plugin' is requested, but no library with an execution provider was named (--ep-library)",
		orttest.TwiceLibrary(t): "cannot open the library ",
	} {
		child := exec.Command(os.Args[0], "-test.run=^TestPlugIn$", "-test.v")
		child.Env = append(os.Environ(), plugged+"="+library)
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q:\n%s", filepath.Base(library), err, want, out)
		}
	}
}

// servePlugged opens a library and a model that names the accelerator. It logs what comes of it.
func servePlugged(t *testing.T, library string) {
	t.Helper()
	r := orttest.Runtime(t)
	if library != "none" {
		if err := r.PlugIn(library); err != nil {
			t.Log(err)
			return
		}
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := build.Simple().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	config, err := modelconfig.Parse("config.pbtxt", []byte(`name: "m" optimization { execution_accelerators { cpu_execution_accelerator [ { name: "plugin" parameters { key: "device_type" value: "CPU" } } ] } }`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := onnxruntime.New(r).NewSession(t.Context(), engine.ModelFiles{Path: path}, config, engine.Instance{})
	if err != nil {
		t.Log(err)
		return
	}
	defer s.Close()
	checkSum(t, s)
	session, err := r.NewSession(path, ort.SessionOptions{RecordAssignment: true, Providers: []ort.Provider{{Name: provider.PlugIn}}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	assigned, err := session.Assignment()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s runs Add × %d", r.PlugInText(), assigned[0].Provider, assigned[0].Ops["Add"])
}

// checkSum checks that the first output is the sum of both inputs.
func checkSum(t *testing.T, s engine.Session) {
	t.Helper()
	row, want := make([]byte, 64), make([]byte, 64)
	for k := range 16 {
		binary.LittleEndian.PutUint32(row[4*k:], uint32(k))
		binary.LittleEndian.PutUint32(want[4*k:], uint32(2*k))
	}
	batch := &engine.Batch{Outputs: []string{"OUTPUT0"}}
	for _, in := range s.IO().Inputs {
		batch.Inputs = append(batch.Inputs, engine.BatchInput{Name: in.Name, DataType: in.DataType, Shape: []int64{1, 16}, Parts: [][]byte{row}})
	}
	result, err := s.Execute(batch)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Free()
	if !bytes.Equal(result.Outputs[0].Data, want) {
		t.Errorf("%v, want %v", result.Outputs[0].Data, want)
	}
}
