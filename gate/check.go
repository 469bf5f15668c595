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

// Check finds what keeps a gate from being judged here, before anything is opened. saveBaseline is the file of a new
// baseline; "": none is saved.
func Check(g spec.Gate, saveBaseline string) error {
	if g.Baseline.IsZero() && len(g.Limits) == 0 && saveBaseline == "" {
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
			problems = append(problems, fmt.Errorf("%s: %s: %q is no program; name the file of a tuner", g.Path, field, engine))
		}
	}
	problems = append(problems, CheckHistory(g.History))
	if saveBaseline != "" {
		problems = append(problems, CheckSaved(saveBaseline))
	}
	if err := errors.Join(problems...); err != nil {
		return exit.With(exit.Usage, err)
	}
	return profile.CheckOutput(spec.Profile{Path: g.Path, Output: g.Output})
}

// KeepHistory adds a gate that measured anything to its history, and returns the history. With an error it returns what
// could be read.
func KeepHistory(r Result) ([]Record, error) {
	path := r.Setup.Spec.History
	if len(r.Outcome.Pairs) == 0 {
		return ReadHistory(path)
	}
	history, err := AppendHistory(path, NewRecord(r))
	if err != nil {
		history, _ = ReadHistory(path) // which may fail too
	}
	return history, err
}

// Unfit says why an outcome is no baseline for later gates; "" where it is one.
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

// SaveAs keeps the candidate's figures as a baseline.
func (r Result) SaveAs(path string) error {
	saved, err := NewSaved(r.Setup, r.Outcome.Pairs, r.Time, r.Revision)
	if err != nil {
		return err
	}
	return saved.Save(path)
}
