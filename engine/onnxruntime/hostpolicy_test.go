//go:build linux

package onnxruntime_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/hostpolicy"
	"tuner/engine/onnxruntime"
	"tuner/internal/orttest"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx/build"
)

// boundThreads counts the threads of this process that may run only on core 0. first is counted
// separately: the first thread of a process cannot end, so Go's runtime parks it for good instead.
func boundThreads(t *testing.T) (others, first int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread that has ended meanwhile
		if !strings.Contains(string(text), "\nCpus_allowed_list:\t0\n") {
			continue
		}
		if file == fmt.Sprintf("/proc/self/task/%d/status", os.Getpid()) {
			first++
		} else {
			others++
		}
	}
	return others, first
}

// check waits until want threads are bound, since ended threads may stay visible for a moment.
func check(t *testing.T, when string, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		others, first := boundThreads(t)
		if others == want || others+first == want {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: %d threads are bound, want %d", when, others, want)
			return
		}
	}
}

// The thread of each instance, and the threads that ONNX Runtime makes for it, run on the policy's
// cores. No other thread does.
func TestHostPolicyBindsAllThreads(t *testing.T) {
	r := orttest.Runtime(t)
	if hostpolicy.Cores() < 2 {
		t.Skip("needs two cores")
	}
	for name, tc := range map[string]struct {
		config  string
		threads int // one for each instance, and those of ONNX Runtime
	}{
		"default policy of the kind": {`instance_group { count: 2 kind: KIND_CPU } parameters { key: "intra_op_thread_count" value { string_value: "3" } }`, 2 * 3},
		"policy of the group":        {`instance_group { count: 1 kind: KIND_CPU host_policy: "narrow" } parameters { key: "intra_op_thread_count" value { string_value: "2" } }`, 2},
		"as many threads as cores":   {`instance_group { count: 1 kind: KIND_CPU }`, 1},
		"no such policy":             {`instance_group { count: 1 kind: KIND_CPU host_policy: "none" }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			enginetest.WriteModel(t, root, "m", tc.config)
			if err := build.Simple().Write(filepath.Join(root, "m", "1", "model.onnx"), 0); err != nil {
				t.Fatal(err)
			}
			s, err := engine.Open(t.Context(), engine.Options{
				Repositories: []string{root}, ExitOnError: true, Backend: onnxruntime.New(r), Log: slog.New(slog.DiscardHandler),
				HostPolicies: []hostpolicy.Policy{{Name: "cpu", Cores: []int{0}, Node: hostpolicy.NoNode}, {Name: "narrow", Cores: []int{0}, Node: 0}},
			})
			if err != nil {
				t.Fatal(err)
			}
			response, err := s.Infer(t.Context(), simpleRequest())
			if err != nil {
				t.Fatal(err)
			}
			response.Release()
			check(t, "serving", tc.threads)
			s.Close()
			check(t, "closed", 0)
		})
	}
}

func simpleRequest() *engine.Request {
	r, _, _ := simple(1, 0)
	out := &engine.Request{Model: r.Model}
	for _, in := range r.Inputs {
		out.Inputs = append(out.Inputs, engine.Tensor{Name: in.Name, DataType: configpb.DataType_TYPE_INT32, Shape: in.Shape, Data: in.Data})
	}
	return out
}
