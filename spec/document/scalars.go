package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/internal/words"

	"go.yaml.in/yaml/v3"
)

// Text reads a string that is not empty.
func (v Value) Text() (string, bool) {
	text, ok := v.AnyText()
	if ok && strings.TrimSpace(text) == "" {
		v.Fail(Error{Problem: "is empty"})
		return "", false
	}
	return text, ok
}

// AnyText reads a string, also an empty one.
func (v Value) AnyText() (string, bool) {
	if v.Node.Kind != yaml.ScalarNode || v.IsNull() {
		v.Fail(Error{Problem: "must be text"})
		return "", false
	}
	return v.Node.Value, true
}

// Word reads one of the allowed words. later lists words of a later version, which get their own
// message.
func (v Value) Word(allowed []string, later ...string) (string, bool) {
	list := strings.Join(allowed, ", ")
	if v.Node.Kind != yaml.ScalarNode {
		v.Fail(Error{Problem: "must be one word", Allowed: list})
		return "", false
	}
	word := v.Node.Value
	if slices.Contains(allowed, word) {
		return word, true
	}
	e := Error{Problem: "is not known", Allowed: list}
	if slices.Contains(later, word) {
		e.Problem = "is not supported by this version"
	} else if near := words.Nearest(word, allowed); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	v.Fail(e)
	return "", false
}

// Whole reads a whole number within [low, high].
func (v Value) Whole(low, high int64) (int64, bool) {
	allowed := fmt.Sprintf("whole numbers from %d", low)
	if high < math.MaxInt64 {
		allowed = fmt.Sprintf("whole numbers from %d to %d", low, high)
	}
	var n int64
	if v.Node.Kind != yaml.ScalarNode || v.Node.ShortTag() != "!!int" || v.Node.Decode(&n) != nil {
		e := Error{Problem: "must be a whole number", Allowed: allowed}
		if _, err := strconv.ParseInt(v.Node.Value, 10, 64); err == nil && v.Node.ShortTag() == "!!str" {
			e.Hint = "remove the quotes"
		}
		v.Fail(e)
		return 0, false
	}
	if n < low || n > high {
		v.Fail(Error{Problem: "is out of range", Allowed: allowed})
		return 0, false
	}
	return n, true
}

// Number reads a finite number above zero. want describes it in an error, with its unit.
func (v Value) Number(want string) (float64, bool) {
	if x, ok := v.Float(); ok && x > 0 {
		return x, true
	}
	v.Fail(Error{Problem: "must be a number above 0", Allowed: want})
	return 0, false
}

// Float reads a bare finite number. For other values ok is false, and nothing is reported.
func (v Value) Float() (x float64, ok bool) {
	if v.Node.Kind != yaml.ScalarNode || (v.Node.ShortTag() != "!!int" && v.Node.ShortTag() != "!!float") {
		return 0, false
	}
	err := v.Node.Decode(&x)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// Flag reads true or false.
func (v Value) Flag() (bool, bool) {
	var b bool
	if v.Node.Kind != yaml.ScalarNode || v.Node.ShortTag() != "!!bool" || v.Node.Decode(&b) != nil {
		v.Fail(Error{Problem: "must be true or false", Allowed: "true, false"})
		return false, false
	}
	return b, true
}

// IsTrue reports whether the value is true. Flag reports other values.
func (v Value) IsTrue() bool {
	var b bool
	return v.Node.Kind == yaml.ScalarNode && v.Node.ShortTag() == "!!bool" && v.Node.Decode(&b) == nil && b
}

const durationUnits = "a number with a unit: 100us, 30ms, 1.5s, 10m, 1h"

// duration reads a duration ≥ 0 with its unit. Only 0 needs none.
func (v Value) duration() (time.Duration, bool) {
	if x, bare := v.Float(); bare {
		if x == 0 {
			return 0, true
		}
		v.Fail(Error{Problem: "is a duration without a unit", Allowed: durationUnits,
			Hint: fmt.Sprintf("write %[1]sus for microseconds, %[1]sms for milliseconds, %[1]ss for seconds", v.Node.Value)})
		return 0, false
	}
	if v.Node.Kind != yaml.ScalarNode {
		v.Fail(Error{Problem: "must be a duration", Allowed: durationUnits})
		return 0, false
	}
	d, err := time.ParseDuration(strings.ReplaceAll(v.Node.Value, " ", ""))
	if err != nil {
		v.Fail(Error{Problem: "is not a duration", Allowed: durationUnits})
		return 0, false
	}
	if d < 0 {
		v.Fail(Error{Problem: "is negative", Allowed: durationUnits})
		return 0, false
	}
	return d, true
}

// DurationWithin reads a duration in [low, high].
func (v Value) DurationWithin(low, high time.Duration) (time.Duration, bool) {
	d, ok := v.duration()
	if ok && (d < low || d > high) {
		v.Fail(Error{Problem: "is out of range", Allowed: fmt.Sprintf("%v to %v", low, high)})
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

// Share reads a share: 25%, or 0.25.
func (v Value) Share() (float64, bool) {
	x, ok := v.Float()
	if text, percent := strings.CutSuffix(v.Node.Value, "%"); percent && v.Node.Kind == yaml.ScalarNode {
		number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		x, ok = number/100, err == nil
	}
	if !ok || !(x >= 0 && x <= 1) { // excludes NaN too
		e := Error{Problem: "is not a share", Allowed: "0% to 100%, or 0 to 1"}
		if bare, isBare := v.Float(); isBare && bare > 1 && bare <= 100 {
			e.Hint = fmt.Sprintf("write %s%%", v.Node.Value)
		}
		v.Fail(e)
		return 0, false
	}
	return x, true
}

// OpenShare reads a share above 0% and below 100%. why explains in an error why the ends are not
// allowed.
func (v Value) OpenShare(why string) (float64, bool) {
	x, ok := v.Share()
	if ok && (x == 0 || x == 1) {
		v.Fail(Error{Problem: "must be above 0 and below 1: " + why, Allowed: "a share: 2%, 0.02"})
		return 0, false
	}
	return x, ok
}

// Latency reads a duration above 0 in seconds. A bare number is in milliseconds.
func (v Value) Latency() (float64, bool) {
	seconds, ok := v.Float()
	seconds /= 1e3
	if !ok {
		d, isDuration := v.duration()
		if !isDuration {
			return 0, false
		}
		seconds = d.Seconds()
	}
	if seconds <= 0 {
		v.Fail(Error{Problem: "must be above 0", Allowed: durationUnits + "; a bare number is milliseconds"})
		return 0, false
	}
	return seconds, true
}

// Size reads a size in bytes. A bare number is in megabytes.
func (v Value) Size() (float64, bool) {
	if mb, bare := v.Float(); bare && mb > 0 {
		return mb * 1e6, true
	}
	if bytes, ok := parseSize(v.Node.Value); ok && bytes > 0 {
		return bytes, true
	}
	v.Fail(Error{Problem: "is not a size above 0", Allowed: "a number with a unit: 512MB, 2GiB; a bare number is megabytes",
		Hint: "units: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)"})
	return 0, false
}
