package words_test

import (
	"math"
	"testing"
	"time"

	"tuner/internal/words"
)

func TestWords(t *testing.T) {
	t.Parallel()
	const crash = "fatal error: all goroutines are asleep\n\ngoroutine 1 [running]:\nmain.main()\n\t/main.go:3\n"
	for got, want := range map[string]string{
		words.Count(1, "trial"):                  "1 trial",
		words.Count(0, "trial"):                  "0 trials",
		words.Count(2, "batch"):                  "2 batches",
		words.Count(3, "loss"):                   "3 losses",
		words.Count(2, "engine process"):         "2 engine processes",
		words.Digits(0, 4):                       "0",
		words.Digits(41.72, 3):                   "41.7",
		words.Digits(9.9996, 4):                  "10",
		words.Digits(-0.021337, 3):               "-0.0213",
		words.Digits(1234567.8, 4):               "1234568",
		words.Digits(100, 1):                     "100",
		words.Digits(math.Inf(1), 3):             "+Inf",
		words.Clock(185400 * time.Millisecond):   "3m5s",
		words.Clock(499 * time.Millisecond):      "0s",
		words.Shorten("größer", 6):               "größer",
		words.Shorten("größer", 4):               "grö…",
		words.Shorten("größer", 0):               "",
		words.Brief("one line\n"):                "one line",
		words.Brief("it failed\na log\nits end"): "it failed … its end",
		words.Last("a\nb\n"):                     "b",
		words.Last(""):                           "",
		words.Last(crash):                        "fatal error: all goroutines are asleep",
		words.Last("SIGSEGV: segmentation\n\nx"): "SIGSEGV: segmentation",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{100 * time.Microsecond: "100 µs", 1500 * time.Microsecond: "1.5 ms", 2 * time.Second: "2 s"} {
		if got := words.Duration(d); got != want {
			t.Errorf("%v reads %q, want %q", d, got, want)
		}
	}
}
