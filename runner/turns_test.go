package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tuner/measure"
)

// player notes whose turn it is. Its n-th turn fails or returns an error on request.
type player struct {
	name     string
	played   *[]string
	fail     int // number of the turn that fails, from 1; 0: none
	err      error
	isPaused bool
	jobs     []Job
}

func (p *player) Measure(_ context.Context, job Job) (measure.Measurement, error) {
	p.isPaused = false
	p.jobs = append(p.jobs, job)
	*p.played = append(*p.played, p.name)
	m := measure.Measurement{Launch: 7, Memory: int64(len(p.jobs)), Times: measure.Times{Windows: ms}}
	if len(p.jobs) == p.fail {
		m.Failure = &measure.Failure{Stage: measure.StageCrash}
		return m, p.err
	}
	m.Windows = []measure.Window{{Requests: len(p.jobs)}}
	return m, nil
}

func (p *player) Pause() { p.isPaused = true }

// table seats players named A, B, C.
func table(n int) (players []*player, seats []Seat, played *[]string) {
	played = new([]string)
	for i := range n {
		p := &player{name: string(rune('A' + i)), played: played}
		players = append(players, p)
		seats = append(seats, Seat{p, Job{Fresh: true}})
	}
	return players, seats, played
}

func TestOrderOfTurns(t *testing.T) {
	t.Parallel()
	check := func(seats int, turns Turns, want string) {
		t.Helper()
		_, list, played := table(seats)
		if _, err := turns.Take(t.Context(), list); err != nil || strings.Join(*played, "") != want {
			t.Errorf("%d seats, %+v: %q, %v; want %q", seats, turns, strings.Join(*played, ""), err, want)
		}
	}
	check(3, Turns{Rounds: 4, Windows: 1}, "ABCCBAABCCBA")
	check(2, Turns{Rounds: 3, Windows: 1}, "ABBAAB")
	check(2, Turns{Rounds: 3, Windows: 1, Backwards: true}, "BAABBA")
	check(1, Turns{Rounds: 2, Windows: 6}, "AA")
}

// For all Turns, each seat has one turn per round, its first turn is on a fresh process, and after
// its turn it is paused. Over two rounds the mean position of all seats is the same.
func TestTurnsTreatAllAlike(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, rounds := 1+random.IntN(5), 2*(1+random.IntN(5))
		players, seats, played := table(n)
		taken, err := Turns{Rounds: rounds, Windows: 1, Backwards: random.IntN(2) == 0}.Take(t.Context(), seats)
		if err != nil {
			t.Fatal(err)
		}
		places := map[string]int{}
		for i, name := range *played {
			places[name] += i
		}
		for i, p := range players {
			m := taken[i]
			if len(p.jobs) != rounds || len(m.Windows) != rounds || m.Times.Windows != time.Duration(rounds)*ms || m.Memory != int64(rounds) || m.Launch != 7 {
				t.Fatalf("%d seats, %d rounds: %s had %d turns and yielded %+v", n, rounds, p.name, len(p.jobs), m)
			}
			if places[p.name] != places["A"] || !p.isPaused {
				t.Fatalf("%d seats, %d rounds: %q is not fair to %s, or left it running", n, rounds, strings.Join(*played, ""), p.name)
			}
			for turn, job := range p.jobs {
				if job.Fresh != (turn == 0) || !job.Turn || job.Windows != 1 || m.Windows[turn].Requests != turn+1 {
					t.Fatalf("turn %d of %s: %+v", turn, p.name, job)
				}
			}
		}
	}
}

// A turn in which nothing was answered is no failure, unless no other turn of the seat has an answer.
func TestEmptyTurns(t *testing.T) {
	t.Parallel()
	for rounds, fails := range map[int]bool{1: true, 2: false} {
		synctest.Test(t, func(t *testing.T) {
			l, r := newLab(t)
			l.service = 190 * ms
			l.send = func(_ *engine, n int) error {
				if n == 5 { // the warm-up of a first turn ends with the fourth answer
					time.Sleep(5 * time.Second)
				}
				return nil
			}
			j := job("a", "1")
			j.Load.Concurrency = 1
			taken, err := Turns{Rounds: rounds, Windows: 1}.Take(t.Context(), []Seat{{r, j}})
			if err != nil {
				t.Fatal(err)
			}
			m := taken[0]
			if f := m.Failure; (f != nil) != fails || fails && f.Stage != measure.StageHang {
				t.Errorf("%d turns: %+v", rounds, f)
			}
			if !fails && (len(m.Windows) != 2 || m.Windows[0].Requests != 0 || m.Windows[1].Requests == 0) {
				t.Errorf("%d turns: %+v", rounds, m.Windows)
			}
		})
	}
}

func TestFailureInATurn(t *testing.T) {
	t.Parallel()
	check := func(turns Turns, err error, want string) {
		t.Helper()
		players, seats, played := table(3)
		players[1].fail, players[1].err = 2, err
		taken, got := turns.Take(t.Context(), seats)
		if strings.Join(*played, "") != want || !errors.Is(got, err) {
			t.Errorf("%+v: %q, %v; want %q, %v", turns, strings.Join(*played, ""), got, want, err)
		}
		if got == nil && (taken[1].Failure == nil || taken[0].Failure != nil) {
			t.Errorf("%+v: %s", turns, fmt.Sprint(taken))
		}
	}
	check(Turns{Rounds: 3, Windows: 1}, nil, "ABCCBAAC")
	check(Turns{Rounds: 3, Windows: 1, Strict: true}, nil, "ABCCB")
	check(Turns{Rounds: 3, Windows: 1}, errors.New("no engine"), "ABCCB")
}
