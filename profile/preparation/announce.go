package preparation

import (
	"fmt"
	"strings"
	"time"

	"tuner/internal/words"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/dryrun"
	"tuner/profile/progress"
	"tuner/profile/spans"
	"tuner/search"
)

// watcher follows a campaign for a person.
type watcher interface {
	profile.Observer
	More() time.Duration // time that the person added to the budget since the last call
	IsEnough() bool      // the person wants the answer so far confirmed, and no more search
	Close()              // gives the terminal back
}

// observe returns the watcher of a campaign.
func (o Options) observe(setup profile.Setup, settings search.Settings, past time.Duration) watcher {
	if o.Quiet {
		return quiet{}
	}
	return progress.New(o.Messages, setup.Name(), settings.Goal, settings.Budget, past, setup.IsRemote)
}

// about describes a campaign to an OpenTelemetry collector.
func (o Options) about(setup profile.Setup, log campaign.Log) spans.About {
	return spans.About{
		Model: setup.Name(), Strategy: setup.Profile.Search.Strategy, Server: serverText(setup), Output: setup.Profile.Output,
		Version: o.Version, Goal: setup.Profile.Goal, Earlier: len(log.Past), Past: log.Elapsed(), Now: time.Now,
	}
}

// announce prints whether a campaign begins or resumes.
func (o Options) announce(setup profile.Setup, log campaign.Log) {
	o.say(fmt.Sprintf("%s: %s on %s, results in %s", setup.Profile.Search.Strategy, setup.Name(), serverText(setup), setup.Profile.Output))
	for _, line := range dryrun.EarlierLines(setup.Profile, log.Earlier) {
		o.say(line)
	}
	if !log.Header().HasChecksums() {
		o.say("warning: the journal is of an earlier version and has no checksums; the checksums of new records also cover the old ones")
	}
	if n := len(log.Past); n > 0 {
		o.say(fmt.Sprintf("resuming after %d trials of an earlier run (%s)", n, words.Clock(log.Elapsed())))
	}
}

// serverText names the server of the trials. For the bundled engine it names the builds of ONNX
// Runtime.
func serverText(setup profile.Setup) string {
	text := setup.Server.String()
	if setup.Server == nil {
		runtimes := []string{fmt.Sprintf("%s (%s)", setup.Runtime.Version, setup.Runtime.Flavour)}
		for _, r := range setup.Runtimes[min(1, len(setup.Runtimes)):] {
			runtimes = append(runtimes, fmt.Sprintf("%s (%s)", r.Version, r.Flavour))
		}
		text = "ONNX Runtime " + strings.Join(runtimes, " and ")
	}
	if setup.Finals != nil {
		text += ", finals on " + setup.Finals.String()
	}
	return text
}

// quiet is the observer of a campaign without progress.
type quiet struct{}

func (quiet) Begun(search.Action)                     {}
func (quiet) BlockRefused(string)                     {}
func (quiet) More() time.Duration                     { return 0 }
func (quiet) IsEnough() bool                          { return false }
func (quiet) Close()                                  {}
func (quiet) TrialEnded(search.Event, profile.Status) {}
