//go:build !noengine

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/internal/exit"
	"tuner/profile/journal"
	"tuner/search"
)

// awaitBlock waits until a campaign has several engines and one of them is stopped. It returns all
// of them.
func (w workplace) awaitBlock(p *program) []int {
	w.t.Helper()
	var engines []int
	eventually(w.t, "a block of turns", func() bool {
		select {
		case err := <-p.ended:
			w.t.Fatalf("the campaign ended too early (%v); stderr:\n%s", err, p.stderr.String())
		default:
		}
		engines = enginesOf(p.cmd.Process.Pid)
		return len(engines) > 1 && slices.ContainsFunc(engines, func(pid int) bool {
			state, _ := status(pid)
			return state == "T"
		})
	})
	return engines
}

// contestTrials lets a campaign of newContest measure its three configurations, compare them in a
// block, and keep one trial to confirm an answer that moves late.
const contestTrials = 7

// newContest makes a workplace whose default waits 40 ms for each batch. Others wait 8 ms. So another
// configuration is best, and the finals have at least two members.
func newContest(t *testing.T) workplace {
	t.Helper()
	w := newWorkplace(t)
	w.write("config.pbtxt", strings.Replace(calm, "10000", "40000", 1))
	w.write("profile.yaml", fmt.Sprintf(`model: %q
config: config.pbtxt
output: %q
search: {strategy: grid, budget: {time: 5m, trials: %d}, window: 100ms}
space: {max_queue_delay: [8ms], intra_op_threads: [1], instance_count: [1, 2]}
load: {concurrency: [4]}
`, filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx"), w.output, contestTrials))
	return w
}

// If a campaign ends in the middle of a block in any way, its engines end, including stopped ones.
// The next run resumes with the block.
func TestCampaignThatEndsInABlock(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			w := newContest(t)
			p := w.start("profile", "-f", "profile.yaml")
			engines := w.awaitBlock(p)
			p.signal(s)
			if code, want := p.exit(), map[syscall.Signal]int{syscall.SIGKILL: -1, syscall.SIGINT: exit.Interrupted}[s]; code != want {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, want, p.stderr.String())
			}
			for _, pid := range engines {
				awaitGone(t, pid)
			}
			before := w.trials()
			if records := w.records(); (records[len(records)-1].Kind == journal.KindEnd) != (s == syscall.SIGINT) {
				t.Errorf("the journal ends with %s", records[len(records)-1].Kind)
			}
			w.run(exit.OK, "profile", "-f", "profile.yaml")
			after := w.trials()
			if len(after) != contestTrials || len(before) >= len(after) {
				t.Errorf("%d trials after %d, want %d", len(after), len(before), contestTrials)
			}
			checkBlocks(t, after)
			w.analyze()
		})
	}
}

// checkBlocks checks the blocks of a campaign: their seats had their own launches and took turns.
func checkBlocks(t *testing.T, events []search.Event) {
	t.Helper()
	blocks := map[int][]search.Event{}
	for _, e := range events {
		if e.Trial.Block > 0 {
			blocks[e.Trial.Block] = append(blocks[e.Trial.Block], e)
		}
	}
	if len(blocks) == 0 {
		t.Fatal("no trial is a seat of a block")
	}
	for n, block := range blocks {
		if len(block) == 1 { // a kill between two of their records removed the others
			continue
		}
		type turn struct {
			at   time.Duration
			seat int
		}
		var turns []turn
		launches := map[int]bool{}
		for seat, e := range block {
			m := e.Measurement
			launches[m.Launch] = true
			if m.Failure != nil || len(m.Windows) != e.Trial.Windows || m.Memory == 0 || m.Times.Launch == 0 {
				t.Errorf("block %d, seat %d: %d windows, %d bytes, launched in %v, %+v", n, seat, len(m.Windows), m.Memory, m.Times.Launch, m.Failure)
			}
			for _, w := range m.Windows {
				turns = append(turns, turn{w.Start, seat})
				if rate, ok := w.Little(); !w.Turn || !ok || rate <= 0 || w.Duration < search.TurnWindow {
					t.Errorf("block %d, seat %d: turn: %t, %.0f infer/s in %v", n, seat, w.Turn, rate, w.Duration)
				}
			}
		}
		slices.SortFunc(turns, func(a, b turn) int { return int(a.at - b.at) })
		for i := range turns {
			want := i % len(block)
			if i/len(block)%2 == 1 {
				want = len(block) - 1 - want
			}
			if turns[i].seat != want {
				t.Errorf("block %d: turn %d is seat %d's, want %d", n, i, turns[i].seat, want)
			}
		}
		if len(launches) != len(block) {
			t.Errorf("block %d: %d launches of %d seats", n, len(launches), len(block))
		}
	}
}
