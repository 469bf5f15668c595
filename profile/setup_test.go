package profile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tuner/journal"
	"tuner/modelconfig"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// A model with two instance groups has no single count to search. That must be said before anything is measured.
func TestSpaceThatCannotBeConfiguredBeginsNoJournal(t *testing.T) {
	t.Parallel()
	text := `name: "m" backend: "onnxruntime" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 8 } output { name: "y" data_type: TYPE_FP32 dims: 8 }
instance_group [ { name: "a" kind: KIND_CPU count: 1 }, { name: "b" kind: KIND_CPU count: 1 } ]`
	config, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\nspace: {instance_count: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p.Output = t.TempDir()
	setup := profile.Setup{Profile: p, Subject: profile.Subject{Name: "m", Config: config}, Facts: search.Facts{Batching: true}}
	_, err = profile.OpenLog(setup, time.Unix(0, 0))
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "p.yaml: space: ") ||
		!strings.Contains(err.Error(), "needs a single one") {
		t.Errorf("error %v; want an InputError that names the profile's space and the groups", err)
	}
	if _, _, err := journal.Read(p.Output); err == nil {
		t.Error("a journal was begun")
	}
}
