package search

import (
	"slices"
	"time"
)

const (
	// MostSeats is the largest number of trials in a block: the number of engines that run at the
	// same time (package runner).
	MostSeats = 3
	// TurnWindow is the length of a turn's window. A round of three, with the filling of their
	// queues, then ends before the machine changes its speed, which it keeps for about five
	// seconds. Slow models get longer windows.
	TurnWindow = 500 * time.Millisecond
)

// Block returns the action that measures trials in turn. Their engines are launched for it and all
// run. The order is A B C, C B A, …. Each trial has one window in each round instead of its own
// windows. An even number of rounds treats all alike. A single trial is measured alone, for the
// same total time. There are MostSeats trials at most, and none is a service trial. Package plan
// numbers the blocks.
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

// Numbered returns the action with the ordinal of its block, from 1.
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

// Alone returns a seat of a block as a trial that is measured alone, in one window as long as all
// its turns together.
func (t Trial) Alone() Trial {
	t.Windows, t.Window, t.Block, t.IsApart = 1, time.Duration(t.Windows)*t.Window, 0, true
	return t
}
