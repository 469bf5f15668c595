package target

// state is the state of an engine process.
//
// The table has the next state for each event, and the signal for the process's group:
//
//	state     announced   overdue     stop          exited
//	starting  ready       killing K   draining T    exited
//	ready     ready       ready       draining T    exited
//	draining  draining    killing K   draining      exited
//	killing   killing     killing     killing       exited
//	exited    exited      exited      exited        exited
//
// T: SIGTERM, K: SIGKILL. overdue is the end of the time for the announcement in state starting,
// and for the exit in state draining. A process that exits in state starting or ready did so by
// itself.
type state int

const (
	starting state = iota
	ready
	draining
	killing
	exited
)

// event is an event of an engine process.
type event int

const (
	announcedEvent event = iota
	overdueEvent
	stopEvent
	exitedEvent
)

// action is the signal of a transition for the process's group.
type action int

const (
	noAction action = iota
	terminate
	kill
)

// next is the transition table.
func (s state) next(e event) (state, action) {
	switch {
	case s == exited || e == exitedEvent:
		return exited, noAction
	case e == announcedEvent && s == starting:
		return ready, noAction
	case e == overdueEvent && (s == starting || s == draining):
		return killing, kill
	case e == stopEvent && (s == starting || s == ready):
		return draining, terminate
	}
	return s, noAction
}
