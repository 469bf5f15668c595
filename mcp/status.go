package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tuner/analyze"
	"tuner/profile/journal"
	"tuner/report/figures"
)

const (
	// mostWait is the longest wait of campaign_status, in seconds. Clients give up a call after a
	// minute or a few, unless they get progress.
	mostWait = 600
	// pace is the time between two messages of progress.
	pace = 5 * time.Second
	// recent is the number of lines of a run that a status has.
	recent = 6
)

// The states of a campaign.
const (
	stateRunning  = "running"
	stateStopping = "stopping" // it was told to end, and writes results
	stateEnded    = "ended"
	stateFailed   = "failed"
)

type statusIn struct {
	ID   string `json:"id,omitempty" jsonschema:"id of the campaign; default the one that was started last"`
	Wait int    `json:"wait_seconds,omitempty" jsonschema:"seconds to wait for the end; default 0"`
}

type stopIn struct {
	ID string `json:"id,omitempty" jsonschema:"id of the campaign; default the one that was started last"`
}

type statusOut struct {
	ID      string   `json:"id"`
	State   string   `json:"state" jsonschema:"running, stopping, ended or failed"`
	Output  string   `json:"output" jsonschema:"folder of the results, for read_answer and export"`
	Step    string   `json:"step,omitempty" jsonschema:"step of seven that began last"`
	Elapsed float64  `json:"elapsed_seconds"`
	Budget  float64  `json:"budget_seconds" jsonschema:"time for the search; preparation and reports take more; 0: no limit in time"`
	Trials  int      `json:"trials" jsonschema:"measurements so far, those of earlier runs in the folder included"`
	Failed  int      `json:"failed_trials"`
	Answer  *answer  `json:"answer,omitempty" jsonschema:"the answer so far; absent while nothing was measured"`
	Exit    *int     `json:"exit_code,omitempty" jsonschema:"exit code of tuner run after its end: 0 done, 5 nothing satisfies the limits, 130 stopped"`
	Failure string   `json:"failure,omitempty" jsonschema:"message with which the run ended"`
	Recent  []string `json:"recent,omitempty" jsonschema:"last lines of the run"`
}

// answer is the head of every report.
type answer struct {
	State    string   `json:"state" jsonschema:"how certain the answer is"`
	Headline string   `json:"headline"`
	Lines    []string `json:"lines" jsonschema:"statements behind the headline, the most important first"`
}

func (a answer) text() string {
	return strings.Join(append([]string{a.Headline}, a.Lines...), "\n") + "\n"
}

// status implements the tool campaign_status.
func (s *server) status(ctx context.Context, req *sdk.CallToolRequest, in statusIn) (*sdk.CallToolResult, statusOut, error) {
	c, err := s.campaign(in.ID)
	if err == nil && (in.Wait < 0 || in.Wait > mostWait) {
		err = fmt.Errorf("wait_seconds %d: allowed are 0 to %d", in.Wait, mostWait)
	}
	if err != nil {
		return nil, statusOut{}, err
	}
	s.watch(ctx, req, c, time.Duration(in.Wait)*time.Second)
	out := c.status()
	return text(out.text()), out, nil
}

// watch waits for the end of a campaign, at most for a time, and reports progress meanwhile.
func (s *server) watch(ctx context.Context, req *sdk.CallToolRequest, c *campaign, most time.Duration) {
	end := time.Now().Add(most)
	for c.isRunning() && ctx.Err() == nil && !s.isClosed() {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		s.wait(ctx, c, min(left, pace))
		step := c.log.current()
		if lines := c.lines(1); len(lines) > 0 && lines[0] != step {
			step += ": " + lines[0]
		}
		progress(ctx, req, c.elapsed().Seconds(), c.budget.Seconds(), strings.Join(strings.Fields(step), " "))
	}
}

// stop implements the tool stop_campaign.
func (s *server) stop(ctx context.Context, req *sdk.CallToolRequest, in stopIn) (*sdk.CallToolResult, statusOut, error) {
	c, err := s.campaign(in.ID)
	if err != nil {
		return nil, statusOut{}, err
	}
	c.stop()
	s.watch(ctx, req, c, patience)
	out := c.status()
	return text(out.text()), out, nil
}

// status describes a campaign.
func (c *campaign) status() statusOut {
	out := statusOut{ID: c.id, State: stateRunning, Output: c.analysis.Output, Step: c.log.current(), Elapsed: c.elapsed().Seconds(), Budget: c.budget.Seconds(), Recent: c.lines(recent)}
	switch {
	case !c.isRunning():
		code, failure := c.outcome()
		out.State, out.Exit = stateEnded, &code
		if failure != nil {
			out.Failure = failure.Error()
		}
		if code == 1 || code == 2 {
			out.State = stateFailed
		}
	case c.isStopping():
		out.State = stateStopping
	}
	r, err := c.rank()
	if err != nil {
		return out // nothing was measured yet
	}
	out.Trials, out.Failed = r.Trials, r.Failed
	r.Ending.Interrupted = r.Ending.Interrupted && !c.isRunning() // a journal without an end looks like that of a killed run
	if r.IsMeasured() {
		out.Answer = answerOf(r)
	}
	return out
}

// lines returns the last lines of the run.
func (c *campaign) lines(n int) []string {
	all := strings.Split(strings.TrimSpace(bounded(c.log.Tail.String())), "\n")
	return all[max(0, len(all)-n):]
}

// rank ranks what was measured so far. It computes again only if the journal has grown.
func (c *campaign) rank() (analyze.Result, error) {
	c.ranking.Lock()
	defer c.ranking.Unlock()
	info, err := os.Stat(filepath.Join(c.analysis.Input, journal.FileName))
	if err != nil {
		return analyze.Result{}, err
	}
	if info.Size() != c.ranked.size {
		c.ranked.result, c.ranked.err = analyze.RankFile(c.analysis)
		c.ranked.size = info.Size()
	}
	return c.ranked.result, c.ranked.err
}

// answerOf puts the answer of a result into words, those of every report.
func answerOf(r analyze.Result) *answer {
	a := figures.AnswerOf(r)
	return &answer{State: string(a.State), Headline: bounded(a.Headline), Lines: boundedAll(a.Texts())}
}

func boundedAll(lines []string) []string {
	list := []string{}
	for _, line := range lines {
		list = append(list, bounded(line))
	}
	return list
}

// text describes the status for people.
func (o statusOut) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s after %.0f s", o.ID, o.State, o.Elapsed)
	if o.Budget > 0 {
		fmt.Fprintf(&b, " of %.0f s", o.Budget)
	}
	if o.Step != "" && o.Exit == nil {
		fmt.Fprintf(&b, ", step %s", o.Step)
	}
	fmt.Fprintf(&b, "; %d measurements, %d of them failed\n", o.Trials, o.Failed)
	if o.Failure != "" {
		fmt.Fprintln(&b, o.Failure)
	}
	if o.Answer != nil {
		b.WriteString(o.Answer.text())
	}
	fmt.Fprintf(&b, "output folder: %s\n", o.Output)
	return b.String()
}
