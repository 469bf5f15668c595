package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"tuner/measure/stats"
)

// tally counts the outcomes of the requests. Its methods are safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts counts
	faults []string // the first ones
	notes  []string // for the end
	// seconds that correct answers of `simple` took, while the siege rested and while it worked
	resting, working []float64
}

// counts are numbers of requests.
type counts struct {
	asked    int // by clients that expect an answer; each ends as one of the next four
	checked  int // answered correctly
	absent   int // refused by the volatile model while it may be absent
	lost     int // not answered, or refused
	wrong    int // answered incorrectly
	failed   int // operations, and answers to vandals, that were not as required
	nonsense int // bad requests that were properly refused
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

// took notes the time of a correct answer.
func (t *tally) took(seconds float64, besideSiege bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if besideSiege {
		t.working = append(t.working, seconds)
	} else {
		t.resting = append(t.resting, seconds)
	}
}

// latencies compares the 99th percentiles of the answers beside the siege and without it. It is ""
// if one of them has no answers.
func (t *tally) latencies() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.resting) == 0 || len(t.working) == 0 {
		return ""
	}
	const q = 0.99
	slices.Sort(t.resting)
	slices.Sort(t.working)
	alone, beside := stats.Quantile(t.resting, q), stats.Quantile(t.working, q)
	return fmt.Sprintf("p99 of %s: %.1f ms of %d answers beside the siege, %.1f ms of %d without it: %.2f times", simple,
		1e3*beside, len(t.working), 1e3*alone, len(t.resting), beside/alone)
}

// lose counts a request that was not answered.
func (t *tally) lose(format string, args ...any) {
	t.fault("lost: "+fmt.Sprintf(format, args...), func(c *counts) { c.lost++ })
}

// mistake counts a wrong answer.
func (t *tally) mistake(format string, args ...any) {
	t.fault("wrong: "+fmt.Sprintf(format, args...), func(c *counts) { c.wrong++ })
}

// fail counts failures outside the questions.
func (t *tally) fail(format string, args ...any) {
	t.fault("failed: "+fmt.Sprintf(format, args...), func(c *counts) { c.failed++ })
}

// note keeps a line for the end.
func (t *tally) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *tally) fault(what string, change func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
	if len(t.faults) < shownFaults {
		t.faults = append(t.faults, what)
	}
}

// verdict prints the first faults, and the notes. It returns an error for any fault, for a question without an
// outcome, and if no answer was checked.
func (t *tally) verdict(out io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range slices.Concat(t.faults, t.notes) {
		fmt.Fprintln(out, line)
	}
	c := t.counts
	var errs []error
	if c.lost > 0 || c.wrong > 0 {
		errs = append(errs, fmt.Errorf("%d lost and %d wrong of %d requests", c.lost, c.wrong, c.asked))
	}
	if c.failed > 0 {
		errs = append(errs, fmt.Errorf("%d failures beside the requests", c.failed))
	}
	if outcomes := c.checked + c.absent + c.lost + c.wrong; outcomes != c.asked {
		errs = append(errs, fmt.Errorf("%d requests, but %d outcomes", c.asked, outcomes))
	}
	if c.checked == 0 {
		errs = append(errs, errors.New("not one answer was checked"))
	}
	return errors.Join(errs...)
}
