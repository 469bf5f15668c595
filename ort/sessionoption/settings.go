package sessionoption

import (
	"maps"
	"strconv"
)

// Settings are values of options by name. A missing option is left to ONNX Runtime. Options that
// config.pbtxt has as session entries are not among them.
type Settings map[string]string

// Value returns the value of an option. If it is missing, it returns the default.
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

// With returns a copy with another value. It leaves out a default, except for a switch, which a
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

// Meets reports whether a need is met, so that the option has an effect.
func (s Settings) Meets(n Need) bool { return n.Option == "" || s.Value(n.Option) == n.Value }
