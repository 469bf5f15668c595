package live

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"tuner/internal/terminal"
)

// Screen is a terminal that shows frames. Between Open and Show, and after Close, it is an ordinary
// output for messages. While it shows frames it keeps messages, and prints them at the end.
//
// It uses the terminal's second screen, so that frames and messages never mix, and a smaller window
// breaks no line. All methods may be called from any goroutine, and on a nil Screen they do nothing.
type Screen struct {
	out, in  *os.File
	isASCII  bool
	isColor  bool
	clock    func() time.Time
	mode     mode // keys without Return
	guard    *guard
	changed  chan struct{} // a frame to draw
	done     chan struct{}
	watchers sync.WaitGroup

	// pen is held while the terminal is written to. A terminal may take nothing for long (Ctrl-S, a
	// connection that hangs). So nobody waits for pen with mu held; pen comes first.
	pen sync.Mutex

	mu       sync.Mutex // of what follows
	isShown  bool
	frame    Frame
	messages strings.Builder // of others, while frames are shown
	lines    []string        // on the terminal now
	size     Size            // of the terminal when lines were drawn
}

// Look says what a terminal shows.
type Look struct{ IsASCII, HasColors bool }

// NewScreen returns the screen of a terminal. out and in are its two directions.
func NewScreen(out, in *os.File, look Look) *Screen {
	return &Screen{out: out, in: in, isASCII: look.IsASCII, isColor: look.HasColors, clock: time.Now}
}

// Write prints a message, or keeps it while frames are shown.
func (s *Screen) Write(text []byte) (int, error) {
	if s.keep(text) {
		return len(text), nil
	}
	s.pen.Lock()
	defer s.pen.Unlock()
	if s.keep(text) { // frames are shown since
		return len(text), nil
	}
	_, err := s.out.Write(s.spell(text))
	return len(text), err
}

// keep keeps a message while frames are shown. It returns false if none are.
func (s *Screen) keep(text []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isShown {
		return false
	}
	s.messages.Write(text)
	if last := strings.TrimSpace(string(text)); last != "" {
		s.frame.Note = last[strings.LastIndexByte(last, '\n')+1:]
		s.wake()
	}
	return true
}

// Show begins to show a frame. It fails where the terminal's mode cannot be changed.
func (s *Screen) Show(f Frame) error {
	if s == nil {
		return nil
	}
	s.pen.Lock()
	defer s.pen.Unlock()
	if err := s.begin(f); err != nil {
		return fmt.Errorf("cannot watch the terminal: %w", err)
	}
	io.WriteString(s.out, enterScreen)
	s.watchers.Go(s.draw)
	s.watchers.Go(s.readKeys)
	return nil
}

// begin puts the terminal into the mode of keys. From then on, messages are kept.
func (s *Screen) begin(f Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mode, err := keyMode(s.in)
	if err != nil {
		return err
	}
	s.mode, s.frame, s.isShown, s.lines = mode, f, true, nil
	s.changed, s.done = make(chan struct{}, 1), make(chan struct{})
	s.guard = startGuard(s.out, s.in)
	if err := mode.enter(); err != nil {
		s.guard.stop()
		s.isShown = false
		return err
	}
	return nil
}

// Update changes the frame, which is then drawn soon.
func (s *Screen) Update(change func(*Frame)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShown {
		change(&s.frame)
		s.wake()
	}
}

// Close gives the terminal back. The last frame without its keys, and the messages of others, then
// stand on the ordinary screen.
func (s *Screen) Close() {
	if s != nil && s.leave() {
		s.watchers.Wait()
	}
}

// leaveWait is the longest wait of a process that ends at once for a terminal that takes nothing.
const leaveWait = time.Second

// Leave gives the terminal back, for a process that ends at once. If the terminal takes nothing, it
// is left to the guard.
func (s *Screen) Leave() {
	if s == nil {
		return
	}
	left := make(chan struct{})
	go func() { s.leave(); close(left) }()
	select {
	case <-left:
	case <-time.After(leaveWait):
	}
}

// leave returns whether the screen was shown until now.
func (s *Screen) leave() bool {
	s.pen.Lock()
	defer s.pen.Unlock()
	last, wasShown := s.end()
	if wasShown {
		io.WriteString(s.out, leaveScreen)
		s.guard.stop()
		io.WriteString(s.out, last)
	}
	return wasShown
}

// end restores the terminal's mode. It returns the text that stays.
func (s *Screen) end() (last string, wasShown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isShown {
		return "", false
	}
	s.isShown = false
	close(s.done)
	s.mode.leave()
	s.frame.Keys, s.frame.Note = nil, ""
	var b strings.Builder
	for _, line := range s.texts(s.terminalSize()) {
		fmt.Fprintln(&b, line)
	}
	b.Write(s.spell([]byte(s.messages.String())))
	s.messages.Reset()
	return b.String(), true
}

// The terminal's commands (ECMA-48, and xterm's second screen).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J" // second screen, no cursor, empty
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	eraseRest   = "\x1b[K"
	eraseBelow  = "\x1b[J"
)

// The times of drawing.
const (
	redrawEvery = time.Second            // for the clock
	redrawAfter = 250 * time.Millisecond // the least time between two drawings
)

// wake asks for a drawing.
func (s *Screen) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// draw draws frames until the screen is left: after a change, and once a second for the clock.
func (s *Screen) draw() {
	resized, stop := watchSize()
	defer stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	clock := time.NewTicker(redrawEvery)
	defer clock.Stop()
	for {
		s.redraw()
		rest.Reset(redrawAfter)
		select {
		case <-s.done:
			return
		case <-rest.C:
		}
		select {
		case <-s.done:
			return
		case <-s.changed:
		case <-clock.C:
		case signal := <-resized:
			if isBack(signal) {
				s.again()
			}
		}
	}
}

// again enters the screen a second time.
func (s *Screen) again() {
	s.pen.Lock()
	defer s.pen.Unlock()
	s.mu.Lock()
	isShown := s.isShown
	if isShown {
		s.lines = nil
		_ = s.mode.enter() // as before
	}
	s.mu.Unlock()
	if isShown {
		io.WriteString(s.out, enterScreen)
	}
}

// spell returns a message in the terminal's characters.
func (s *Screen) spell(text []byte) []byte {
	if !s.isASCII {
		return text
	}
	return []byte(terminal.ASCII(string(text)))
}

// redraw writes the lines that differ from those on the terminal.
func (s *Screen) redraw() {
	s.pen.Lock()
	defer s.pen.Unlock()
	if text := s.news(); text != "" {
		io.WriteString(s.out, text) // a terminal that is gone has nobody to tell
	}
}

// news returns the commands that draw what is new.
func (s *Screen) news() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isShown {
		return ""
	}
	size := s.terminalSize()
	lines := s.texts(size)
	if size != s.size {
		s.lines = nil
	}
	text := changes(s.lines, lines)
	s.lines, s.size = lines, size
	return text
}

// changes returns the commands that turn lines on a terminal into others. Without lines before, it
// draws everything.
func changes(before, now []string) string {
	var b strings.Builder
	for i, line := range now {
		if i >= len(before) || before[i] != line {
			fmt.Fprintf(&b, "\x1b[%d;1H%s%s", i+1, line, eraseRest)
		}
	}
	if len(before) > len(now) || before == nil {
		fmt.Fprintf(&b, "\x1b[%d;1H%s", len(now)+1, eraseBelow)
	}
	return b.String()
}

// texts returns the frame's lines as the terminal gets them. The caller holds the lock.
func (s *Screen) texts(size Size) []string {
	var texts []string
	for _, l := range s.frame.Lines(size, s.clock(), s.isASCII) {
		texts = append(texts, l.Text(s.isColor))
	}
	return texts
}

// terminalSize returns the terminal's size, or the usual one if it does not tell.
func (s *Screen) terminalSize() Size {
	columns, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return Size{80, 24}
	}
	return Size{columns, rows}
}

// press obeys a key.
func (s *Screen) press(key rune) {
	s.mu.Lock()
	keys := s.frame.Keys
	s.mu.Unlock()
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Rune == key }); i >= 0 {
		keys[i].Do()
	}
}
