package document

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"tuner/internal/alloctest"
)

// Every text that encoding/json reads is a document. Its members are found by their names.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{}`, `[1,2.5e-3,"x",null,true]`, ` {"a":{"b":["\u12ab\\"]}} `, `nul`, `[1,]`, `"\x"`, `-`, `1e999`, `{"\u0061":1,"a":2}`, `[NaN,-Inf,Infinity]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		d := &JSON{}
		if err := d.Parse(text); err != nil {
			if json.Valid(text) && !beyondLimits(text) {
				t.Errorf("%q is JSON, but: %v", text, err)
			}
			return
		}
		var members map[string]any
		if json.Unmarshal(text, &members) != nil {
			return
		}
		for name := range members {
			if !strings.ContainsRune(name, '\uFFFD') && d.Find(0, name) == None {
				t.Errorf("member %q of %q is not found", name, text)
			}
		}
	})
}

// beyondLimits reports whether the text may nest too deeply, or have a too large number or half of
// a surrogate pair. encoding/json notices these later or not at all.
func beyondLimits(text []byte) bool {
	var value any
	return bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxDepth ||
		json.Unmarshal(text, &value) != nil || bytes.Contains(bytes.ToLower(text), []byte(`\ud`))
}

func TestAppendFloat(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		1: "1.0", -0.5: "-0.5", 1e21: "1e+21", 1e-7: "1e-07", float64(float32(0.1)): "0.10000000149011612",
		math.Inf(1): "Infinity", math.Inf(-1): "-Infinity", 0: "0.0",
	} {
		if got := string(appendFloat(nil, f)); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
}
