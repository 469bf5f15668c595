package live

import (
	"os"
	"os/signal"
	"strings"
	"testing"
)

// The key sends the signal of Ctrl-C, once: a second one would end the process at once. This test owns
// the signal, so it runs alone.
func TestStopKey(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	var f Frame
	key := StopKey(func(change func(*Frame)) { change(&f) })
	key.Do()
	<-signals
	f.Note += " once"
	key.Do()
	if key.Rune != 's' || !strings.HasPrefix(f.Note, "Stopping.") || !strings.HasSuffix(f.Note, " once") {
		t.Errorf("key %c, note %q", key.Rune, f.Note)
	}
}
