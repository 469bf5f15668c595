package stage

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"tuner/internal/exit"
	"tuner/internal/live"
	"tuner/internal/live/web"
)

// Without a terminal the forms are lines, a page or nothing. internal/cli's scripts have the errors.
func TestMessages(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]struct{ isPage, none bool }{"": {}, formPlain: {}, formNone: {none: true}, formWeb: {isPage: true}} {
		var errs bytes.Buffer
		var s Stage
		messages, none, err := s.Messages(Choice{form: form}, false, strings.NewReader(""), io.Discard, &errs)
		page, isPage := messages.(*web.Page)
		if err != nil || none != want.none || isPage != want.isPage || !isPage && messages != &errs {
			t.Errorf("%q: %T, %v, error %v", form, messages, none, err)
		}
		if isPage != (s.page.Load() == page && page != nil) {
			t.Errorf("%q: the stage has the page %v", form, s.page.Load())
		}
		s.Close()
	}
}

// A port that is taken is the user's mistake, with a remedy.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	form := fmt.Sprintf("web:%d", other.Addr().(*net.TCPAddr).Port)
	var s Stage
	_, _, err = s.Messages(Choice{form: form}, false, nil, io.Discard, io.Discard)
	if err == nil || exit.CodeOf(err) != exit.Usage || !strings.HasPrefix(err.Error(), "cannot show --ui "+form+": ") ||
		!strings.HasSuffix(err.Error(), "; --ui web takes a free port") {
		t.Errorf("error %v", err)
	}
	s.Close()
}

// A report is for those who watch a page. One that cannot be made is a message.
func TestReport(t *testing.T) {
	t.Parallel()
	fails := func(io.Writer) error { return io.ErrUnexpectedEOF }
	(*Stage)(nil).Report(fails)
	(*Stage)(nil).Close()
	new(Stage).Report(fails)
	var s Stage
	var errs bytes.Buffer
	messages, _, err := s.Messages(Choice{form: formWeb}, false, nil, io.Discard, &errs)
	if err != nil {
		t.Fatal(err)
	}
	page := messages.(*web.Page)
	if err := page.Show(live.Frame{Began: time.Now()}); err != nil {
		t.Fatal(err)
	}
	page.Close()
	s.Report(fails)
	if want := "watch at " + page.Address() + "\ncannot show the report in the browser: unexpected EOF\n"; errs.String() != want {
		t.Errorf("it printed %q, want %q", errs.String(), want)
	}
	s.Close()
}
