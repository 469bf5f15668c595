package main

import (
	"fmt"
	"io"
	"sync"
)

// tally counts what came of the requests. Its methods are safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts counts
	faults []string // the first of them
}

// counts are numbers of requests.
type counts struct {
	asked    int // by clients that want an answer
	checked  int // answered, and right
	absent   int // refused by the volatile model while it may be absent
	lost     int // not answered, or refused
	wrong    int // answered otherwise than is right
	nonsense int // bad requests that were refused as they should
	vanished int // requests whose client left
	reloads  int // loads and unloads
}

const shownFaults = 20

func (t *tally) add(change func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
}

func (t *tally) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// lose counts a request that was not answered.
func (t *tally) lose(format string, args ...any) {
	t.fault("lost: "+fmt.Sprintf(format, args...), func(c *counts) { c.lost++ })
}

// mistake counts a wrong answer.
func (t *tally) mistake(format string, args ...any) {
	t.fault("wrong: "+fmt.Sprintf(format, args...), func(c *counts) { c.wrong++ })
}

func (t *tally) fault(what string, change func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
	if len(t.faults) < shownFaults {
		t.faults = append(t.faults, what)
	}
}

// verdict prints the first faults; any is an error.
func (t *tally) verdict(out io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.faults {
		fmt.Fprintln(out, f)
	}
	if c := t.counts; c.lost > 0 || c.wrong > 0 {
		return fmt.Errorf("%d lost and %d wrong of %d requests", c.lost, c.wrong, c.asked)
	}
	return nil
}
