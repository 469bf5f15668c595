package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"tuner/lab/program"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string // of the error; "" for none
	}{
		{[]string{"-what", "latency", "-rounds", "3", "-window", "200ms"}, ""},
		{[]string{"-what", "beauty"}, `-what "beauty": allowed are frontend, latency, saturation, ranking, launches, grid, offered, large, all`},
		{[]string{"-rounds", "-1"}, "-rounds -1"},
		{[]string{"fast"}, `unexpected argument "fast"`},
		{[]string{"-models", "no-such-folder"}, `cannot find "no-such-folder"`},
	} {
		_, err := program.Parse(define, append([]string{"-tuner", "main.go", "-models", "."}, c.args...), io.Discard)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.args, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: error %v, expected %q in it", c.args, err, c.want)
		}
	}
}

func TestDefaultsFillWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	if o := (options{rounds: 3}).or(10, time.Second); o.rounds != 3 || o.window != time.Second {
		t.Errorf("%d rounds of %v, expected 3 of 1s", o.rounds, o.window)
	}
}
