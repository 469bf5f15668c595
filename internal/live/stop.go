package live

import (
	"os"
	"sync"
)

// StopKey returns the key that ends the work as Ctrl-C does. update changes the frame.
func StopKey(update func(func(*Frame))) Key {
	var once sync.Once // a second signal would end the process at once
	return Key{Rune: 's', Text: "stop and keep", Do: func() {
		once.Do(func() {
			update(func(f *Frame) { f.Note = "Stopping. What was measured is kept; Ctrl-C ends at once." })
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(os.Interrupt) // a process can always signal itself
			}
		})
	}}
}
