package gate

import (
	"errors"
	"fmt"
	"os"

	"tuner/gate/decide"
	"tuner/internal/exit"
	"tuner/profile"
	"tuner/runner/meter"
	"tuner/spec"
)

// Check finds the reasons why a gate cannot be judged here, before anything is opened. saveBaseline
// is the file of a new baseline; "" if none is saved.
func Check(g spec.Gate, saveBaseline string) error {
	if len(g.Metrics) == 0 && len(g.Limits) == 0 && saveBaseline == "" { // a baseline brings metrics
		return exit.Usagef("%s: there is nothing to judge: name a baseline or limits, or save the candidate's figures with --save-baseline FILE", g.Path)
	}
	var problems []error
	sources := meter.ReadSources()
	for _, m := range g.AllMetrics() {
		if lack := sources.Lack(m); lack != "" {
			problems = append(problems, fmt.Errorf("%s: %s cannot be measured on this machine: %s", g.Path, m, lack))
		}
	}
	for field, engine := range map[string]string{"baseline.engine": g.Baseline.Engine, "candidate.engine": g.Candidate.Engine} {
		if engine == "" {
			continue
		}
		if info, err := os.Stat(engine); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			problems = append(problems, fmt.Errorf("%s: %s: %q is not a program; name the file of a tuner", g.Path, field, engine))
		}
	}
	problems = append(problems, CheckHistory(g.History))
	if saveBaseline != "" && len(g.Models) > 0 {
		problems = append(problems, fmt.Errorf("--save-baseline: a saved baseline is of one model, and %s has several; name the baselines of all of them in the file", g.Path))
	} else if saveBaseline != "" {
		problems = append(problems, CheckSaved(saveBaseline))
	}
	if err := errors.Join(problems...); err != nil {
		return exit.With(exit.Usage, err)
	}
	return profile.CheckOutput(spec.Profile{Path: g.Path, Output: g.Output})
}

// KeepHistory adds a gate with measurements to its history, and returns the history. On an error it
// returns the records that it could read.
func KeepHistory(r Result) ([]Record, error) {
	path := r.Setup.Spec.History
	if len(r.Outcome.Pairs) == 0 {
		return ReadHistory(path)
	}
	history, err := AppendHistory(path, NewRecord(r))
	if err != nil {
		history, _ = ReadHistory(path) // this may fail too
	}
	return history, err
}

// Unfit returns the reason why an outcome cannot be a baseline for later gates; "" if it can.
func (o Outcome) Unfit() string {
	switch {
	case o.Verdict == decide.Fail:
		return "the candidate failed"
	case o.Interrupted:
		return "the gate was interrupted"
	case o.Backlog:
		return "the candidate did not keep up with the rate"
	case len(o.Pairs) < decide.LeastPairs:
		return "too little was measured"
	}
	return ""
}

// SaveAs saves the candidate's figures as a baseline.
func (r Result) SaveAs(path string) error {
	saved, err := NewSaved(r.Setup, r.Outcome.Pairs, r.Time, r.Revision)
	if err != nil {
		return err
	}
	return saved.Save(path)
}
