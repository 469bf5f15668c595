package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/model/modelconfig"
)

// text reads a string that is not empty.
func (v value) text() (string, bool) {
	text, ok := v.anyText()
	if ok && strings.TrimSpace(text) == "" {
		v.fail(Error{Problem: "is empty"})
		return "", false
	}
	return text, ok
}

// anyText reads a string, also an empty one.
func (v value) anyText() (string, bool) {
	if v.node.Kind != yaml.ScalarNode || v.isNull() {
		v.fail(Error{Problem: "must be text"})
		return "", false
	}
	return v.node.Value, true
}

// word reads one of the allowed words. later lists words of a later version, which get their own
// message.
func (v value) word(allowed []string, later ...string) (string, bool) {
	list := strings.Join(allowed, ", ")
	if v.node.Kind != yaml.ScalarNode {
		v.fail(Error{Problem: "must be one word", Allowed: list})
		return "", false
	}
	word := v.node.Value
	if slices.Contains(allowed, word) {
		return word, true
	}
	e := Error{Problem: "is not known", Allowed: list}
	if slices.Contains(later, word) {
		e.Problem = "is not supported by this version"
	} else if near := modelconfig.Nearest(word, allowed); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	v.fail(e)
	return "", false
}

// whole reads a whole number within [low, high].
func (v value) whole(low, high int64) (int64, bool) {
	allowed := fmt.Sprintf("whole numbers from %d", low)
	if high < math.MaxInt64 {
		allowed = fmt.Sprintf("whole numbers from %d to %d", low, high)
	}
	var n int64
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!int" || v.node.Decode(&n) != nil {
		e := Error{Problem: "must be a whole number", Allowed: allowed}
		if _, err := strconv.ParseInt(v.node.Value, 10, 64); err == nil && v.node.ShortTag() == "!!str" {
			e.Hint = "remove the quotes"
		}
		v.fail(e)
		return 0, false
	}
	if n < low || n > high {
		v.fail(Error{Problem: "is out of range", Allowed: allowed})
		return 0, false
	}
	return n, true
}

// number reads a finite number above zero. want describes it in an error, with its unit.
func (v value) number(want string) (float64, bool) {
	if x, ok := v.float(); ok && x > 0 {
		return x, true
	}
	v.fail(Error{Problem: "must be a number above 0", Allowed: want})
	return 0, false
}

// confidenceAllowed describes the allowed probabilities. A limit that is missed as often as it is
// kept is not kept. No measurement is certain.
const confidenceAllowed = "a probability between 0.5 and 1, such as 0.9"

// IsConfidence reports whether a probability is allowed.
func IsConfidence(p float64) bool { return p > 0.5 && p < 1 }

// confidence reads the probability with which constraints must hold.
func (v value) confidence(target *float64) {
	p, ok := v.float()
	if !ok || !IsConfidence(p) {
		v.fail(Error{Problem: "must be a probability", Allowed: confidenceAllowed})
		return
	}
	*target = p
}

// float reads a bare finite number. For other values ok is false, and nothing is reported.
func (v value) float() (x float64, ok bool) {
	if v.node.Kind != yaml.ScalarNode || (v.node.ShortTag() != "!!int" && v.node.ShortTag() != "!!float") {
		return 0, false
	}
	err := v.node.Decode(&x)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// flag reads true or false.
func (v value) flag() (bool, bool) {
	var b bool
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!bool" || v.node.Decode(&b) != nil {
		v.fail(Error{Problem: "must be true or false", Allowed: "true, false"})
		return false, false
	}
	return b, true
}

// isTrue reports whether the value is true. Method flag reports other values.
func (v value) isTrue() bool {
	var b bool
	return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!bool" && v.node.Decode(&b) == nil && b
}

const durationUnits = "a number with a unit: 100us, 30ms, 1.5s, 10m, 1h"

// duration reads a duration ≥ 0 with its unit. Only 0 needs none.
func (v value) duration() (time.Duration, bool) {
	if x, bare := v.float(); bare {
		if x == 0 {
			return 0, true
		}
		v.fail(Error{Problem: "is a duration without a unit", Allowed: durationUnits,
			Hint: fmt.Sprintf("write %[1]sus for microseconds, %[1]sms for milliseconds, %[1]ss for seconds", v.node.Value)})
		return 0, false
	}
	if v.node.Kind != yaml.ScalarNode {
		v.fail(Error{Problem: "must be a duration", Allowed: durationUnits})
		return 0, false
	}
	d, err := time.ParseDuration(strings.ReplaceAll(v.node.Value, " ", ""))
	if err != nil {
		v.fail(Error{Problem: "is not a duration", Allowed: durationUnits})
		return 0, false
	}
	if d < 0 {
		v.fail(Error{Problem: "is negative", Allowed: durationUnits})
		return 0, false
	}
	return d, true
}

// durationWithin reads a duration in [low, high].
func (v value) durationWithin(low, high time.Duration) (time.Duration, bool) {
	d, ok := v.duration()
	if ok && (d < low || d > high) {
		v.fail(Error{Problem: "is out of range", Allowed: fmt.Sprintf("%v to %v", low, high)})
		return 0, false
	}
	return d, ok
}

// byteUnit is a unit of sizes.
type byteUnit struct {
	name  string
	bytes float64
}

// byteUnits returns the units of sizes: powers of 1000 and, with an i, of 1024.
func byteUnits() []byteUnit {
	return []byteUnit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
}

// parseSize reads "2GiB" or "512 MB" as bytes.
func parseSize(text string) (float64, bool) {
	for _, u := range byteUnits() {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		return x * u.bytes, err == nil && !math.IsNaN(x) && !math.IsInf(x*u.bytes, 0)
	}
	return 0, false
}
