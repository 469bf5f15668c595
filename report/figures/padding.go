package figures

import (
	"fmt"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/model/mix"
	"tuner/search"
)

// ClientWork describes what clients must do so that a server does what was measured.
type ClientWork struct {
	Lines      []string // sentences
	Python, Go string   // code that pads
}

// paddingOf returns the padding of the requests that the first configuration was measured with;
// false without one.
func paddingOf(r analyze.Result) (mix.Padding, bool) {
	value, set := First(r).Candidate.Get(search.KnobPadding)
	p, err := mix.ParsePadding(string(value))
	return p, set && err == nil && value != search.NoPadding && r.Header.Mix != nil
}

// paddingText says how clients pad: "clients pad requests to multiples of 32"; "" if they do not.
func paddingText(r analyze.Result) string {
	if _, pads := paddingOf(r); !pads {
		return ""
	}
	return "requests of clients " + describe(r) + ", as report.md says"
}

// ClientWorkOf describes the padding of the first configuration; false without one.
func ClientWorkOf(r analyze.Result) (ClientWork, bool) {
	p, pads := paddingOf(r)
	if !pads {
		return ClientWork{}, false
	}
	kinds := r.Header.Mix.Kinds
	padded, err := p.Padded(kinds)
	if err != nil { // the campaign has measured it
		return ClientWork{}, false
	}
	var axes, calls []string
	for _, name := range kinds.Varying() {
		for _, axis := range kinds.Axes(name) {
			value := r.Pad[name]
			axes = append(axes, fmt.Sprintf("%s in dimension %d with %d", name, axis+1, value))
			calls = append(calls, fmt.Sprintf("inputs[%q] = pad(inputs[%q], %d, %d)", name, name, axis+1, value))
		}
	}
	w := ClientWork{Lines: []string{
		fmt.Sprintf("The figures hold for clients that send requests %s. They append to each row: %s (the batch is dimension 0).",
			describe(r), strings.Join(axes, ", ")),
		fmt.Sprintf("The server then gets %s instead of %s. It batches only equal shapes, so batches grow.", padded, kinds),
		"Outputs have the padded sizes. Cut them to the size of the row.",
		"The model must ignore the padding, for example by an attention mask with 0 there. Compare outputs with and without it once.",
	}}
	w.Lines = append(w.Lines, paddingGain(r)...)
	python, golang := code(p, kinds, padded)
	w.Python = "import numpy as np\n\n\ndef pad(x, axis, value):\n    size = x.shape[axis]\n    to = " + python +
		"\n    widths = [(0, 0)] * x.ndim\n    widths[axis] = (0, to - size)\n    return np.pad(x, widths, constant_values=value)\n\n\n" + strings.Join(calls, "\n") + "\n"
	w.Go = "// pad enlarges a row of one dimension.\nfunc pad(row []int64, value int64) []int64 {\n\tsize := len(row)\n\t" + golang +
		"\n\treturn append(slices.Clip(row), slices.Repeat([]int64{value}, to-size)...)\n}\n"
	return w, true
}

// describe names the padding of the first configuration.
func describe(r analyze.Result) string {
	value, _ := First(r).Candidate.Get(search.KnobPadding)
	return mix.DescribePadding(string(value))
}

// paddingGain says what the padding brings against none, as far as the explanation knows it.
func paddingGain(r analyze.Result) []string {
	for _, k := range r.Explanation.Knobs {
		i := slices.IndexFunc(k.Others, func(e search.Effect) bool { return e.Value == search.NoPadding })
		if k.Knob != search.KnobPadding || i < 0 {
			continue
		}
		switch e := k.Others[i]; {
		case e.Basis == search.BasisUnknown:
		case len(e.Misses) > 0:
			return []string{"Without padding, no configuration is expected to keep the limits."}
		default:
			return []string{fmt.Sprintf("Without padding, the best is %s; %s.", effectText(e), basisText(e.Basis))}
		}
	}
	return nil
}

// code returns the statements that compute the padded size, in Python after `to = `, and in Go.
func code(p mix.Padding, kinds, padded mix.Mix) (python, golang string) {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Buckets), " ", ", "), "[]")
	switch {
	case p.Multiple > 0:
		return fmt.Sprintf("-(-size // %[1]d) * %[1]d", p.Multiple), fmt.Sprintf("to := (size + %d) / %d * %[2]d", p.Multiple-1, p.Multiple)
	case p.Buckets != nil:
		return fmt.Sprintf("next(b for b in [%s] if b >= size)", list),
			fmt.Sprintf("buckets := []int{%s}\n\ti, _ := slices.BinarySearch(buckets, size) // beyond the last: refuse the row\n\tto := buckets[i]", list)
	}
	name := kinds.Varying()[0]
	most := padded[0].Shapes[name][kinds.Axes(name)[0]]
	return fmt.Sprintf("%d  # the largest of the mix", most), fmt.Sprintf("to := %d // the largest of the mix", most)
}
