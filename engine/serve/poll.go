package serve

import (
	"log/slog"

	"tuner/engine"
	"tuner/engine/flags"
	"tuner/engine/poll"
)

// newPoller makes what follows the repositories, nil if nothing does. It comes before the models of
// the start are loaded, so that it sees what has changed since.
func newPoller(o *flags.Options, s *engine.Server, log *slog.Logger) *poll.Poller {
	if o.PollInterval() == 0 {
		return nil
	}
	return poll.New(s, o.LoadThreads(), log)
}
