package web

import (
	"bytes"
	"embed"
	"fmt"
	"math"
	"strings"
	"time"

	json "github.com/go-json-experiment/json/v1"

	"tuner/internal/live"
	"tuner/internal/terminal"
	"tuner/internal/webpage"
)

//go:embed assets
var assets embed.FS

// livePage returns the page that shows frames. It has no content of its own: its script asks for it.
func livePage() ([]byte, error) {
	var b bytes.Buffer
	source := webpage.Source{Files: assets, Template: "watch.html", Style: "watch.css", Scripts: []string{"watch.js"}, IsServed: true}
	err := webpage.Write(&b, source, struct{}{}, func(parts webpage.Parts) any { return parts })
	return b.Bytes(), err
}

// document is a frame for the page's script. All texts are ready to be shown.
type document struct {
	Title  string   `json:"title"`
	Answer []string `json:"answer"`
	IsGood bool     `json:"good"` // the answer can be deployed
	Now    string   `json:"now"`
	Note   string   `json:"note"`
	// X and Y are the metrics of the points, and Limit is the upper one of Y; 0: none
	X          metric   `json:"x"`
	Y          metric   `json:"y"`
	Limit      float64  `json:"limit"`
	IsTradeoff bool     `json:"tradeoff"` // as live.Chart has it
	Marks      marks    `json:"marks"`
	Points     []point  `json:"points"`
	Noise      *noise   `json:"noise"`  // null: not measured yet
	Heads      []string `json:"heads"`  // of the columns of recent
	Recent     []entry  `json:"recent"` // the newest first
	Keys       []key    `json:"keys"`   // of a controlled page
	IsDone     bool     `json:"done"`   // nothing more is measured
}

type metric struct {
	Label string `json:"label"`
	Unit  string `json:"unit"`
}

// marks says what each look of points means; "": there are no such points.
type marks struct {
	Kept   string `json:"kept"`
	Missed string `json:"missed"`
	Best   string `json:"best"`
}

type point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Text string  `json:"text"`
	Look string  `json:"look"` // kept, missed or best
}

type noise struct {
	Texts   []string  `json:"texts"` // of the last measurement
	Spoilt  []string  `json:"spoilt"`
	History []float64 `json:"history"` // shares, 0..1
}

type entry struct {
	Head    string `json:"head"` // number and time
	Text    string `json:"text"`
	Outcome string `json:"outcome"`
	IsBad   bool   `json:"bad"`
}

type key struct {
	Name string `json:"name"` // what a browser sends to press it
	Text string `json:"text"`
}

// newDocument describes a frame. Texts of others, such as names of models, must not turn the
// direction of writing.
func newDocument(f live.Frame, p phase, isControlled bool) document {
	d := document{
		Title: terminal.Plain(f.Title), Answer: []string{}, IsGood: f.IsGood, Now: terminal.Plain(f.Now), Note: terminal.Plain(f.Note),
		X: metric{f.Chart.X.Name, f.Chart.X.Unit}, Y: metric{f.Chart.Y.Name, f.Chart.Y.Unit}, Limit: f.Chart.Limit, IsTradeoff: f.Chart.IsTradeoff,
		Marks: marks(f.Chart.Marks), Points: []point{}, Heads: []string{f.Heads.Count + " · time", f.Heads.Text, f.Heads.Outcome}, Recent: []entry{},
		Keys: []key{}, IsDone: p != running,
	}
	for _, sentence := range f.Answer {
		d.Answer = append(d.Answer, terminal.Plain(sentence))
	}
	for _, p := range f.Chart.Points {
		if sum := p.X + p.Y; !math.IsNaN(sum) && !math.IsInf(sum, 0) { // JSON has no others
			d.Points = append(d.Points, point{p.X, p.Y, terminal.Plain(p.Text), look(p)})
		}
	}
	if f.Noise.IsKnown {
		d.Noise = newNoise(f.Noise)
	}
	for i := len(f.Recent) - 1; i >= 0; i-- {
		e := f.Recent[i]
		d.Recent = append(d.Recent, entry{strings.Join(strings.Fields(terminal.Plain(e.Head)), " · "), terminal.Plain(e.Text), terminal.Plain(e.Outcome), e.IsBad})
	}
	if isControlled {
		for _, k := range f.Keys {
			d.Keys = append(d.Keys, key{string(k.Rune), k.Text})
		}
	}
	return d
}

func look(p live.Point) string {
	switch {
	case p.IsBest:
		return "best"
	case p.IsKept:
		return "kept"
	}
	return "missed"
}

func newNoise(n live.Noise) *noise {
	d := noise{Texts: n.Texts(), Spoilt: []string{}, History: n.History}
	for _, reason := range n.Spoilt {
		d.Spoilt = append(d.Spoilt, terminal.Plain(reason))
	}
	return &d
}

// encoded is a frame as JSON.
type encoded struct {
	version int
	text    []byte
}

// event returns the newest frame as an event for a stream of the form text/event-stream. A frame is
// encoded once for all browsers; the times are those of now.
func (p *Page) event(now time.Time) ([]byte, error) {
	p.encoding.Lock()
	defer p.encoding.Unlock()
	p.mu.Lock()
	frame, phase, version := p.frame, p.phase, p.version
	p.mu.Unlock()
	if p.encoded.version != version {
		text, err := json.Marshal(newDocument(frame, phase, p.isControlled))
		if err != nil {
			return nil, fmt.Errorf("cannot encode a frame: %w", err)
		}
		p.encoded = encoded{version, text}
	}
	left := "null"
	if !frame.Ends.IsZero() {
		left = fmt.Sprintf("%.1f", max(0, frame.Ends.Sub(now)).Seconds())
	}
	return fmt.Appendf(nil, "event: frame\ndata: {\"spent\":%.1f,\"left\":%s,\"frame\":%s}\n\n", now.Sub(frame.Began).Seconds(), left, p.encoded.text), nil
}
