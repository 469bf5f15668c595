package onnxruntime

import (
	"bytes"
	"path/filepath"
	"testing"

	"tuner/engine"
	"tuner/internal/orttest"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// After a long run the next one is made on a lane, and after a short one on the caller's thread. The
// outputs are the same, and the lane ends with the session.
func TestLongRunsGoToALane(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := build.Identity(onnx.Float).Write(path, 0); err != nil {
		t.Fatal(err)
	}
	opened, err := New(orttest.Runtime(t)).NewSession(t.Context(), engine.ModelFiles{Path: path}, &modelconfig.Config{}, engine.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*session)
	data := []byte{1, 2, 3, 4}
	for i, isLong := range []bool{false, true, true, false} {
		s.isLong = isLong
		result, err := s.Execute(&engine.Batch{Outputs: []string{"OUTPUT0"},
			Inputs: []engine.BatchInput{{Name: "INPUT0", DataType: s.io.Inputs[0].DataType, Shape: []int64{1, 1}, Parts: [][]byte{data}}}})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(result.Outputs[0].Data, data) {
			t.Errorf("run %d: %v, want %v", i, result.Outputs[0].Data, data)
		}
		result.Free()
		if s.isLong != (result.Computed.Sub(result.Gathered) >= longRun) {
			t.Errorf("run %d of %v: long: %t", i, result.Computed.Sub(result.Gathered), s.isLong)
		}
		if made := s.lane != nil; made != (i >= 1) {
			t.Errorf("run %d: a lane: %t", i, made)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
