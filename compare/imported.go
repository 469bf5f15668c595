package compare

import (
	"fmt"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/modelconfig"
)

// Recorded converts the recording of another program to a run. It has no intervals, and no winner.
func Recorded(rec analyze.Recording) (Run, error) {
	run := Run{Name: rec.Model, Path: rec.Source, Kind: Imported, Model: rec.Model, Answer: "figures of another program",
		Facts: map[string]string{"model": rec.Model}, Configurations: []Configuration{}}
	for _, c := range rec.Configs {
		one := Configuration{Name: c.Name, Key: c.Name, Description: c.Name, Points: []Point{}}
		if c.Default {
			one.Key, one.Description = defaultKey, "default"
		}
		if c.Deployed.GetName() != "" {
			text, err := modelconfig.Format(c.Deployed)
			if err != nil {
				return Run{}, fmt.Errorf("cannot read %s: %s: %w", rec.Source, c.Name, err)
			}
			one.Config = string(text)
		}
		for _, p := range c.Points {
			point := Point{Load: p.Load, Values: map[measure.Metric]Figure{}}
			for metric, v := range p.Values {
				point.Values[metric] = Figure{v, v, v}
			}
			one.Points = append(one.Points, point)
		}
		run.Configurations = append(run.Configurations, one)
	}
	return run, nil
}
