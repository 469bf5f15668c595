package poll

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shelf is a server whose repositories the test changes.
type shelf struct {
	files   map[string]string // nil: they cannot be read
	broken  map[string]bool
	serving map[string]string
	loads   int
}

func (s *shelf) Scan(context.Context) (map[string]string, error) {
	if s.files == nil {
		return nil, errors.New("stale file handle")
	}
	return maps.Clone(s.files), nil
}

func (s *shelf) Refresh(_ context.Context, model string) error {
	s.loads++
	if s.broken[model] {
		return errors.New("broken")
	}
	s.serving[model] = s.files[model]
	return nil
}

func (s *shelf) Withdraw(model string) { delete(s.serving, model) }

// Each step has the repositories' state at a poll, and what serves after it.
func TestPoll(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	s := &shelf{files: m{"old": "1"}, serving: m{"old": "1"}, broken: map[string]bool{"bad": true}}
	p := New(t.Context(), s, 2, slog.New(slog.DiscardHandler))
	for i, step := range []struct {
		files, want m
		loads       int // of all steps so far
	}{
		{m{"old": "1"}, m{"old": "1"}, 1},                                         // the first poll asks for what the start has loaded
		{m{"old": "1"}, m{"old": "1"}, 1},                                         // nothing new
		{m{"old": "1", "new": "a"}, m{"old": "1"}, 1},                             // new files: perhaps half of them
		{m{"old": "1", "new": "ab"}, m{"old": "1"}, 1},                            // more of them
		{m{"old": "1", "new": "ab"}, m{"old": "1", "new": "ab"}, 2},               // two polls agree
		{m{"old": "2", "new": "ab"}, m{"old": "1", "new": "ab"}, 2},               // changed
		{m{"old": "2", "new": "ab"}, m{"old": "2", "new": "ab"}, 3},               // two polls agree
		{m{"new": "ab"}, m{"old": "2", "new": "ab"}, 3},                           // gone, or about to be replaced
		{m{"old": "3", "new": "ab"}, m{"old": "2", "new": "ab"}, 3},               // it was replaced
		{m{"old": "3", "new": "ab"}, m{"old": "3", "new": "ab"}, 4},               // and is stable
		{nil, m{"old": "3", "new": "ab"}, 4},                                      // the file system is away
		{m{}, m{"old": "3", "new": "ab"}, 4},                                      // empty for now: nothing is known of the poll before
		{m{}, m{}, 4},                                                             // two polls agree
		{m{"bad": "x"}, m{}, 4}, {m{"bad": "x"}, m{}, 5}, {m{"bad": "x"}, m{}, 6}, // tried at each poll
		{m{}, m{}, 6}, {m{}, m{}, 6},
	} {
		s.files = step.files
		p.Poll(t.Context())
		if diff := cmp.Diff(step.want, s.serving); diff != "" || s.loads != step.loads {
			t.Errorf("step %d: %d loads, want %d; serving (-want +got):\n%s", i, s.loads, step.loads, diff)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{files: map[string]string{"m": "1"}, serving: map[string]string{}}
		p := New(t.Context(), s, 1, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Second)
		defer stop()
		p.Run(ctx, 15*time.Second) // at 15, 30 and 45 s
		if s.loads != 1 || s.serving["m"] != "1" {
			t.Errorf("%d loads, serving %v", s.loads, s.serving)
		}
	})
}
