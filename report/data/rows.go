package data

import (
	"slices"

	"tuner/analyze"
	"tuner/internal/parallel"
	"tuner/measure"
	"tuner/search"
	"tuner/spec/knobs"
)

// row has all that a line of a table needs. Both tables have the figures of a configuration under a
// load.
type row struct {
	result  analyze.Result
	config  analyze.Config
	knobs   map[string]search.Value // all known knobs of the configuration
	load    measure.Load
	phase   string
	isFinal bool           // of the finals' server, if that is another one
	sample  analyze.Sample // without figures for a failed trial

	ranks bool // points: it ranks the configuration

	ordinal int // trials: from 1
	event   search.Event
}

// points makes a row for each point. A confirmed point has a further row with the figures of the
// search.
func points(r analyze.Result) (table, error) {
	var rows []row
	for _, c := range r.Configs {
		known := knobsOf(r, c)
		for _, p := range c.Points {
			of := row{result: r, config: c, knobs: known, load: p.Load, sample: p.Sample, phase: string(search.PhaseSearch),
				isFinal: p.Confirmed, ranks: c.Best != nil && c.Best.Load == p.Load}
			if p.Confirmed {
				of.phase = string(search.PhaseFinal)
			}
			rows = append(rows, of)
			if p.Searched != nil {
				of.sample, of.phase, of.isFinal, of.ranks = *p.Searched, string(search.PhaseSearch), false, false
				rows = append(rows, of)
			}
		}
	}
	return fill(pointsName, slices.Concat(identity(), pointColumns(), knobColumns(r), loadColumns(r), figureColumns(r), countColumns()), rows)
}

// trials makes a row for each trial, failed ones included. Service trials have none, since they
// measure batches and not a load.
func trials(r analyze.Result) (table, error) {
	configs, known := map[string]analyze.Config{}, map[string]map[string]search.Value{}
	for _, c := range r.Configs {
		configs[c.Name], known[c.Name] = c, knobsOf(r, c)
	}
	rows := make([]row, len(r.Course))
	parallel.For(len(rows), func(i int) {
		s := r.Course[i]
		phase := s.Event.Trial.Phase
		rows[i] = row{result: r, config: configs[s.Name], knobs: known[s.Name], load: s.Event.Trial.Load, phase: string(phase),
			isFinal: phase == search.PhaseFinal && s.Event.Trial.Fresh, ordinal: s.Ordinal, event: s.Event}
		rows[i].sample, _ = s.Sample(r.Goal)
	})
	return fill(trialsName, slices.Concat(identity(), trialColumns(), knobColumns(r), loadColumns(r), figureColumns(r), countColumns(), timeColumns()), rows)
}

// fill computes all cells.
func fill(name string, columns []column, rows []row) (table, error) {
	t := table{name, columns, make([][]any, len(rows))}
	return t, parallel.Try(len(rows), func(i int) (err error) {
		cells := make([]any, len(columns))
		for j, c := range columns {
			if cells[j], err = c.of(rows[i]); err != nil {
				return err
			}
		}
		t.rows[i] = cells
		return nil
	})
}

// knobsOf returns the values of a configuration's knobs: its own, and those of the default where it
// sets none. A recording has only its own.
func knobsOf(r analyze.Result, c analyze.Config) map[string]search.Value {
	all := map[string]search.Value{}
	switch s := c.Setup; {
	case len(c.Parts) > 0:
		return severalKnobs(c)
	case r.Recorded == "":
		all = knobs.Base(c.Deployed)
	case s.Instances > 0:
		all[search.KnobInstanceCount], all[search.KnobMaxBatchSize] = search.IntValue(s.Instances), search.IntValue(s.MaxBatchSize)
		all[search.KnobMaxQueueDelay] = search.DurationValue(s.QueueDelay)
	}
	for _, s := range c.Candidate.Settings() {
		all[s.Knob] = s.Value
	}
	for name, of := range map[string]string{
		search.KnobExecutionProvider: c.Setup.Provider, search.KnobRuntime: c.Setup.Runtime, search.KnobPrecision: c.Setup.Precision,
	} {
		delete(all, name)
		if of != "" {
			all[name] = search.Value(of)
		}
	}
	return all
}

// severalKnobs is knobsOf for several models, whose names stand before their knobs.
func severalKnobs(c analyze.Config) map[string]search.Value {
	all := map[string]search.Value{}
	for _, p := range c.Parts {
		for knob, v := range knobs.Base(p.Deployed) {
			all[search.JoinKnob(p.Model, knob)] = v
		}
		if p.Setup.Precision != "" {
			all[search.JoinKnob(p.Model, search.KnobPrecision)] = search.Value(p.Setup.Precision)
		}
	}
	for _, s := range c.Candidate.Settings() {
		all[s.Knob] = s.Value
	}
	return all
}
