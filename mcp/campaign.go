package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"tuner/analyze"
	"tuner/internal/children"
	"tuner/internal/exit"
	"tuner/spec"
)

const (
	// patience is the time after which a campaign that was told to end is killed. It ends its window,
	// and writes results in a few seconds. A client that closes its side kills this process after
	// some seconds, too.
	patience = 20 * time.Second
	// firstLook is the time for which a call waits for a mistake of a campaign that it started. Wrong
	// files and flags are found within a second.
	firstLook = 2 * time.Second
)

// campaign is a run of `tuner run` in a child process.
type campaign struct {
	id       string
	analysis spec.Analyze // what it will report of which folder, and where
	budget   time.Duration
	cmd      *exec.Cmd
	log      log
	started  time.Time
	ended    chan struct{} // closed at the end

	mu       sync.Mutex
	stopping bool
	err      error         // of the process, after its end
	took     time.Duration // of the process, after its end

	ranking sync.Mutex
	ranked  struct { // what was measured when the journal had this size
		size   int64
		result analyze.Result
		err    error
	}
}

// launch starts a campaign, unless one is running.
func (s *server) launch(a spec.Analyze, budget time.Duration, args []string) (*campaign, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last(); last != nil && last.isRunning() {
		return nil, fmt.Errorf("%s is running, and a second campaign would disturb its measurements; wait for its end with campaign_status, or end it with stop_campaign", last.id)
	}
	if s.isClosed() {
		return nil, errors.New("the session has ended")
	}
	c := &campaign{
		id: fmt.Sprintf("campaign-%d", len(s.campaigns)+1), analysis: a, budget: budget, ended: make(chan struct{}),
		log: log{Tail: children.Tail{IsGo: true}}, started: time.Now(),
	}
	c.cmd = s.command(context.Background(), args...) // it outlives the call; endCampaigns ends it
	c.cmd.Stdout, c.cmd.Stderr = &limited{most: mostText}, &c.log
	ended, err := children.Start(c.cmd)
	if err != nil {
		return nil, fmt.Errorf("cannot start tuner: %w", err)
	}
	go c.follow(ended)
	s.campaigns = append(s.campaigns, c)
	return c, nil
}

// follow waits for the end of the process, and of its group. launch starts it, and endCampaigns
// waits for it.
func (c *campaign) follow(ended <-chan error) {
	err := <-ended
	_ = children.Signal(c.cmd, syscall.SIGKILL) // fails if no process remains
	c.mu.Lock()
	c.err, c.took = err, time.Since(c.started)
	c.mu.Unlock()
	close(c.ended)
}

// last returns the campaign that was started last; nil without one.
func (s *server) last() *campaign {
	if len(s.campaigns) == 0 {
		return nil
	}
	return s.campaigns[len(s.campaigns)-1]
}

// campaign returns the campaign with an id, and without an id the last one.
func (s *server) campaign(id string) (*campaign, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		if c := s.last(); c != nil {
			return c, nil
		}
		return nil, errors.New("no campaign was started in this session; start_campaign starts one, and read_answer reads the folder of an earlier one")
	}
	var known []string
	for _, c := range s.campaigns {
		if c.id == id {
			return c, nil
		}
		known = append(known, c.id)
	}
	return nil, fmt.Errorf("there is no campaign %q in this session (%s); read_answer reads the folder of an earlier one", id, orNone(known))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none was started"
	}
	return "known: " + strings.Join(list, ", ")
}

func (c *campaign) isRunning() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// wait waits for the end of a campaign, at most for a time. It returns earlier when the call is
// cancelled or the client has gone.
func (s *server) wait(ctx context.Context, c *campaign, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	case <-ctx.Done():
	case <-s.closed:
	}
}

// stop asks a campaign to end and to keep what it measured, as Ctrl-C does.
func (c *campaign) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || !c.isRunning() { // a second signal would end it at once
		return
	}
	c.stopping = true
	_ = children.Signal(c.cmd, syscall.SIGINT) // fails if it has ended
}

// endCampaigns ends the campaign that is running. It returns when its process has ended.
func (s *server) endCampaigns() {
	s.mu.Lock()
	c := s.last()
	s.mu.Unlock()
	if c == nil {
		return
	}
	c.stop()
	select {
	case <-c.ended:
	case <-time.After(patience):
		_ = children.Signal(c.cmd, syscall.SIGKILL) // fails if it has ended
		<-c.ended
	}
}

// outcome returns the exit code of a campaign that has ended, and its message if it failed.
func (c *campaign) outcome() (code int, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return exit.OK, nil
	}
	code = exit.Failure
	var ended *exec.ExitError
	if errors.As(c.err, &ended) && ended.Exited() {
		code = ended.ExitCode()
	}
	return code, verbError(&c.log.Tail, c.err)
}

// elapsed returns the time since the start, or until the end.
func (c *campaign) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.took > 0 {
		return c.took
	}
	return time.Since(c.started)
}

func (c *campaign) isStopping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// log keeps the last lines of a run, and the step that began last.
type log struct {
	children.Tail
	mu   sync.Mutex
	part []byte // of the line without an end, its beginning
	step string
}

// stepLine is a line with which `tuner run` begins a step: "4/7 configuration search".
var stepLine = regexp.MustCompile(`^\d/\d [a-z ]+$`)

// longestStep is the length of such a line, in bytes, beyond which a line is none.
const longestStep = 60

// Write never fails.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, isWhole := bytes.Cut(rest, []byte("\n"))
		l.part = append(l.part, line[:min(len(line), longestStep-min(len(l.part), longestStep))]...)
		if isWhole {
			if len(l.part) < longestStep && stepLine.Match(l.part) {
				l.step = string(l.part)
			}
			l.part = l.part[:0]
		}
		rest = after
	}
	return l.Tail.Write(p)
}

// current returns the step that began last; "" before the first one.
func (l *log) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.step
}
