// Package stage chooses where a verb shows its progress: on the terminal (package live), in browsers
// (package web), as lines, or nowhere. It stands between the command line and the displays, and draws
// nothing.
package stage

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"tuner/internal/exit"
	"tuner/internal/live"
	"tuner/internal/live/web"
)

// The forms of progress.
const (
	formLive  = "live"  // frames on the terminal
	formPlain = "plain" // lines
	formNone  = "none"
	formWeb   = "web" // frames on a page
)

// Choice has the flags of a verb that choose the form of its progress.
type Choice struct {
	form      string
	isControl bool
}

// AddFlags defines the flags.
func (c *Choice) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.form, "ui", "", "`form` of the progress: live (a view with keys), plain (lines), web or web:PORT (a page for browsers on this machine) or none (default live on a terminal, else plain)")
	f.BoolVar(&c.isControl, "ui-control", false, "with --ui web: the page has the keys of the live view, too (default read-only)")
}

// Stage is the place of a program's screen or page. A signal handler gives the terminal back through
// it. A nil Stage is one for tests, which remembers nothing.
type Stage struct {
	screen atomic.Pointer[live.Screen]
	page   atomic.Pointer[web.Page]
}

// Leave gives the terminal back before the process ends.
func (s *Stage) Leave() {
	if s != nil {
		s.screen.Load().Leave()
	}
}

// Report gives the page the report that it becomes when the program ends. It does nothing without a
// page.
func (s *Stage) Report(write func(io.Writer) error) {
	if s == nil || s.page.Load() == nil {
		return
	}
	page := s.page.Load()
	if err := page.Become(write); err != nil {
		fmt.Fprintf(page, "%v\n", err)
	}
}

// Close ends the page. It waits until the browsers that watch have the report.
func (s *Stage) Close() {
	if s != nil && s.page.Load() != nil {
		s.page.Load().End()
	}
}

// Messages returns the output for the messages of a verb, and whether it shows no progress. In the
// live form that output is a *live.Screen, and in the web form a *web.Page. in, out and errs are the
// verb's own.
func (s *Stage) Messages(c Choice, isQuiet bool, in io.Reader, out, errs io.Writer) (messages io.Writer, none bool, err error) {
	form, port, _ := strings.Cut(c.form, ":")
	switch {
	case isQuiet && form != "" && form != formNone:
		return nil, false, exit.Usagef("--quiet contradicts --ui %s", form)
	case c.isControl && form != formWeb:
		return nil, false, exit.Usagef("--ui-control is for --ui %s", formWeb)
	case form == formWeb:
		messages, err = s.openPage(c, port, errs)
		return messages, false, err
	case c.form != form:
		form = "" // only web has a port
	}
	switch {
	case c.form == "", form == formLive:
	case form == formPlain:
		return errs, false, nil
	case form == formNone:
		return errs, true, nil
	default:
		return nil, false, exit.Usagef("--ui %q: allowed are %s, %s, %s and %s", c.form, formLive, formPlain, formWeb, formNone)
	}
	if isQuiet {
		return errs, true, nil
	}
	messages, err = s.openScreen(form == formLive, in, out, errs)
	return messages, false, err
}

// openPage opens a page, which nobody knows before it is shown.
func (s *Stage) openPage(c Choice, text string, errs io.Writer) (io.Writer, error) {
	port := 0
	if c.form != formWeb {
		var err error
		if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
			return nil, exit.Usagef("--ui %q: the port must be a number from 1 to 65535; %s takes a free one", c.form, formWeb)
		}
	}
	page, err := web.Open(port, c.isControl, errs)
	if err != nil {
		return nil, exit.Usagef("cannot show --ui %s: %v; --ui %s takes a free port", c.form, err, formWeb)
	}
	if s != nil {
		s.page.Store(page)
	}
	return page, nil
}

// openScreen returns the terminal's screen, or the plain output if the terminal cannot show one. That
// is an error if the user asked for a screen.
func (s *Stage) openScreen(isAsked bool, in io.Reader, out, errs io.Writer) (io.Writer, error) {
	output, _ := out.(*os.File)
	screen, _ := errs.(*os.File)
	input, _ := in.(*os.File)
	switch err := live.Check(output, screen, input, os.Getenv); {
	case err != nil && isAsked:
		return nil, exit.Usagef("cannot show --ui live: %w; --ui plain prints lines", err)
	case err != nil:
		return errs, nil
	}
	shown := live.NewScreen(screen, input, live.LookOf(os.Getenv))
	if s != nil {
		s.screen.Store(shown)
	}
	return shown, nil
}
