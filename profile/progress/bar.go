package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"tuner/internal/words"
	"tuner/profile"
	"tuner/search"
)

// campaignBar draws two lines below those of the trials. The first has time spent, time left, a bar
// and the best so far. The second has the current trial. A separate goroutine redraws them. close
// waits for it.
type campaignBar struct {
	out    io.Writer // the terminal
	bars   *mpb.Progress
	bar    *mpb.Bar
	ticker sync.WaitGroup
	done   chan struct{}

	mu      sync.Mutex
	started time.Time // start of this run, minus the time of earlier runs
	budget  time.Duration
	goal    search.Goal
	status  profile.Status
	ended   time.Time // time of status
	current string
}

// lineStart begins each line on a terminal: after a key (^C) the cursor may be in another column.
const lineStart = "\r"

// barWidth is the width of the bar with its space. The texts around it are shortened to make room.
const barWidth = 24

// barSteps is the resolution of the bar.
const barSteps = 1000

func newCampaignBar(out io.Writer, goal search.Goal, budget search.Budget, past time.Duration) *campaignBar {
	b := &campaignBar{
		out:  out,
		bars: mpb.New(mpb.WithOutput(out), mpb.WithWidth(barWidth), mpb.WithRefreshRate(250*time.Millisecond)),
		done: make(chan struct{}), started: time.Now().Add(-past), budget: budget.Time, goal: goal, current: "starting",
	}
	b.bar = b.bars.AddBar(barSteps,
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return b.timeText() })),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			return words.Shorten(b.bestText(), s.AvailableWidth-barWidth)
		})),
		mpb.BarExtender(mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
			_, err := fmt.Fprintln(w, lineStart+words.Shorten("now "+b.currentText(), s.AvailableWidth))
			return err
		}), false),
		mpb.BarRemoveOnComplete())
	b.ticker.Go(b.tick)
	return b
}

func (b *campaignBar) tick() {
	for ticks := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case <-b.done:
			ticks.Stop()
			return
		case <-ticks.C:
			b.bar.SetCurrent(int64(b.share() * (barSteps - 1)))
		}
	}
}

func (b *campaignBar) close() {
	close(b.done)
	b.ticker.Wait()
	b.bar.Abort(true)
	b.bars.Wait()
	fmt.Fprint(b.out, lineStart)
}

func (b *campaignBar) begin(action search.Action) {
	var texts []string
	for _, t := range action.Trials() {
		texts = append(texts, trialText(t))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = strings.Join(texts, "; ")
}

func (b *campaignBar) end(status profile.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.ended = status, time.Now()
}

// left returns the expected time until the end, and false while it is unknown.
func (b *campaignBar) left() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.budget - time.Since(b.started)
	if b.status.Trials == 0 {
		return max(left, 0), b.budget > 0
	}
	remaining := b.status.Remaining - time.Since(b.ended)
	if b.budget > 0 {
		remaining = min(remaining, left)
	}
	return max(remaining, 0), true
}

// share returns the elapsed share of the campaign's time, 0..1.
func (b *campaignBar) share() float64 {
	left, known := b.left()
	if !known {
		return 0
	}
	elapsed := time.Since(b.started)
	return elapsed.Seconds() / (elapsed + left).Seconds()
}

func (b *campaignBar) timeText() string {
	text := lineStart + words.Clock(time.Since(b.started))
	if left, known := b.left(); known {
		text += fmt.Sprintf(", about %s left", words.Clock(left))
	}
	return text + " "
}

func (b *campaignBar) bestText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bestText(b.goal, b.status)
}

// bestText describes the best configuration so far, with the figures that a report would show now.
func bestText(goal search.Goal, status profile.Status) string {
	if answer := status.Answer(); answer != nil {
		return " best so far " + answer.Text(goal)
	}
	return " none within the constraints yet"
}

func (b *campaignBar) currentText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current
}
