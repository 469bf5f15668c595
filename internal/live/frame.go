// Package live draws a campaign on a terminal while it runs, and reads the keys of the person who
// watches. A Frame has the content of the screen at an instant: a pure function makes its lines. A Screen
// shows frames in place of each other, keeps messages that others print meanwhile, and gives the
// terminal back. Package web shows the same frames in browsers.
//
// In the data flow it is last: package profile/progress and the command line fill frames from the
// events of their observers. It knows no campaign and no statistics, and measures nothing.
package live

import (
	"fmt"
	"strings"
	"time"

	"tuner/internal/words"
)

// Frame is the content of the screen.
type Frame struct {
	Title string // what runs, and within which limits
	// Answer is the decision so far in sentences, the most important one first. It is good if it can
	// be deployed.
	Answer []string
	IsGood bool
	Now    string    // what is measured at present
	Began  time.Time // start of the run, minus the time of earlier runs
	Ends   time.Time // expected end; zero: unknown
	Chart  Chart
	Noise  Noise
	Recent []Entry // last measurements, the newest last
	Heads  Heads
	// Note is the last message, such as the reply to a key.
	Note string
	Keys []Key
}

// Heads are the names of the columns of the last measurements, for a page: what is counted ("Trial"),
// what was measured, and with which outcome.
type Heads struct{ Count, Text, Outcome string }

// Entry is a measurement in the list of the last ones.
type Entry struct {
	Head, Text, Outcome string
	IsBad               bool // it failed, or misses the limits
}

// Key is a key that the view obeys.
type Key struct {
	Rune rune
	Text string // its effect
	Do   func()
}

// Noise tells how much the machine disturbed the last measurement.
type Noise struct {
	IsKnown bool
	Steal   float64 // share of the CPU time that the hypervisor took, 0..1
	Others  float64 // share that other processes took, 0..1
	// IsRemote: beside a remote server the share of others is unknown
	IsRemote bool
	Drift    float64 // relative change of the cores' clock since the first window
	// Spoilt has the reasons why the last figures deserve less trust; empty: none
	Spoilt []string
	// History has the share that others and the hypervisor took in the last measurements, 0..1, the
	// newest last.
	History []float64
}

// Texts tells the shares and the drift: "steal 0.2 %", "others 1.3 %", "clock -0.4 %".
func (n Noise) Texts() []string {
	others := fmt.Sprintf("others %.1f %%", 100*n.Others)
	if n.IsRemote {
		others = "others unknown"
	}
	return []string{fmt.Sprintf("steal %.1f %%", 100*n.Steal), others, fmt.Sprintf("clock %+.1f %%", 100*n.Drift)}
}

// Size is the size of a terminal in characters.
type Size struct{ Columns, Rows int }

// The smallest size that a frame is laid out for. On a smaller terminal lines are cut.
const (
	leastColumns = 40
	leastRows    = 8
)

// Lines lays the frame out for a terminal: at most size.Rows lines of at most size.Columns.
func (f Frame) Lines(size Size, now time.Time, isASCII bool) []Line {
	f = f.spelled(isASCII)
	p := page{columns: max(size.Columns, leastColumns), signs: signsOf(isASCII)}
	rows := max(size.Rows, leastRows)
	head := []Line{p.title(f, now), p.bar(f, now)}
	head = append(head, p.answer(f, answerRows(rows))...)
	head = append(head, p.cut(Line{{"now  ", Faint}, {f.Now, Normal}}))
	head = append(head, p.noise(f.Noise)...)
	foot := p.foot(f)
	left := rows - len(head) - len(foot)
	chart := f.Chart.lines(p.signs, p.columns, chartRows(left))
	recent := p.recent(f.Recent, left-len(chart))
	lines := append(append(append(head, chart...), recent...), foot...)
	lines = lines[:min(len(lines), max(size.Rows, 1))]
	for i := range lines {
		lines[i] = page{columns: size.Columns, signs: p.signs}.cut(lines[i])
	}
	return lines
}

// answerRows is the largest number of rows of the answer.
func answerRows(rows int) int {
	switch {
	case rows < 16:
		return 2
	case rows < 30:
		return 4
	}
	return 8
}

// chartRows is the number of rows of the chart among those that it shares with the list: three
// fifths, and none where it would be too low to be read.
func chartRows(left int) int {
	const least, most = 5, 18
	if rows := 3 * left / 5; rows >= least {
		return min(rows, most)
	}
	return 0
}

// page lays out lines of a width.
type page struct {
	columns int
	signs   signs
}

// title has what runs on the left, and the times on the right.
func (p page) title(f Frame, now time.Time) Line {
	return p.sides(Line{{f.Title, Strong}}, timeText(f, now))
}

// timeText tells the time spent and the time left: "1m5s, about 2m left".
func timeText(f Frame, now time.Time) string {
	text := words.Clock(now.Sub(f.Began))
	if !f.Ends.IsZero() {
		text += fmt.Sprintf(", about %s left", words.Clock(max(0, f.Ends.Sub(now))))
	}
	return text
}

// bar is a rule under the title that also shows the elapsed share of the time.
func (p page) bar(f Frame, now time.Time) Line {
	spent, done := now.Sub(f.Began), 0
	if total := f.Ends.Sub(f.Began); !f.Ends.IsZero() && total > 0 {
		done = max(0, min(p.columns, int(float64(p.columns)*float64(spent)/float64(max(total, spent)))))
	}
	return Line{{repeat(p.signs.done, done), Good}, {repeat(p.signs.rest, p.columns-done), Faint}}
}

func (p page) answer(f Frame, rows int) []Line {
	style := Normal
	if f.IsGood {
		style = Good
	}
	var lines []Line
	for _, sentence := range f.Answer {
		for _, text := range p.fold(sentence) {
			lines = append(lines, p.cut(Line{{text, style}}))
		}
		style = Normal
	}
	return lines[:min(rows, len(lines))]
}

// noise is a line with the disturbances of the last measurement, and a second one, in red, while
// they spoil figures.
func (p page) noise(n Noise) []Line {
	if !n.IsKnown {
		return []Line{{{"noise  not measured yet", Faint}}}
	}
	style := Normal
	if len(n.Spoilt) > 0 {
		style = Bad
	}
	lines := []Line{p.cut(Line{{"noise  ", Faint}, {strings.Join(n.Texts(), "  "), style}, {"  " + p.signs.levels(n.History), style}})}
	if len(n.Spoilt) > 0 {
		lines = append(lines, p.cut(Line{{"       " + p.signs.alarm + " " + n.Spoilt[0], Bad}}))
	}
	return lines
}

// recent lists the last measurements that fit. An outcome stands on the right, and is never cut
// before the name of what was measured.
func (p page) recent(entries []Entry, rows int) []Line {
	entries = entries[len(entries)-max(0, min(rows, len(entries))):]
	var lines []Line
	for _, e := range entries {
		style := Normal
		if e.IsBad {
			style = Faint
		}
		outcome := p.signs.shorten(e.Outcome, p.columns*3/5)
		room := p.columns - width(e.Head) - width(outcome) - 1
		text := e.Head + p.signs.shorten(e.Text, room)
		gap := max(1, p.columns-width(text)-width(outcome))
		lines = append(lines, Line{{text, style}, {repeat(" ", gap), Normal}, {outcome, style}})
	}
	return lines
}

// foot has the last message and the keys.
func (p page) foot(f Frame) []Line {
	var lines []Line
	if f.Note != "" {
		lines = append(lines, p.cut(Line{{f.Note, Strong}}))
	}
	if len(f.Keys) == 0 {
		return lines
	}
	var line Line
	for _, k := range f.Keys {
		line = append(line, Span{string(k.Rune), Strong}, Span{" " + k.Text + "   ", Faint})
	}
	return append(lines, p.cut(line))
}

// sides puts a text on the right of a line, which is cut to make room.
func (p page) sides(left Line, right string) Line {
	room := max(0, p.columns-width(right)-1)
	left = page{columns: room, signs: p.signs}.cut(left)
	gap := max(1, p.columns-left.width()-width(right))
	return append(left, Span{repeat(" ", gap), Normal}, Span{right, Normal})
}

// cut shortens a line to the width of the page.
func (p page) cut(l Line) Line {
	room := p.columns
	var cut Line
	for _, s := range l {
		if s.Text == "" {
			continue
		}
		if room <= 0 {
			break
		}
		s.Text = p.signs.shorten(s.Text, room)
		room -= width(s.Text)
		cut = append(cut, s)
	}
	return cut
}
