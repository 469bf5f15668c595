package served

import (
	"sync/atomic"
	"testing"

	"tuner/engine/budget"
	"tuner/engine/request"
)

// Outputs that are kept outlive their response, with their charge. An instance lends those of one run at a
// time, and none that share their memory.
func TestKeep(t *testing.T) {
	t.Parallel()
	var lends atomic.Bool
	freed := 0
	respond := func(account *budget.Account, lends *atomic.Bool) *Response {
		if !account.Take(100) {
			t.Fatal("no room")
		}
		return &Response{Outputs: []request.Tensor{{Data: make([]byte, 100)}}, memory: NewShared(func() { freed++ }), account: account, lends: lends}
	}
	for range 2 {
		account := budget.New(1000).Open(nil)
		kept := respond(account, &lends)
		bytes, free, ok := kept.Keep()
		if !ok || bytes != 100 {
			t.Fatalf("kept %v with %d bytes, want 100", ok, bytes)
		}
		kept.Release()
		for name, r := range map[string]*Response{"kept already": kept, "of the next run": respond(account, &lends), "that share": respond(account, nil)} {
			if _, _, ok := r.Keep(); ok {
				t.Errorf("outputs %s are kept", name)
			}
			if r != kept {
				r.Release()
			}
		}
		if freed != 2 || account.Take(401) || !account.Take(400) {
			t.Errorf("%d freed by Release, want the two that are not kept, and 100 of 1,000 bytes to be charged", freed)
		}
		if free(); freed != 3 {
			t.Errorf("%d freed, want all three", freed)
		}
		freed = 0
	}
}

// A view of a response owns nothing: it cannot be kept, and its release frees nothing and gives nothing back.
func TestView(t *testing.T) {
	t.Parallel()
	var lends atomic.Bool
	freed := 0
	b := budget.New(1000)
	account := b.Open(nil)
	if !account.Take(100) {
		t.Fatal("no room")
	}
	r := &Response{ID: "1", Outputs: []request.Tensor{{Data: make([]byte, 100)}}, memory: NewShared(func() { freed++ }), account: account, lends: &lends}
	v := r.View([]request.Tensor{{Data: r.Outputs[0].Data[:60]}})
	if _, _, ok := v.Keep(); ok || v.ID != "1" || len(v.Outputs[0].Data) != 60 || len(r.Outputs[0].Data) != 100 {
		t.Errorf("the view is %+v, and kept: %v", v, ok)
	}
	if v.Release(); freed != 0 || b.Used() != 100 {
		t.Errorf("%d freed by the view's release, %d bytes are charged, want none and 100", freed, b.Used())
	}
	if r.Release(); freed != 1 || b.Used() != 0 {
		t.Errorf("%d freed, %d bytes are charged, want one and none", freed, b.Used())
	}
}
