package live

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"tuner/internal/terminal"
)

// Check returns the reason why a terminal cannot show frames; nil if it can.
func Check(out, err, in *os.File, env func(string) string) error {
	for _, f := range []struct {
		name string
		file *os.File
	}{{"stdout", out}, {"stderr", err}, {"stdin", in}} {
		if f.file == nil || !term.IsTerminal(int(f.file.Fd())) {
			return fmt.Errorf("%s is no terminal", f.name)
		}
	}
	if name := env("TERM"); name == "" || name == "dumb" {
		return fmt.Errorf("TERM=%q has no second screen", name)
	}
	if columns, rows, failed := term.GetSize(int(err.Fd())); failed == nil && (columns < leastColumns || rows < leastRows) {
		return fmt.Errorf("the terminal has %d × %d characters, and the view needs %d × %d", columns, rows, leastColumns, leastRows)
	}
	if _, failed := keyMode(in); failed != nil {
		return failed
	}
	return nil
}

// LookOf returns the look of a terminal in an environment.
func LookOf(env func(string) string) Look {
	return Look{IsASCII: terminal.IsASCII(env), HasColors: terminal.ShowsColors(true, env)}
}
