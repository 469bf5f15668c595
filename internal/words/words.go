// Package words formats numbers, times and long texts for people. Its functions depend on their
// arguments only.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes a number with its noun in the right form: "1 trial", "2 trials", "3 batches", "4
// losses".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	for _, end := range []string{"ch", "ss", "sh", "x"} {
		if strings.HasSuffix(noun, end) {
			return fmt.Sprintf("%d %ses", n, noun)
		}
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Digits writes a number with that many significant digits, or with all before the point if they are
// more. It never writes an exponent: "0.0213", "41.7", "12500".
func Digits(v float64, significant int) string {
	decimals := 0
	if v != 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
		decimals = max(0, significant-1-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Clock writes a duration in whole seconds, such as 3m5s.
func Clock(d time.Duration) string { return d.Round(time.Second).String() }

// Duration prints a duration in its largest unit with a value of at least one: "100 µs", "1.5
// ms", "2 s".
func Duration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d >= unit.of {
			return fmt.Sprintf("%g %s", float64(d)/float64(unit.of), unit.name)
		}
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

// Shorten cuts a text to most characters. The last character of a text that was cut is "…".
func Shorten(text string, most int) string {
	if most < 1 {
		return ""
	}
	n, cut := 0, 0 // n characters were read; cut is the end of the last one that stays
	for i := range text {
		switch n {
		case most - 1:
			cut = i
		case most:
			return text[:cut] + "…"
		}
		n++
	}
	return text
}

// Brief returns the first line of a reason and, after "…", its last words, since the end of a log
// tells what happened.
func Brief(reason string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(reason), "\n")
	if !more {
		return first
	}
	return first + " … " + Last(rest)
}

// Last returns the last line of a program's output. If Go reports a crash, it returns the line that
// names the signal or the fatal error.
func Last(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
