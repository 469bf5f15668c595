package search

import (
	"slices"
	"time"
)

const (
	// MostSeats is how many trials a block may have: as many engines as are up at a time (package runner).
	MostSeats = 3
	// TurnWindow is how long a window of a turn is: a round of three, with the filling of their queues, is then over before the machine has changed
	// its pace, which it keeps for about five seconds. Of a slow model the windows become longer.
	TurnWindow = 500 * time.Millisecond
)

// Block is the action of measuring trials in turn on engines that are launched for it and all up, in the order A B C, C B A, …: each has one window in
// each of the rounds, in place of its own. Even numbers of rounds treat all alike. A single trial is measured alone, for as long. There are MostSeats
// trials at most, and none is a service trial. Package plan numbers the blocks.
func (s Settings) Block(seats []Trial, rounds int) Action {
	block := slices.Clone(seats)
	for i := range block {
		block[i].Windows, block[i].Window, block[i].Fresh, block[i].Block, block[i].Worth = rounds, TurnWindow, true, 1, nil
	}
	if len(block) == 1 {
		only := block[0].Alone()
		only.IsApart = false
		return Action{Trial: only}
	}
	return Action{Trial: block[0], Block: block}
}

// Numbered is the action with the ordinal of its block, from 1.
func (a Action) Numbered(block int) Action {
	if a.Block == nil {
		return a
	}
	a.Block = slices.Clone(a.Block)
	for i := range a.Block {
		a.Block[i].Block = block
	}
	a.Trial = a.Block[0]
	return a
}

// Alone is a seat of a block as a trial that is measured by itself: in one window as long as all its turns together.
func (t Trial) Alone() Trial {
	t.Windows, t.Window, t.Block, t.IsApart = 1, time.Duration(t.Windows)*t.Window, 0, true
	return t
}
