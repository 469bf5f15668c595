package planning

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/capacity"
	"tuner/capacity/adaptation"
	"tuner/capacity/replica"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/report"
	"tuner/report/formats"
)

// adaptiveFormat is the word of --format for the table of 'tuner serve --adaptive'.
const adaptiveFormat = "adaptive"

// writeAdaptive writes the table of configurations for a server of the chosen fleet, and says on stderr
// whether changing pays.
func (o *Options) writeAdaptive(w io.Writer, q capacity.Question, p capacity.Plan, results []named, replicas []replica.Replica) error {
	of, chosen := chosenOf(p, results, replicas)
	moments, err := capacity.Moments(q, chosen, p.Best.Scaling)
	if err != nil {
		return err
	}
	ranked, err := analyze.RankFolder(filepath.Dir(of.file), formats.All().Words())
	if err != nil {
		return err
	}
	t, err := adaptation.Table(adaptation.Question{
		Plan: q, Machine: of.name, Chosen: p.Best.Configuration, Moments: moments,
		Deployed: func(name string) (*modelconfig.Config, error) { return report.DeployableConfig(ranked, name) },
	}, of.result)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(t); err != nil {
		return fmt.Errorf("cannot write table: %w", err)
	}
	fmt.Fprintln(o.Err, t.Summary)
	return nil
}

// chosenOf returns the result and the replica of the chosen fleet.
func chosenOf(p capacity.Plan, results []named, replicas []replica.Replica) (named, replica.Replica) {
	is := func(r replica.Replica) bool { return r.Type == p.Best.Type && r.Configuration == p.Best.Configuration }
	return results[slices.IndexFunc(results, func(r named) bool { return r.name == p.Best.Type })], replicas[slices.IndexFunc(replicas, is)]
}
