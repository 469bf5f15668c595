package testserver

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Law draws service times.
type Law func(*rand.Rand) time.Duration

// Deterministic returns the same time for all requests.
func Deterministic(d time.Duration) Law { return func(*rand.Rand) time.Duration { return d } }

// Exponential returns the exponential (memoryless) law.
func Exponential(mean time.Duration) Law {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// Bimodal returns d, and factor times d for a share of the requests.
func Bimodal(d time.Duration, share, factor float64) Law {
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return time.Duration(float64(d) * factor)
		}
		return d
	}
}

// ParseLaw reads "none", "deterministic:D", "exponential:MEAN" or "bimodal:D:SHARE:FACTOR", such as
// bimodal:1ms:0.02:20.
func ParseLaw(text string) (Law, error) {
	name, rest, _ := strings.Cut(text, ":")
	fields := strings.Split(rest, ":")
	fail := func(err error) (Law, error) { return nil, fmt.Errorf("cannot read the law %q: %w", text, err) }
	if text == "none" {
		return nil, nil
	}
	d, err := time.ParseDuration(fields[0])
	if err != nil {
		return fail(err)
	}
	switch {
	case name == "deterministic" && len(fields) == 1:
		return Deterministic(d), nil
	case name == "exponential" && len(fields) == 1:
		return Exponential(d), nil
	case name == "bimodal" && len(fields) == 3:
		share, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return fail(err)
		}
		factor, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return fail(err)
		}
		return Bimodal(d, share, factor), nil
	}
	return fail(fmt.Errorf("expected none, deterministic:D, exponential:MEAN or bimodal:D:SHARE:FACTOR"))
}

// Stall stops all service for the time For at each multiple of Every since the server's creation,
// except at 0. The zero value never stalls.
type Stall struct{ Every, For time.Duration }

// end returns the end of work that begins at an instant. Work pauses while the server stalls.
func (s Stall) end(begin, work time.Duration) time.Duration {
	if s.For == 0 {
		return begin + work
	}
	for at := begin; ; {
		period := at / s.Every
		if stalled := period * s.Every; period > 0 && at < stalled+s.For {
			at = stalled + s.For
		}
		next := (period + 1) * s.Every
		if at+work <= next {
			return at + work
		}
		work -= next - at
		at = next
	}
}
