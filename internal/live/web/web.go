// Package web shows a campaign, a gate or a sweep in browsers while it runs. A Page takes the same frames
// as the screen of package live, and a server at a loopback port sends the newest one to every browser
// that knows the token. At the end the page becomes the report.
//
// In the data flow it is last, as package live is. It knows nothing of what runs and of no report, and no
// client can hold up what calls it: a slow one gets fewer frames.
package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tuner/internal/live"
)

// Page is a page that shows frames. Between Open and Show it is an ordinary output for messages.
// All methods may be called from any goroutine, and none waits for a client except End.
type Page struct {
	out          io.Writer // for messages
	token        string
	isControlled bool   // it obeys keys
	watch        []byte // the page that shows frames
	listener     net.Listener
	server       *http.Server
	serving      sync.WaitGroup

	mu      sync.Mutex
	frame   live.Frame
	phase   phase
	report  []byte        // what the page becomes when it is closed; nil: nothing
	version int           // of frame and phase
	changed chan struct{} // closed when the version changes
	streams int           // browsers that get frames
	owed    int           // browsers that were told of the report and have not fetched it
	left    chan struct{} // wakes End when one of the two is less

	encoding sync.Mutex
	encoded  encoded // the newest frame, for all browsers
}

// phase is a part of a page's life.
type phase int

const (
	unshown phase = iota // nobody knows its address
	running
	ended  // nothing more is measured
	closed // there will be no other frame
)

// Open takes a loopback port; 0 is any free one. out receives messages for people. A controlled page
// obeys the frame's keys, any other one is read-only. The caller must call End.
func Open(port int, isControlled bool, out io.Writer) (*Page, error) {
	listener, err := listen(port)
	if err != nil {
		return nil, err
	}
	p, err := newPage(listener, isControlled, out)
	if err != nil {
		_ = listener.Close()
	}
	return p, err
}

func newPage(listener net.Listener, isControlled bool, out io.Writer) (*Page, error) {
	text, err := livePage()
	if err != nil {
		return nil, err
	}
	return &Page{
		out: out, token: rand.Text(), isControlled: isControlled, watch: text, listener: listener,
		changed: make(chan struct{}), left: make(chan struct{}, 1),
	}, nil
}

// listen takes a port on the loopback address of IPv4, or of IPv6 on a machine without the other.
func listen(port int) (net.Listener, error) {
	number := strconv.Itoa(port)
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", number))
	if err == nil || errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		return listener, err
	}
	return net.Listen("tcp6", net.JoinHostPort("::1", number))
}

// Address is the page's URL. Whoever has it sees the page.
func (p *Page) Address() string {
	return fmt.Sprintf("http://%s/?token=%s", p.listener.Addr(), p.token)
}

// Write prints a message, which the page shows, too.
func (p *Page) Write(text []byte) (int, error) {
	if last := strings.TrimSpace(string(text)); last != "" {
		p.Update(func(f *live.Frame) { f.Note = last[strings.LastIndexByte(last, '\n')+1:] })
	}
	return p.out.Write(text)
}

// Show begins to show the frames of a run. The first time it also begins to serve, and prints the page's
// address.
func (p *Page) Show(f live.Frame) error {
	p.mu.Lock()
	isFirst := p.phase == unshown
	p.frame, p.phase, p.report = f, running, nil
	p.change()
	p.mu.Unlock()
	if !isFirst {
		return nil
	}
	p.server = p.newServer()
	p.serving.Go(func() { _ = p.server.Serve(bounded(p.listener)) }) // it ends with an error, always
	_, err := fmt.Fprintf(p.out, "watch at %s\n", p.Address())
	return err
}

// Update changes the frame.
func (p *Page) Update(edit func(*live.Frame)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == running || p.phase == ended {
		edit(&p.frame)
		p.change()
	}
}

// Close says that nothing more is measured.
func (p *Page) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == running {
		p.phase = ended
		p.frame.Now, p.frame.Note, p.frame.Ends, p.frame.Keys = "all is measured", "", time.Time{}, nil
		p.change()
	}
}

// Become gives the page the report that it becomes at the end. It writes nothing if nothing was
// shown.
func (p *Page) Become(write func(io.Writer) error) error {
	p.mu.Lock()
	isEnded := p.phase == ended
	p.mu.Unlock()
	if !isEnded {
		return nil
	}
	var report bytes.Buffer
	if err := write(&report); err != nil {
		return fmt.Errorf("cannot show the report in the browser: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = report.Bytes()
	return nil
}

// Times of the end.
const (
	// fetchTime is the longest time for browsers to fetch the report: a suspended one may never do so.
	fetchTime = 10 * time.Second
	closeTime = time.Second // for what is being sent
)

// End gives the port back once every browser that watches has the report, or knows that none
// follows.
func (p *Page) End() {
	p.mu.Lock()
	isServed := p.phase != unshown
	p.phase = closed
	p.change()
	p.mu.Unlock()
	if !isServed {
		_ = p.listener.Close()
		return
	}
	p.awaitFetches(fetchTime)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
	p.serving.Wait()
}

// awaitFetches waits until no browser watches, and all have fetched the report.
func (p *Page) awaitFetches(longest time.Duration) {
	over := time.NewTimer(longest)
	defer over.Stop()
	for {
		p.mu.Lock()
		waits := p.streams+p.owed > 0
		p.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-p.left:
		case <-over.C:
			return
		}
	}
}

// change tells all who wait that something has changed. The caller holds the lock.
func (p *Page) change() {
	p.version++
	close(p.changed)
	p.changed = make(chan struct{})
}
