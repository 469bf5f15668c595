package served

import (
	"testing"

	"tuner/engine/budget"
	"tuner/engine/request"
)

// Outputs that are kept outlive their response, with their charge. Those that share their memory with
// others are not kept.
func TestKeep(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		freed := 0
		account := budget.New(1000).Open(nil)
		if !account.Take(100) {
			t.Fatal("no room")
		}
		r := &Response{Outputs: []request.Tensor{{Data: make([]byte, 100)}}, memory: NewShared(func() { freed++ }), account: account, alone: alone}
		bytes, free, ok := r.Keep()
		if ok != alone {
			t.Fatalf("alone %v: kept %v", alone, ok)
		}
		_, _, again := r.Keep()
		r.Release()
		if !alone {
			if freed != 1 || !account.Take(500) {
				t.Errorf("not kept: freed %d times by Release, want once with the charge", freed)
			}
			continue
		}
		if again || freed != 0 || bytes != 100 || account.Take(401) {
			t.Errorf("kept: again %v, freed %d times by Release, %d bytes are the caller's, want 100 that are still charged", again, freed, bytes)
		}
		if free(); freed != 1 {
			t.Errorf("kept: freed %d times, want once", freed)
		}
	}
}
