package schema

import (
	"reflect"
	"strings"
	"testing"
)

// Colour is a colour of the test.
type Colour string

// The test file is not read for constants.
const (
	_ Colour = "red"
)

type inner struct {
	Depth float64 `json:"depth" jsonschema:"minimum=0"`
}

type outer struct {
	Name  string           `json:"name" jsonschema:"pattern=^[a-z]+$"`
	Kind  string           `json:"kind" jsonschema:"enum=a,enum=b"`
	Sizes []int            `json:"sizes,omitempty" jsonschema:"minItems=1,items.minimum=1"`
	By    map[string]inner `json:"by"`
	Next  *inner           `json:"next,omitempty"`
	inner
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	got, err := Generate(reflect.TypeFor[outer](), Options{Title: "T", Description: "D", Keywords: map[reflect.Type]string{
		reflect.TypeFor[outer](): `{"maxProperties": 9}`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","description":"D","type":"object",` +
		`"required":["name","kind","by","depth"],"maxProperties":9,"properties":{` +
		`"name":{"type":"string","pattern":"^[a-z]+$"},"kind":{"enum":["a","b"]},` +
		`"sizes":{"type":"array","items":{"type":"integer","minimum":1},"minItems":1},` +
		`"by":{"type":"object","additionalProperties":{"$ref":"#/$defs/inner"}},"next":{"$ref":"#/$defs/inner"},` +
		`"depth":{"type":"number","minimum":0}},` +
		`"$defs":{"inner":{"type":"object","required":["depth"],"properties":{"depth":{"type":"number","minimum":0}}}}}`
	squeezed := strings.NewReplacer("\n", "", "  ", "", `": `, `":`, ", ", ",").Replace(string(got))
	if squeezed != want {
		t.Errorf("schema\n%s\nwant\n%s", squeezed, want)
	}
}

func TestWhatCannotBeDescribed(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]reflect.Type{
		"has no json tag": reflect.TypeFor[struct{ A int }](),
		"cannot describe chan int": reflect.TypeFor[struct {
			A chan int `json:"a"`
		}](),
		"has no constants": reflect.TypeFor[struct {
			A Colour `json:"a" jsonschema:"enum"`
		}](),
	} {
		if _, err := Generate(of, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", of, err, want)
		}
	}
}

func TestDefinitionName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"GPUWindow": "gpuWindow", "Load": "load", "BestAtLoad": "bestAtLoad", "GPU": "gpu"} {
		if got := definitionName(name); got != want {
			t.Errorf("definition of %s is %q, want %q", name, got, want)
		}
	}
}

// A value that fits is on one line. Otherwise each member has a line.
func TestLayout(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	got, err := lay([]byte(`{"a":[1,2],"b":"`+long+`","c":{}}`), "", 0)
	if want := "{\n  \"a\": [1, 2],\n  \"b\": \"" + long + "\",\n  \"c\": {}\n}"; err != nil || got != want {
		t.Errorf("laid out as\n%s\n%v; want\n%s", got, err, want)
	}
}
