package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tuner/internal/live"
)

// pipes is a listener in memory, for tests on a virtual clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8321} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// shown returns a page that shows a frame, and its listener.
func shown(t *testing.T) (*Page, pipes) {
	t.Helper()
	l := pipes{make(chan net.Conn), make(chan struct{})}
	p, err := newPage(l, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Show(frame()); err != nil {
		t.Fatal(err)
	}
	return p, l
}

// browser is a client with one connection.
type browser struct {
	conn net.Conn
	in   *bufio.Reader
}

func newBrowser(l pipes) browser {
	conn := l.dial()
	return browser{conn, bufio.NewReader(conn)}
}

// ask sends a request and returns the answer's head.
func (b browser) ask(t *testing.T, p *Page, path string) *http.Response {
	t.Helper()
	fmt.Fprintf(b.conn, "GET %s?token=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path, p.token)
	answer, err := http.ReadResponse(b.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// stream begins a stream of events.
func (b browser) stream(t *testing.T, p *Page) *bufio.Reader {
	t.Helper()
	answer := b.ask(t, p, "/events")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %s, %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	return bufio.NewReader(answer.Body)
}

// next returns the next event of a stream.
func next(t *testing.T, events *bufio.Reader) string {
	t.Helper()
	text := ""
	for !strings.HasSuffix(text, "\n\n") {
		line, err := events.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		text += line
	}
	return text
}

func note(p *Page, text string) { p.Update(func(f *live.Frame) { f.Note = text }) }

// Only who knows the token, and is no page of another site, gets an answer.
func TestRefusals(t *testing.T) {
	t.Parallel()
	l := pipes{make(chan net.Conn), make(chan struct{})}
	p, err := newPage(l, true, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	pressed := 0
	p.phase, p.frame = closed, frame()
	p.frame.Keys[0].Do = func() { pressed++ }
	token := "?token=" + p.token
	check := func(want int, method, target, host, origin, body string) {
		t.Helper()
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		p.handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s %s of Host %q, Origin %q: status %d, want %d: %s", method, target, host, origin, w.Code, want, w.Body)
		}
		if h := w.Header(); h.Get("Content-Security-Policy") == "" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", h)
		}
		if strings.Contains(w.Body.String(), p.token) {
			t.Errorf("%s %s tells the token", method, target)
		}
	}
	const own = "127.0.0.1:8321"
	for _, path := range []string{"/", "/events", "/press", "/other"} {
		for _, wrong := range []string{"", "?token=", "?token=" + strings.Repeat("A", len(p.token)), token + "A", token[:len(token)-1], "?Token=" + p.token} {
			check(403, "GET", path+wrong, own, "", "")
			check(403, "POST", path+wrong, own, "http://"+own, "s")
		}
		for _, host := range []string{"", "rebound.example", "rebound.example:8321", "10.0.0.1:8321", "localhost.rebound.example", "0.0.0.0:8321", "127.0.0.1.rebound.example:8321"} {
			check(403, "GET", path+token, host, "", "")
		}
		for _, origin := range []string{"null", "http://foreign.example", "https://" + own, "http://localhost:8321", "http://127.0.0.1:1"} {
			check(403, "GET", path+token, own, origin, "")
			check(403, "POST", path+token, own, origin, "s")
		}
	}
	for _, host := range []string{own, "localhost", "localhost:9000", "[::1]:8321", "[::1]", "127.0.0.1"} { // 9000: forwarded by ssh
		check(200, "GET", "/"+token, host, "", "")
		check(200, "GET", "/"+token, host, "http://"+host, "")
	}
	check(200, "GET", "/events"+token, own, "", "")
	check(404, "GET", "/other"+token, own, "", "")
	check(405, "POST", "/"+token, own, "http://"+own, "")
	check(405, "GET", "/press"+token, own, "", "")
	if pressed > 0 {
		t.Error("a refused request pressed a key")
	}
	check(403, "POST", "/press"+token, own, "", "s")
	check(404, "POST", "/press"+token, own, "http://"+own, "x")
	check(404, "POST", "/press"+token, own, "http://"+own, strings.Repeat("s", 1<<20))
	check(204, "POST", "/press"+token, own, "http://"+own, "s")
	p.isControlled = false
	check(403, "POST", "/press"+token, own, "http://"+own, "s")
	if pressed != 1 {
		t.Errorf("the key was pressed %d times, want 1", pressed)
	}
}

// A browser gets the newest frame, once a second at most, and a sign of life without any.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		b := newBrowser(l)
		events := b.stream(t, p)
		if text := next(t, events); !strings.HasPrefix(text, "event: frame\ndata: {") || !strings.Contains(text, "cnn within") {
			t.Errorf("the first event is %q", text)
		}
		began := time.Now()
		for i := range 100 {
			note(p, fmt.Sprint("note ", i, "!"))
		}
		if text := next(t, events); !strings.Contains(text, "note 99!") || time.Since(began) != paceTime {
			t.Errorf("after %s: %q", time.Since(began), text)
		}
		began = time.Now()
		if text := next(t, events); text != ": still here\n\n" || time.Since(began) != paceTime+beatTime {
			t.Errorf("after %s: %q", time.Since(began), text)
		}
		b.conn.Close()
		p.End()
	})
}

// A browser that reads nothing holds up nobody, and loses its connection.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		slow, quick := newBrowser(l), newBrowser(l)
		fmt.Fprintf(slow.conn, "GET /events?token=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", p.token)
		began := time.Now()
		for i := range 1000 {
			note(p, fmt.Sprint("note ", i))
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the campaign waited %s", waited)
		}
		if text := next(t, quick.stream(t, p)); !strings.Contains(text, "note 999") || time.Since(began) != 0 {
			t.Errorf("another browser got %q after %s", text, time.Since(began))
		}
		quick.conn.Close()
		time.Sleep(writeTime + time.Nanosecond)
		synctest.Wait()
		p.mu.Lock()
		if p.streams > 0 {
			t.Errorf("%d streams, want none", p.streams)
		}
		p.mu.Unlock()
		slow.conn.Close()
		p.End()
	})
}

// Streams are bounded, and a place that is left is free again.
func TestMostStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		var all []browser
		for range mostStreams {
			b := newBrowser(l)
			next(t, b.stream(t, p))
			all = append(all, b)
		}
		more := newBrowser(l)
		if answer := more.ask(t, p, "/events"); answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %s", answer.Status)
		}
		more.conn.Close()
		all[0].conn.Close()
		synctest.Wait()
		again := newBrowser(l)
		next(t, again.stream(t, p))
		for _, b := range append(all, again) {
			b.conn.Close()
		}
		p.End()
	})
}

// Connections are bounded: one more is not read.
func TestMostConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		for range mostConnections {
			defer l.dial().Close()
		}
		synctest.Wait()
		select {
		case l.conns <- nil:
			t.Error("one more was accepted")
		default:
		}
		time.Sleep(readTime) // they send nothing, and lose their places
		b := newBrowser(l)
		if answer := b.ask(t, p, "/"); answer.StatusCode != http.StatusOK {
			t.Errorf("status %s", answer.Status)
		}
		b.conn.Close()
		p.End()
	})
}

// end runs End, and returns a function that waits for it and tells how long it took.
func end(p *Page) func() time.Duration {
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		p.End()
	}()
	return func() time.Duration {
		<-done
		return time.Since(began)
	}
}

// At the end each browser gets the report, and the port stays until all have it.
func TestEndWaitsForTheReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		browsers := []browser{newBrowser(l), newBrowser(l)}
		var streams []*bufio.Reader
		for _, b := range browsers {
			streams = append(streams, b.stream(t, p))
			next(t, streams[len(streams)-1])
		}
		p.Close()
		if err := p.Become(func(w io.Writer) error { _, err := io.WriteString(w, "the report"); return err }); err != nil {
			t.Fatal(err)
		}
		other := newBrowser(l)
		if text, _ := io.ReadAll(other.ask(t, p, "/").Body); string(text) == "the report" {
			t.Error("the page is the report before the end")
		}
		other.conn.Close()
		wait := end(p)
		for i, b := range browsers {
			text := ""
			for text != becomeEvent {
				text = next(t, streams[i])
			}
			if _, err := streams[i].ReadByte(); err != io.EOF {
				t.Errorf("after the last event: %v", err)
			}
			time.Sleep(time.Second) // it loads the page again
			if text, err := io.ReadAll(b.ask(t, p, "/").Body); string(text) != "the report" || err != nil {
				t.Errorf("it became %q, %v", text, err)
			}
			b.conn.Close()
		}
		if waited := wait(); waited >= fetchTime {
			t.Errorf("it waited %s", waited)
		}
		select {
		case <-l.closed:
		default:
			t.Error("the port is still open")
		}
	})
}

// A browser that never fetches the report is not waited for longer than fetchTime.
func TestEndOfASuspendedBrowser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		b := newBrowser(l)
		events := b.stream(t, p)
		next(t, events)
		p.Close()
		if err := p.Become(func(w io.Writer) error { _, err := io.WriteString(w, "the report"); return err }); err != nil {
			t.Fatal(err)
		}
		wait := end(p)
		for next(t, events) != becomeEvent {
		}
		if _, err := events.ReadByte(); err != io.EOF {
			t.Errorf("after the last event: %v", err)
		}
		if waited := wait(); waited != fetchTime {
			t.Errorf("it waited %s, want %s", waited, fetchTime)
		}
		b.conn.Close()
	})
}

// Without a report, browsers are told that nothing follows. Without browsers nothing is waited for.
func TestEndWithoutReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, l := shown(t)
		b := newBrowser(l)
		events := b.stream(t, p)
		next(t, events)
		wait := end(p)
		text := ""
		for text != overEvent {
			text = next(t, events)
		}
		if _, err := events.ReadByte(); err != io.EOF {
			t.Errorf("after the last event: %v", err)
		}
		if waited := wait(); waited >= paceTime+closeTime {
			t.Errorf("it waited %s", waited)
		}
		b.conn.Close()
		lone, _ := shown(t)
		if waited := end(lone)(); waited != 0 {
			t.Errorf("without browsers it waited %s", waited)
		}
	})
}
