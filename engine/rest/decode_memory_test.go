package rest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tuner/engine"
)

// Decoded JSON takes no more memory than is charged for it, four times the JSON, also with many inputs.
func TestDecodedJSONTakesWhatIsCharged(t *testing.T) { // not parallel: it measures what the process allocates
	const inputs, each = 48, 40_000
	ones := strings.Repeat("1,", each-1) + "1"
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for what, input := range map[string]string{
		"data":   fmt.Sprintf(`{"name":"X","datatype":"INT64","shape":[%d],"data":[%s]}`, each, ones),
		"shapes": fmt.Sprintf(`{"name":"X","datatype":"INT64","shape":[%s],"data":[1]}`, ones),
	} {
		body := []byte(`{"inputs":[` + strings.Repeat(input+",", inputs-1) + input + `]}`)
		r := &inferRequest{Request: engine.Request{Model: "m"}}
		before := live()
		if err := r.decode(body, len(body)); err != nil {
			t.Fatal(what, err)
		}
		// the inputs and the index of the document take a little beside
		if held, most := live()-before, int64(4*len(body)+len(body)/4); held > most {
			t.Errorf("%s: decoded JSON of %d bytes holds %d bytes, want at most %d", what, len(body), held, most)
		}
		for i := range r.Inputs {
			last := r.Inputs[i].Data[len(r.Inputs[i].Data)-8]
			if dims := r.Inputs[i].Shape; last != 1 || dims[len(dims)-1] != int64(len(r.Inputs[i].Data)/8) && dims[each-1] != 1 {
				t.Fatalf("%s: input %d has other values", what, i)
			}
		}
	}
}

// A request whose inputs had several pieces of memory leaves one piece for the next such request.
func TestMemoryOfInputsIsUsedAgain(t *testing.T) {
	body := []byte(benchJSON)
	r := &inferRequest{Request: engine.Request{Model: "m"}}
	if allocations := testing.AllocsPerRun(10, func() {
		r.reset()
		if err := r.decode(body, len(body)); err != nil {
			t.Fatal(err)
		}
	}); allocations != 0 {
		t.Errorf("%g allocations, want none", allocations)
	}
}
