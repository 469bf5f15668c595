package web

import (
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"tuner/internal/live"
)

// Bounds of what clients can hold. A person watches with a few tabs.
const (
	mostConnections = 64
	mostStreams     = 16
	mostHeader      = 16 << 10 // bytes
	mostBody        = 16       // bytes: the name of a key
)

// Times of a connection.
const (
	readTime  = 10 * time.Second // for a request
	writeTime = 10 * time.Second // for an event or a page, from its first byte to its last
	idleTime  = time.Minute
	beatTime  = 15 * time.Second // between two events, so that a browser that is gone is noticed
	// paceTime is the least time between two frames for a browser. A browser on the measured machine
	// takes CPU time to draw one.
	paceTime = time.Second
)

func bounded(l net.Listener) net.Listener { return netutil.LimitListener(l, mostConnections) }

func (p *Page) newServer() *http.Server {
	return &http.Server{
		Handler: p.handler(), ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
		ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong is their own matter
	}
}

// handler serves the page to those who know its token.
func (p *Page) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.show)
	mux.HandleFunc("GET /events", p.stream)
	mux.HandleFunc("POST /press", p.press)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy":      "frame-ancestors 'none'", // the rest stands in the page
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		if reason := p.refusal(r); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// refusal returns why a request is refused; "" if it is not. A page of another site can make a
// browser send requests here, also under a name of its own that leads to this machine (DNS
// rebinding). Such a request has another Host, or another Origin.
func (p *Page) refusal(r *http.Request) string {
	switch origins := r.Header.Values("Origin"); {
	case !isLoopback(r.Host):
		return "Host must be localhost or a loopback address"
	case len(origins) > 1, len(origins) == 1 && origins[0] != "http://"+r.Host:
		return "a web page of another site may not call this server"
	case subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(p.token)) != 1:
		return "the token is wrong or missing: use the whole address that tuner printed"
	}
	return ""
}

// isLoopback reports whether a Host names this machine, at any port: one that ssh forwards may differ
// from ours.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// show sends the page: the live one, or the report that it has become.
func (p *Page) show(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	text, isReport := p.watch, p.hasBecome()
	if isReport {
		text = p.report
	}
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write(text); err == nil && isReport {
		_ = http.NewResponseController(w).Flush() // it is on its way before the port closes
		p.count(&p.owed, -1)
	}
}

// hasBecome reports whether the page is a report. The caller holds the lock.
func (p *Page) hasBecome() bool { return p.phase == closed && p.report != nil }

// count changes how many browsers there are of a kind. It stays 0 when one fetches the report that was
// not told to.
func (p *Page) count(number *int, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*number = max(0, *number+by)
	select {
	case p.left <- struct{}{}:
	default:
	}
}

// press obeys a key of the frame.
func (p *Page) press(w http.ResponseWriter, r *http.Request) {
	if !p.isControlled || r.Header.Get("Origin") == "" { // every browser sends Origin here, and refusal has checked it
		http.Error(w, "this page is read-only", http.StatusForbidden)
		return
	}
	name, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	p.mu.Lock()
	keys := p.frame.Keys
	p.mu.Unlock()
	i := slices.IndexFunc(keys, func(k live.Key) bool { return string(k.Rune) == string(name) })
	if err != nil || i < 0 {
		http.Error(w, "there is no such key", http.StatusNotFound)
		return
	}
	keys[i].Do()
	w.WriteHeader(http.StatusNoContent)
}

// The last events of a stream.
const (
	becomeEvent = "event: report\ndata: {}\n\n" // the page is to be fetched again
	overEvent   = "event: over\ndata: {}\n\n"   // nothing follows
)

// stream sends frames as events until the browser goes or the page is closed. A browser that reads
// slowly gets the newest frame when it has read the one before.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		http.Error(w, "too many pages watch this run", http.StatusServiceUnavailable)
		return
	}
	defer p.count(&p.streams, -1)
	c := client{http.NewResponseController(w), w}
	_ = c.SetReadDeadline(time.Time{}) // its request is complete
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		p.mu.Lock()
		isOver, becomes, changed := p.phase == closed, p.hasBecome(), p.changed
		p.mu.Unlock()
		if isOver {
			p.last(c, becomes)
			return
		}
		text, err := p.event(time.Now())
		if err != nil || c.send(text) != nil || !c.await(r.Context().Done(), changed) {
			return
		}
	}
}

// enter counts one more browser, unless there are too many.
func (p *Page) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams >= mostStreams {
		return false
	}
	p.streams++
	return true
}

// last sends the last event of a stream. A browser that gets the first of the two fetches the report.
func (p *Page) last(c client, becomes bool) {
	if !becomes {
		_ = c.send([]byte(overEvent)) // a browser that is gone needs no event
		return
	}
	p.count(&p.owed, 1)
	if c.send([]byte(becomeEvent)) != nil {
		p.count(&p.owed, -1)
	}
}

// client is the browser at the end of a stream.
type client struct {
	*http.ResponseController
	out io.Writer
}

func (c client) send(text []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := c.out.Write(text); err != nil {
		return err
	}
	return c.Flush()
}

// await waits for a change, and reports false if the browser is gone. It waits paceTime at least.
func (c client) await(gone, changed <-chan struct{}) bool {
	pace := time.NewTimer(paceTime)
	defer pace.Stop()
	select {
	case <-gone:
		return false
	case <-pace.C:
	}
	beats := time.NewTicker(beatTime)
	defer beats.Stop()
	for {
		select {
		case <-gone:
			return false
		case <-changed:
			return true
		case <-beats.C:
			if c.send([]byte(": still here\n\n")) != nil {
				return false
			}
		}
	}
}
