package live

import (
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/pflag"

	"tuner/internal/exit"
)

// The forms of progress.
const (
	formLive  = "live"  // frames on the terminal
	formPlain = "plain" // lines
	formNone  = "none"
)

// AddFlag defines the flag --ui.
func AddFlag(f *pflag.FlagSet, form *string) {
	f.StringVar(form, "ui", "", "`form` of the progress: live (a view with keys), plain (lines) or none (default live on a terminal, else plain)")
}

// Stage is the place of a program's screen. A signal handler gives the terminal back through it. A
// nil Stage is one for tests, which remembers nothing.
type Stage struct{ screen atomic.Pointer[Screen] }

// Leave gives the terminal back before the process ends.
func (s *Stage) Leave() {
	if s != nil {
		s.screen.Load().Leave()
	}
}

// Messages returns the output for the messages of a verb with a form of progress, and whether it
// shows none. In the live form that output is a *Screen. in, out and errs are the verb's own.
func (s *Stage) Messages(form string, isQuiet bool, in io.Reader, out, errs io.Writer) (messages io.Writer, none bool, err error) {
	if isQuiet && form != "" && form != formNone {
		return nil, false, exit.Usagef("--quiet contradicts --ui %s", form)
	}
	switch form {
	case "", formLive:
	case formPlain:
		return errs, false, nil
	case formNone:
		return errs, true, nil
	default:
		return nil, false, exit.Usagef("--ui %q: allowed are %s, %s and %s", form, formLive, formPlain, formNone)
	}
	if isQuiet {
		return errs, true, nil
	}
	output, _ := out.(*os.File)
	screen, _ := errs.(*os.File)
	input, _ := in.(*os.File)
	switch err := Check(output, screen, input, os.Getenv); {
	case err != nil && form == formLive:
		return nil, false, exit.Usagef("cannot show --ui live: %w; --ui plain prints lines", err)
	case err != nil:
		return errs, false, nil
	}
	shown := NewScreen(screen, input, LookOf(os.Getenv))
	if s != nil {
		s.screen.Store(shown)
	}
	return shown, false, nil
}
