package traffic

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// constant is the course without waves.
const constant = "constant"

// course is a shape that words name.
type course struct {
	hours    [24]float64 // rates at each hour of a working day, as shares of the highest one
	weekends float64     // factor of a day at the weekend
}

// courseOf returns the shape of a name. The numbers are ours, for services of which nothing is measured
// yet.
func courseOf(name string) (c course, known bool) {
	switch name {
	case "office hours":
		return course{[24]float64{
			.05, .05, .05, .05, .05, .05, .07, .2, .6, .9, 1, .98, .8, .85, 1, .97, .88, .6, .3, .2, .12, .08, .06, .05,
		}, 0.1}, true
	case "evenings":
		return course{[24]float64{
			.45, .3, .2, .15, .12, .13, .2, .3, .38, .43, .48, .5, .53, .54, .54, .56, .6, .7, .82, .93, 1, .97, .85, .65,
		}, 1}, true
	case constant:
		return course{[24]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1}, true
	}
	return course{}, false
}

var (
	level    = regexp.MustCompile(`^(peak|mean) ([0-9.]+)(?:/s| requests/s)$`)
	weekends = regexp.MustCompile(`^weekends ([0-9.]+) ?%$`)
)

// isWords reports whether a text is meant as words, and not as the name of a file.
func isWords(text string) bool {
	first, _, _ := strings.Cut(text, " ")
	part, _, _ := strings.Cut(text, ",")
	_, isCourse := courseOf(strings.TrimSpace(part))
	return first == "peak" || first == "mean" || isCourse
}

const wordForms = `"peak 400/s" or "mean 100/s", with "office hours", "evenings" or "constant", and "weekends 30%"`

// readWords reads words, separated by commas, for a week that begins on Monday.
func readWords(text string, seed uint64) (Traffic, error) {
	fail := func(format string, args ...any) (Traffic, error) {
		return Traffic{}, fmt.Errorf("--traffic %q: %s; allowed are %s", text, fmt.Sprintf(format, args...), wordForms)
	}
	var kind string
	var rate float64
	name, factor := "", -1.0
	for _, part := range strings.Split(text, ",") {
		part = strings.Join(strings.Fields(part), " ")
		if m := level.FindStringSubmatch(part); m != nil && kind == "" {
			x, err := strconv.ParseFloat(m[2], 64)
			if err != nil || x == 0 || !isRate(x) {
				return fail("%q is not a rate from above 0 to %g requests/s", part, HighestRate)
			}
			kind, rate = m[1], x
		} else if m := weekends.FindStringSubmatch(part); m != nil && factor < 0 {
			x, err := strconv.ParseFloat(m[1], 64)
			if err != nil || x > 1000 {
				return fail("%q is not a share from 0 to 1000 percent", part)
			}
			factor = x / 100
		} else if _, known := courseOf(part); known && name == "" {
			name = part
		} else {
			return fail("%q is not understood, or comes twice", part)
		}
	}
	if kind == "" {
		return fail("there is no rate")
	}
	shape, _ := courseOf(cmp.Or(name, constant))
	if factor < 0 {
		factor = shape.weekends
	}
	return weekOf(shape.hours, factor).scaled(kind, rate).traffic(text+", for a week", seed), nil
}

// weekOf returns five days and two of the weekend, linear between the hours.
func weekOf(hours [24]float64, weekend float64) rates {
	r := make(rates, 0, 7*PerDay)
	for i := range 7 * PerDay {
		factor := 1.0
		if i/PerDay >= 5 {
			factor = weekend
		}
		at := float64(i%PerDay) / float64(PerDay) * 24
		hour := int(at)
		next := hours[(hour+1)%24]
		r = append(r, factor*(hours[hour]+(next-hours[hour])*(at-float64(hour))))
	}
	return r
}

// scaled returns the rates with a peak or a mean.
func (r rates) scaled(kind string, rate float64) rates {
	highest, sum := 0.0, 0.0
	for _, x := range r {
		highest, sum = max(highest, x), sum+x
	}
	factor := rate / highest
	if kind == "mean" {
		factor = rate * float64(len(r)) / sum
	}
	for i := range r {
		r[i] *= factor
	}
	return r
}
