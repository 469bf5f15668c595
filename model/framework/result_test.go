package framework

import (
	"encoding/json"
	"testing"

	"tuner/internal/alloctest"
)

// A result that is taken for a success has examples with which the exported model is compared.
func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"status":"ok","version":"2.x","kind":"TorchScript","exporter":"one","examples":1}`))
	f.Add([]byte(`{"status":"permission","message":"no"}`))
	f.Add([]byte(`{"status":"ok","examples":0}`))
	f.Add([]byte(`{"status":"ok","examples":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		made, err := parseResult(text)
		if err != nil {
			return
		}
		if made.Status == "" || made.Status == "ok" && made.Examples < 1 {
			t.Errorf("%q is read as %+v", text, made)
		}
		again, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := parseResult(again); err != nil || read != made {
			t.Errorf("%+v is read back as %+v, %v", made, read, err)
		}
	})
}
