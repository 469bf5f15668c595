package gathering

import (
	"math/bits"
	"time"
)

// times are the usual times of runs, by their rows. There are two classes for each power of two. So
// the rows within a class differ by a factor of 1.5 at most.
type times [2 * (bits.UintSize + 1)]time.Duration

// weight is the share of the newest run in the usual time of its class: 1/8.
const weight = 8

// class returns the class of some rows: 1, 2, 3, 4 and 5, 6 and 7, 8 to 11, 12 to 15, …
func class(rows int) int {
	n := bits.Len(uint(rows))
	return 2*n + rows<<2>>n&1
}

// add learns the time of a run. It returns that, or the usual time if that is shorter: a run that was
// disturbed tells nothing about the next one.
func (t *times) add(rows int, run time.Duration) time.Duration {
	usual := &t[class(rows)]
	if *usual == 0 {
		*usual = run
	}
	shorter := min(run, *usual)
	*usual += (run - *usual) / weight
	return shorter
}

// of returns the usual time of a run of some rows. Where that is not known, it is that of the next
// smaller class that is; 0 without any.
func (t *times) of(rows int) time.Duration {
	for i := class(rows); i > 0; i-- {
		if t[i] != 0 {
			return t[i]
		}
	}
	return 0
}
