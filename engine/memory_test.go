package engine_test

import (
	"strings"
	"testing"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Outputs are charged to the account of their request until they are released. A request without
// room for them gets an error. Its neighbours in the batch are answered.
func TestOutputsAreCharged(t *testing.T) {
	t.Parallel()
	io := modelconfig.ModelIO{
		Inputs: []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{16}}},
		// 4000 bytes
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{1000}}},
	}
	s, _ := open(t, &enginetest.Backend{IO: io}, "")
	b := budget.New(20_000)
	client := func() *engine.Request {
		return &engine.Request{Model: "m", Memory: b.Open(nil), Inputs: []engine.Tensor{tensor("X", 16)}}
	}
	first, second := client(), client()
	var held []*engine.Response
	for range 2 { // a budget of 20000 bytes: 8000 are charged, and as much again must stay free
		response, err := s.Infer(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, response)
	}
	if b.Used() != 8000 {
		t.Errorf("%d bytes are charged for two answers of 4000", b.Used())
	}
	_, err := s.Infer(t.Context(), first)
	if want := "requests and answers take more than the 20000 bytes of memory that they may, try again later"; fault.CodeOf(err) != fault.Exhausted || err.Error() != want {
		t.Errorf("a third answer: %v, want %s", err, want)
	}
	response, err := s.Infer(t.Context(), second)
	if err != nil {
		t.Errorf("another client: %v", err)
	} else {
		held = append(held, response)
	}
	for _, r := range held {
		r.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are charged at the end", b.Used())
	}
	if m := s.Metrics()[0]; m.Failures[statistics.FailureOther] != 1 {
		t.Errorf("failures: %v, want the one without memory", m.Failures)
	}
}

// The objects that a backend makes for strings are charged before the request is queued. An empty
// string takes 4 bytes on the wire and 32 there.
func TestStringsAreCharged(t *testing.T) {
	t.Parallel()
	const count = 1000
	tensors := []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_STRING, Dims: []int64{count}}}
	s, _ := open(t, &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: tensors, Outputs: tensors}}, "")
	in := engine.Tensor{Name: "X", DataType: configpb.DataType_TYPE_STRING, Shape: []int64{count}, Data: make([]byte, 4*count)}
	// the answer has 4 bytes per string; as much again must stay free
	for max, want := range map[int64]string{2*36*count - 1: "take more than the", 2 * 40 * count: ""} {
		b := budget.New(max)
		r := &engine.Request{Model: "m", Memory: b.Open(nil), Inputs: []engine.Tensor{in}}
		p, err := s.Start(r)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("of %d bytes: %v", max, err)
		}
		if err != nil {
			continue
		}
		response, err := p.Wait(t.Context())
		if err == nil {
			response.Release()
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes are charged at the end", b.Used())
		}
	}
}
