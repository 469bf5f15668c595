package capacity

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// ParsePlan reads a plan's JSON form. name is the file's, for errors. It refuses what no plan has.
func ParsePlan(name string, text []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return Plan{}, fmt.Errorf("%s is no plan: %w; 'tuner plan --format json' writes one", name, err)
	}
	if p.Format != Format {
		return Plan{}, fmt.Errorf("%s: format is %d; this version of tuner reads format %d", name, p.Format, Format)
	}
	s := p.Best.Scaling
	isWithin := func(x, least, most float64) bool { return x >= least && x <= most } // false for NaN
	switch {
	case !slices.Contains(Scalers(), s.Scaler):
		return Plan{}, fmt.Errorf("%s: best.scaling.autoscaler: %q; allowed are hpa, keda and fixed", name, s.Scaler)
	case s.Min < 1 || s.Max < s.Min || s.Max > MostReplicas:
		return Plan{}, fmt.Errorf("%s: best.scaling: %d to %d replicas; allowed are 1 to %d, ascending", name, s.Min, s.Max, MostReplicas)
	case s.Scaler != Fixed && !isWithin(s.Target, 0.001, math.MaxInt32):
		return Plan{}, fmt.Errorf("%s: best.scaling.target: %g requests/s; it must be above 0", name, s.Target)
	case s.Scaler != Fixed && !isWithin(s.Window, 1, time.Hour.Seconds()):
		return Plan{}, fmt.Errorf("%s: best.scaling.metric_window: %g s; it must be from 1 to 3600", name, s.Window)
	case !isWithin(s.Down, 0, time.Hour.Seconds()):
		return Plan{}, fmt.Errorf("%s: best.scaling.scale_down_stabilization: %g s; it must be from 0 to 3600", name, s.Down)
	case !isWithin(s.Tolerance, 0, 1):
		return Plan{}, fmt.Errorf("%s: best.scaling.tolerance: %g; it must be from 0 to 1", name, s.Tolerance)
	case !isWithin(s.Startup, 0, time.Hour.Seconds()):
		return Plan{}, fmt.Errorf("%s: best.scaling.startup: %g s; it must be from 0 to 3600", name, s.Startup)
	}
	return p, nil
}
