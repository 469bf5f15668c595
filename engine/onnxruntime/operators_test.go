package onnxruntime_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"tuner/engine"
	"tuner/engine/onnxruntime"
	"tuner/internal/orttest"
	"tuner/model/modelconfig"
	"tuner/model/onnx/build"
	"tuner/ort"
)

// An operator of a library runs if the server allows the library, by its path or its file's name, and
// instances on one session each get their own answers. No other library is opened.
func TestOperatorsOfALibrary(t *testing.T) {
	runtime := orttest.Runtime(t)
	library, files := orttest.TwiceLibrary(t), engine.ModelFiles{Path: orttest.TwiceModel(t)}
	open := func(named string, allowed ...string) (engine.Session, error) {
		config, err := modelconfig.Parse("config.pbtxt", []byte(`name: "m" model_operations { op_library_filename: "`+named+`" }
			parameters { key: "share_session_between_instances" value { string_value: "1" } }`))
		if err != nil {
			t.Fatal(err)
		}
		return onnxruntime.New(runtime, allowed...).NewSession(t.Context(), files, config, engine.Instance{})
	}
	const refused = "is not opened: the server's options --allow-op-library do not name it"
	for _, test := range []struct{ named, allowed, want string }{
		{library, library, ""},
		{filepath.Dir(library) + "/./libtwice.so", library, ""},
		{"libtwice.so", library, ""},
		{library, filepath.Join(t.TempDir(), "libtwice.so"), refused},
		{"../libtwice.so", library, refused},
		{"", library, refused},
		{"absent.so", "/nowhere/absent.so", "onnx runtime error"},
	} {
		s, err := open(test.named, test.allowed)
		switch {
		case (err == nil) != (test.want == ""), err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%q where %q is allowed: %v, want %q", test.named, test.allowed, err, test.want)
		case err == nil:
			runTwice(t, s)
		}
	}
}

// runTwice runs the session and others that share it, at the same time, and closes them.
func runTwice(t *testing.T, first engine.Session) {
	t.Helper()
	var callers sync.WaitGroup
	for caller, s := range []engine.Session{first, first.(engine.Sharing).Share(), first.(engine.Sharing).Share()} {
		callers.Go(func() {
			for i := range 50 {
				x := int32(1000*caller + i)
				row, want := make([]byte, 64), make([]byte, 64)
				for k := range 16 {
					binary.LittleEndian.PutUint32(row[4*k:], uint32(x+int32(k)))
					binary.LittleEndian.PutUint32(want[4*k:], uint32(2*(x+int32(k))))
				}
				batch := &engine.Batch{Outputs: []string{"OUTPUT0"}}
				for _, in := range s.IO().Inputs {
					batch.Inputs = append(batch.Inputs, engine.BatchInput{Name: in.Name, DataType: in.DataType, Shape: []int64{1, 16}, Parts: [][]byte{row}})
				}
				result, err := s.Execute(batch)
				if err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(result.Outputs[0].Data, want) {
					t.Errorf("twice %v is %v", row, result.Outputs[0].Data)
				}
				result.Free()
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

// domain is a library without operators, whose domain has the name in an environment variable.
const domain = `#include <stdlib.h>
#include "onnxruntime_c_api.h"

OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
	const OrtApi* api = base->GetApi(1);
	OrtCustomOpDomain* domain = NULL;
	OrtStatus* status = api->CreateCustomOpDomain(getenv("TUNER_TEST_DOMAIN"), &domain);
	return status ? status : api->AddCustomOpDomain(options, domain);
}
`

// Models whose libraries have one domain load at the same time, also before ONNX Runtime knows the domain.
func TestOperatorsOfModelsThatLoadAtOnce(t *testing.T) {
	runtime := orttest.Runtime(t)
	library, path := orttest.Compile(t, "libdomain", []byte(domain)), filepath.Join(t.TempDir(), "model.onnx")
	if err := build.Simple().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	for round := range 100 {
		t.Setenv("TUNER_TEST_DOMAIN", fmt.Sprintf("test.%d", round))
		var group errgroup.Group
		for range 4 {
			group.Go(func() error {
				s, err := runtime.NewSession(path, ort.SessionOptions{OpLibraries: []string{library}})
				if err == nil {
					s.Close()
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
