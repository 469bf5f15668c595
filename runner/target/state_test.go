package target

import "testing"

// The test has every row of the table in state.go.
func TestTransitions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		from state
		e    event
		to   state
		do   action
	}{
		{starting, announcedEvent, ready, noAction},
		{starting, overdueEvent, killing, kill},
		{starting, stopEvent, draining, terminate},
		{starting, exitedEvent, exited, noAction},

		{ready, announcedEvent, ready, noAction},
		{ready, overdueEvent, ready, noAction},
		{ready, stopEvent, draining, terminate},
		{ready, exitedEvent, exited, noAction},

		{draining, announcedEvent, draining, noAction},
		{draining, overdueEvent, killing, kill},
		{draining, stopEvent, draining, noAction},
		{draining, exitedEvent, exited, noAction},

		{killing, announcedEvent, killing, noAction},
		{killing, overdueEvent, killing, noAction},
		{killing, stopEvent, killing, noAction},
		{killing, exitedEvent, exited, noAction},

		{exited, announcedEvent, exited, noAction},
		{exited, overdueEvent, exited, noAction},
		{exited, stopEvent, exited, noAction},
		{exited, exitedEvent, exited, noAction},
	} {
		if to, do := row.from.next(row.e); to != row.to || do != row.do {
			t.Errorf("state %d, event %d: state %d and action %d, want %d and %d", row.from, row.e, to, do, row.to, row.do)
		}
	}
}
