package guided

import (
	"testing"

	"tuner/search"
)

// Before any service times are known, nothing bounds the gain of other candidates.
func TestNothingIsOpenInTheEnd(t *testing.T) {
	t.Parallel()
	m := typical(1, 0.05)
	m.settings.Space.Facts.Base[search.KnobIntraOpThreads] = "3" // its own default
	g, _ := m.run(t, 3)
	if _, isOpen := g.Rivals(); !isOpen {
		t.Error("nothing is open after three trials")
	}
	g, _ = m.run(t, 100)
	if _, isOpen := g.Rivals(); isOpen {
		t.Error("an engine is open in the end")
	}
}
