package sessionoption

import (
	"maps"
	"strconv"
)

// Settings are values of options by name. An option that is missing is left to ONNX Runtime. Options
// that config.pbtxt has as session entries are not among them.
type Settings map[string]string

// Value returns the value of an option, its default if it is missing.
func (s Settings) Value(name string) string {
	if value, set := s[name]; set {
		return value
	}
	return Of(name).Default
}

// Whole returns the value of an option that is a number.
func (s Settings) Whole(name string) int {
	n, _ := strconv.Atoi(s.Value(name)) // every setting was checked when it was read
	return n
}

// With returns a copy with another value. A default is left out, except for a switch, which a
// configuration may set to its default.
func (s Settings) With(name, value string) Settings {
	out := maps.Clone(s)
	if o := Of(name); value == o.Default && o.Kind != Switch {
		delete(out, name)
		return out
	}
	if out == nil {
		out = Settings{}
	}
	out[name] = value
	return out
}

// Meets reports whether an option has what it needs to have an effect.
func (s Settings) Meets(n Need) bool { return n.Option == "" || s.Value(n.Option) == n.Value }
