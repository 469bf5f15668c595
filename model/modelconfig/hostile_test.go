package modelconfig

import (
	"fmt"
	"strings"
	"testing"

	"tuner/internal/alloctest"
	"tuner/model/modelconfig/configpb"
)

// The work for a text with only mistakes is proportional to its length. The first mistakes are
// reported.
func TestManyMistakes(t *testing.T) {
	check := func(notation string, parse func(n int) error) {
		var err error
		small, large := alloctest.Bytes(func() { err = parse(300) }), alloctest.Bytes(func() { err = parse(3000) })
		if large > 20*small {
			t.Errorf("%s: ten times the text makes %.1f times the work (%d and %d bytes)", notation, float64(large)/float64(small), small, large)
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 21 || lines[20] != "and 2980 more" {
			t.Errorf("%s: %d lines, the last is %q", notation, len(lines), lines[len(lines)-1])
		}
	}
	check("text", func(n int) error {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "wrong_%d: 1\n", i)
		}
		_, err := Parse("f", []byte(text.String()))
		return err
	})
	check("JSON", func(n int) error {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"wrong_%d": 1`, i)
		}
		_, err := ParseJSON([]byte("{" + strings.Join(fields, ",") + "}"))
		return err
	})
	check("values", func(n int) error {
		_, err := Parse("f", []byte(strings.Repeat("input { data_type: TYPE_FP33 }\n", n)))
		return err
	})
}

// countedTensor counts the requests for its name.
type countedTensor struct {
	*configpb.ModelInput
	asked *int
}

func (c countedTensor) GetName() string { *c.asked++; return c.ModelInput.GetName() }

// The work for a tensor does not grow with the number of a model's tensors.
func TestCheckModelLooksUp(t *testing.T) {
	t.Parallel()
	work := func(n int) int {
		declared := make([]Tensor, n)
		for i := range declared {
			declared[i] = Tensor{Name: fmt.Sprint("t", i), DataType: configpb.DataType_TYPE_FP32, Dims: []int64{1}}
		}
		asked := 0
		last := countedTensor{&configpb.ModelInput{Name: declared[n-1].Name, DataType: configpb.DataType_TYPE_FP32, Dims: []int64{1}}, &asked}
		c := &Config{Name: "m"}
		if err := newSignature(c, "input", declared).check(last); err != nil {
			t.Fatal(err)
		}
		return asked
	}
	if few, many := work(10), work(1000); few != many {
		t.Errorf("a name is asked for %d times among 10, %d times among 1000", few, many)
	}
}
