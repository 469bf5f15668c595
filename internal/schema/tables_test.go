package schema

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// described makes a generator see comments of this test's types.
func described(fields map[string]string) map[string]source {
	return map[string]source{reflect.TypeFor[jsonPart]().PkgPath(): {
		types:     map[string]string{"jsonPart": "jsonPart is a part | of the whole."},
		fields:    fields,
		constants: map[string][]any{"Colour": {"red", "", "blue"}},
	}}
}

type jsonPart struct {
	Depth *float64 `json:"depth"`
}

type whole struct {
	Colour Colour         `json:"colour,omitempty"`
	Kind   string         `json:"kind" jsonschema:"enum=a,enum=b"`
	Shade  Colour         `json:"shade" jsonschema:"enum,enum=grey"`
	Parts  []jsonPart     `json:"parts"`
	By     map[string]int `json:"by,omitzero"`
	Took   time.Duration  `json:"took"`
	At     time.Time      `json:"at"`
	Raw    []byte         `json:"raw"`
	Hidden bool           `json:"-"`
	embedded
}

type embedded struct {
	IsOn bool `json:"on"`
}

func TestTables(t *testing.T) {
	t.Parallel()
	comments := map[string]string{
		"whole.Colour": "Colour is the colour", "whole.Kind": "a kind; nil: none", "whole.Shade": "a shade", "whole.Parts": "parts", "whole.By": "counts", "whole.Took": "time",
		"whole.At": "begin", "whole.Raw": "raw", "embedded.IsOn": "IsOn means that it is on", "jsonPart.Depth": "depth",
	}
	var tables tables
	tables.titles, tables.sources = map[reflect.Type]string{}, described(comments)
	got, err := tables.page(Chapter{Title: "The whole", Text: "All.", Type: reflect.TypeFor[whole]()})
	const want = `
## The whole

All.

| field | type | meaning |
|---|---|---|
| ¦colour¦ | ¦red¦, ¦blue¦, optional | The colour. |
| ¦kind¦ | ¦a¦, ¦b¦ | A kind; absent: none. |
| ¦shade¦ | ¦red¦, ¦blue¦, ¦grey¦ | A shade. |
| ¦parts¦ | list: [part](#part) | Parts. |
| ¦by¦ | mapping: text to whole number, optional | Counts. |
| ¦took¦ | nanoseconds | Time. |
| ¦at¦ | time | Begin. |
| ¦raw¦ | JSON | Raw. |
| ¦on¦ | ¦true¦ or ¦false¦ | It is on. |

### part

A part | of the whole.

| field | type | meaning |
|---|---|---|
| ¦depth¦ | number or ¦null¦ | Depth. |
`
	if err != nil || string(got) != strings.ReplaceAll(want, "¦", "`") {
		t.Errorf("error %v, page\n%s", err, got)
	}

	delete(comments, "jsonPart.Depth")
	tables.titles = map[reflect.Type]string{}
	if _, err := tables.page(Chapter{Title: "Part", Type: reflect.TypeFor[jsonPart]()}); err == nil || !strings.Contains(err.Error(), "the field Depth of schema.jsonPart: it has no comment") {
		t.Errorf("a field without a comment: error %v", err)
	}
	type unnamed struct{ Depth int }
	tables.titles = map[reflect.Type]string{}
	if _, err := tables.page(Chapter{Title: "Part", Type: reflect.TypeFor[unnamed]()}); err == nil || !strings.Contains(err.Error(), "the field Depth of schema.unnamed: it has no name in JSON") {
		t.Errorf("a field without a name in JSON: error %v", err)
	}
}

func TestPlainName(t *testing.T) {
	t.Parallel()
	for name, want := range map[reflect.Type]string{
		reflect.TypeFor[jsonPart](): "part", reflect.TypeFor[whole](): "whole", reflect.TypeFor[GPUWindow](): "GPU window", reflect.TypeFor[UsedGPU](): "used GPU",
	} {
		if got := plainName(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

type (
	GPUWindow struct{}
	UsedGPU   struct{}
)

func TestAnchor(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{"export.json": "exportjson", "Output of tuner export": "output-of-tuner-export", "GPU window": "gpu-window"} {
		if got := anchor(title); got != want {
			t.Errorf("the anchor of %q is %q, want %q", title, got, want)
		}
	}
}
