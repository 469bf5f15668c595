package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// state is the outcome of an attack.
type state string

const (
	passed  state = "held"
	failed  state = "FAILED"
	skipped state = "not run"
)

// result is the result of an attack.
type result struct {
	attack
	state state
	seen  string
	took  time.Duration
}

// table writes the results. It returns an error if one failed, or none was made.
func table(out io.Writer, results []result) error {
	counts := map[state]int{}
	var took time.Duration
	fmt.Fprintln(out, "| row | attack | must be seen | state | seen |\n|---|---|---|---|---|")
	for _, r := range results {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", r.row, r.name, r.want, r.state, cell(r.seen))
		counts[r.state]++
		took += r.took
	}
	_, err := fmt.Fprintf(out, "\n%d held, %d failed, %d not run, in %.0f s\n", counts[passed], counts[failed], counts[skipped], took.Seconds())
	switch {
	case counts[failed] > 0:
		return errors.Join(err, fmt.Errorf("%d attacks were not withstood", counts[failed]))
	case counts[passed] == 0:
		return errors.Join(err, errors.New("no attack was made"))
	}
	return err
}

// list writes the corpus without results.
func list(out io.Writer) error {
	fmt.Fprintln(out, "| row | attack | must be seen |\n|---|---|---|")
	for _, a := range attacks() {
		if _, err := fmt.Fprintf(out, "| %s | %s | %s |\n", a.row, a.name, a.want); err != nil {
			return err
		}
	}
	return nil
}

// cell makes one cell from a text.
func cell(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "/")), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
