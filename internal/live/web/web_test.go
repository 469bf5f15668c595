package web

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	json "github.com/go-json-experiment/json/v1"
	markup "golang.org/x/net/html"

	"tuner/internal/live"
	"tuner/internal/webpage/webpagetest"
)

func TestAssets(t *testing.T) {
	t.Parallel()
	webpagetest.CheckAssets(t, assets, "watch.html", "watch.css", "watch.js")
}

// The page runs its own script alone, and asks nobody but its server.
func TestPageIsSelfContained(t *testing.T) {
	t.Parallel()
	text, err := livePage()
	if err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	webpagetest.CheckSelfContained(t, root)
	if !strings.Contains(string(text), "connect-src &#39;self&#39;") || strings.Count(string(text), "-src") != 5 {
		t.Errorf("the policy does not end with connect-src 'self': %s", text[:600])
	}
}

// A page listens on loopback alone, and its token has 128 bits at least.
func TestOpen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	open := func() *Page {
		p, err := Open(0, false, &out)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.End)
		return p
	}
	one, two := open(), open()
	if address := one.listener.Addr().(*net.TCPAddr); !address.IP.IsLoopback() {
		t.Errorf("it listens on %s", address)
	}
	const bitsOfLetter = 5 // base32
	if bits := len(one.token) * bitsOfLetter; bits < 128 || one.token == two.token {
		t.Errorf("tokens of %d bits: %q, %q", bits, one.token, two.token)
	}
	if out.Len() > 0 {
		t.Errorf("a page that nobody may see yet printed %q", out.String())
	}
	taken := one.listener.Addr().(*net.TCPAddr).Port
	if p, err := Open(taken, false, io.Discard); err == nil {
		p.End()
		t.Errorf("port %d was opened twice", taken)
	}
	if err := one.Show(frame()); err != nil {
		t.Fatal(err)
	}
	one.Show(frame()) // the next campaign of a file
	if want := "watch at " + one.Address() + "\n"; out.String() != want {
		t.Errorf("it printed %q, want %q", out.String(), want)
	}
	answer, err := http.Get(one.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(text, one.watch) || answer.StatusCode != http.StatusOK {
		t.Errorf("status %d, error %v, %d bytes of the page, want %d", answer.StatusCode, err, len(text), len(one.watch))
	}
}

// frame is a frame in the middle of a campaign.
func frame() live.Frame {
	return live.Frame{
		Title: "cnn within p99 ≤ 30 ms", Answer: []string{"Best so far: …"}, IsGood: true, Now: "searching", Began: time.Now(),
		Chart: live.Chart{
			X: live.Axis{Name: "throughput", Unit: "infer/s"}, Y: live.Axis{Name: "p99", Unit: "s"}, Limit: 0.03, IsTradeoff: true,
			Marks:  live.Marks{Kept: "k", Missed: "m", Best: "b"},
			Points: []live.Point{{X: 1, Y: 2, Text: "default"}, {X: 3, Y: 4, IsKept: true}, {X: 5, Y: 6, IsKept: true, IsBest: true}},
		},
		Noise:  live.Noise{IsKnown: true, Steal: 0.002, Others: 0.013, Drift: -0.004, Spoilt: []string{"loud"}, History: []float64{0.5}},
		Heads:  live.Heads{Count: "Trial", Text: "Load", Outcome: "Outcome"},
		Recent: []live.Entry{{Head: "   1     3s  ", Text: "default", Outcome: "a"}, {Head: "   2     4s  ", Text: "other", Outcome: "b", IsBad: true}},
		Keys:   []live.Key{{Rune: 's', Text: "stop and keep"}},
	}
}

// The script gets all of a frame, in the order in which it shows it.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(newDocument(frame(), running, true))
	const want = `{"title":"cnn within p99 ≤ 30 ms","answer":["Best so far: …"],"good":true,"now":"searching","note":"",` +
		`"x":{"label":"throughput","unit":"infer/s"},"y":{"label":"p99","unit":"s"},"limit":0.03,"tradeoff":true,"marks":{"kept":"k","missed":"m","best":"b"},` +
		`"points":[{"x":1,"y":2,"text":"default","look":"missed"},{"x":3,"y":4,"text":"","look":"kept"},{"x":5,"y":6,"text":"","look":"best"}],` +
		`"noise":{"texts":["steal 0.2 %","others 1.3 %","clock -0.4 %"],"spoilt":["loud"],"history":[0.5]},"heads":["Trial · time","Load","Outcome"],` +
		`"recent":[{"head":"2 · 4s","text":"other","outcome":"b","bad":true},{"head":"1 · 3s","text":"default","outcome":"a","bad":false}],` +
		`"keys":[{"name":"s","text":"stop and keep"}],"done":false}`
	if string(text) != want || err != nil {
		t.Errorf("error %v, document\n%s\nwant\n%s", err, text, want)
	}
	first, err := json.Marshal(newDocument(live.Frame{}, ended, false))
	if want := `"points":[],"noise":null,"heads":[" · time","",""],"recent":[],"keys":[],"done":true}`; !strings.HasSuffix(string(first), want) || err != nil {
		t.Errorf("error %v, an empty frame is %s", err, first)
	}
	if keys := newDocument(frame(), running, false).Keys; len(keys) > 0 {
		t.Errorf("a page that obeys no key has %v", keys)
	}
}

// No text ends an event or turns the direction of writing, and no number breaks the JSON.
func TestHostileFrame(t *testing.T) {
	t.Parallel()
	p := &Page{frame: frame(), phase: running}
	p.version++
	p.frame.Title = "a\n\nevent: report\ndata: {}\n\n\u202eb"
	p.frame.Recent[0].Text = "\x1b[2J\r\n\r\n"
	p.frame.Chart.Points = []live.Point{{X: math.NaN(), Y: 1}, {X: 1, Y: math.Inf(1)}, {X: 1, Y: 1}}
	text, err := p.event(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 4 || lines[0] != "event: frame" || lines[2]+lines[3] != "" || strings.ContainsAny(string(text), "\r\u202e\x1b") {
		t.Fatalf("the event is %q", text)
	}
	var state struct{ Frame document }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "data: ")), &state); err != nil || len(state.Frame.Points) != 1 {
		t.Errorf("error %v, points %v", err, state.Frame.Points)
	}
}

// Times are those of the moment in which they are sent, also of a frame that was encoded before.
func TestEventHasTheTimesOfNow(t *testing.T) {
	t.Parallel()
	p := &Page{frame: frame(), phase: running, version: 1}
	p.frame.Ends = p.frame.Began.Add(10 * time.Second)
	for after, want := range map[time.Duration]string{
		4 * time.Second:  `data: {"spent":4.0,"left":6.0,"frame":{`,
		12 * time.Second: `data: {"spent":12.0,"left":0.0,"frame":{`,
	} {
		if text, err := p.event(p.frame.Began.Add(after)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("error %v, %.80q, want %s", err, text, want)
		}
	}
	p.frame.Ends = time.Time{}
	if text, _ := p.event(p.frame.Began); !strings.Contains(string(text), `"left":null,`) {
		t.Errorf("without a known end: %.80q", text)
	}
}

// A message is printed, and is the page's note.
func TestMessages(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Page{out: &out, frame: frame(), phase: running, changed: make(chan struct{})}
	for _, text := range []string{"one\ntwo\n", "\n"} {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("wrote %d bytes of %q: %v", n, text, err)
		}
	}
	if p.frame.Note != "two" || out.String() != "one\ntwo\n\n" {
		t.Errorf("note %q, output %q", p.frame.Note, out.String())
	}
}

// A report is only made for a page that was shown, and a failure says what failed.
func TestBecome(t *testing.T) {
	t.Parallel()
	p := &Page{changed: make(chan struct{})}
	fails := func(io.Writer) error { return errors.New("no journal") }
	if err := p.Become(fails); err != nil {
		t.Errorf("before the campaign: %v", err)
	}
	p.phase = running
	p.Close()
	if err := p.Become(fails); err == nil || err.Error() != "cannot show the report in the browser: no journal" {
		t.Errorf("error %v", err)
	}
	p.Update(func(f *live.Frame) { f.Note = "5/7 optimize" })
	if f := p.frame; f.Now != "all is measured" || len(f.Keys) > 0 || f.Note != "5/7 optimize" {
		t.Errorf("after the campaign: %+v", f)
	}
}
