package reference

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// raw encodes a value as JSON. Its callers only pass types that cannot fail.
func raw(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// path is the type of a path of a file or folder, relative to the YAML file's folder.
func path(example string) Type {
	return Type{Name: "path", Schema: `{"type": "string", "minLength": 1}`, Good: []string{example}, Bad: []string{`""`}}
}

// text is the type of any text. YAML reads some texts as numbers.
func text(examples ...string) Type {
	return Type{Name: "text", Schema: anyText, Good: examples, Bad: []string{`[]`}}
}

const anyText = `{"type": ["string", "number", "boolean"]}`

// words is the type of one of some words.
func words(list ...string) Type {
	return Type{Name: quoted(list), Schema: fmt.Sprintf(`{"enum": %s}`, raw(list)), Good: list, Bad: []string{"no-such-word"}}
}

// flag is the type of true or false.
func flag() Type {
	return Type{Name: "`true`, `false`", Schema: `{"type": "boolean"}`, Good: []string{"true", "false"}, Bad: []string{`"yes"`}}
}

// whole is the type of a whole number within bounds. If most is 0, there is no practical upper
// bound.
func whole(least, most int64) Type {
	t := Type{Name: fmt.Sprintf("whole number from %d", least), Schema: fmt.Sprintf(`{"type": "integer", "minimum": %d}`, least)}
	t.Good, t.Bad = []string{strconv.FormatInt(least, 10)}, []string{strconv.FormatInt(least-1, 10), "1.5", `"1"`}
	if most > 0 {
		t.Name += fmt.Sprintf(" to %s", grouped(most))
		t.Schema = fmt.Sprintf(`{"type": "integer", "minimum": %d, "maximum": %d}`, least, most)
		t.Good, t.Bad = append(t.Good, strconv.FormatInt(most, 10)), append(t.Bad, strconv.FormatInt(most+1, 10))
	}
	return t
}

// grouped prints a number with commas between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// positive is the type of a number above 0.
func positive() Type {
	return Type{Name: "number above 0", Schema: `{"type": "number", "exclusiveMinimum": 0}`, Good: []string{"0.4", "10"}, Bad: []string{"0", "-1", "many"}}
}

// share is the type of a number from 0 to 1, with or without both ends.
func share(withEnds bool) Type {
	t := Type{Name: "share: `2%`, `0.02`", Good: []string{"2%", "0.02", "100%", "1", "0"}, Bad: []string{"1.5", "2", "some", "-1%"}}
	t.Schema = `{"anyOf": [{"type": "string", "pattern": "^[0-9.]+ ?%$"}, {"type": "number", "minimum": 0, "maximum": 1}]}`
	if !withEnds {
		t.Name = "share above 0 and below 1: `2%`, `0.02`"
		t.Schema = `{"anyOf": [{"type": "string", "pattern": "^[0-9.]+ ?%$"}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}]}`
		t.Good, t.Bad = t.Good[:2], append(t.Bad, "0", "1")
	}
	return t
}

// probability is the type of the probability with which a limit must hold.
func probability() Type {
	return Type{Name: "number above 0.5 and below 1", Schema: `{"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 1}`,
		Good: []string{"0.9"}, Bad: []string{"0.5", "1", "90%"}}
}

// durationText is the schema of a number with a unit. 0 needs no unit.
const durationText = `{"anyOf": [{"type": "string", "pattern": "^([0-9.]+ ?(ns|us|µs|ms|s|m|h) ?)+$"}, {"const": 0}]}`

// duration is the type of a duration within bounds.
func duration(least, most time.Duration) Type {
	short := func(d time.Duration) string {
		return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m") // 5m0s is 5m
	}
	if least == 0 {
		short = func(d time.Duration) string { return strings.TrimSuffix(d.String(), "0s") }
	}
	return Type{Name: fmt.Sprintf("duration from `%s` to `%s`", short(least), short(most)), Schema: durationText,
		Good: []string{least.String(), most.String()}, Bad: []string{"soon", "10"}}
}

// list is the type of one value, or a list of distinct values.
func list(of Type) Type {
	t := Type{Name: of.Name + "; or a list", Schema: fmt.Sprintf(`{"anyOf": [%s, {"type": "array", "minItems": 1, "uniqueItems": true, "items": %s}]}`, of.Schema, of.Schema)}
	t.Good = append([]string{"[" + strings.Join(of.Good, ", ") + "]"}, of.Good...)
	t.Bad = append([]string{"[]", "[" + of.Good[0] + ", " + of.Good[0] + "]"}, of.Bad...)
	return t
}

// series is the type of one value, a list, or a range of numbers.
func series(of Type, needsStep bool) Type {
	t := list(of)
	t.Name = "series: " + of.Name
	t.Schema = fmt.Sprintf(`{"anyOf": [%[1]s, {"type": "array", "minItems": 1, "uniqueItems": true, "items": %[1]s},
		{"type": "object", "additionalProperties": false, "required": ["min", "max"],
		"properties": {"min": %[1]s, "max": %[1]s, "step": %[1]s, "scale": {"const": "pow2"}}}]}`, of.Schema)
	t.Bad = append(t.Bad, "{min: 1}", "{min: 1, max: 4, scale: pow3}")
	if !needsStep {
		t.Good = append(t.Good, "{min: 1, max: 4}", "{min: 1, max: 4, step: 3}", "{min: 1, max: 4, scale: pow2}")
	}
	return t
}

// or returns the type of values of either type.
func (t Type) or(u Type) Type {
	return Type{Name: t.Name + "; or " + u.Name, Schema: fmt.Sprintf(`{"anyOf": [%s, %s]}`, t.Schema, u.Schema), Good: append(t.Good[:len(t.Good):len(t.Good)], u.Good...)}
}
