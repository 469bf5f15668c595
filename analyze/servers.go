package analyze

import (
	"slices"

	"tuner/profile/journal"
)

// If the finals ran on another server than the search (journal.Header.Finals), the figures of the
// two do not compare. The verdict is then about the finals' server. Outputs that compare points
// (loads, Pareto sets, stages) use the answer's server only.

// byServer splits configurations by the server that ranks them. first are those with figures of the
// finals' server, others the rest. With a single server, all are first.
func byServer(h journal.Header, configs []Config) (first, others []Config) {
	if h.Finals == nil {
		return configs, nil
	}
	isConfirmed := func(c Config) bool { return c.Best != nil && c.Best.Confirmed }
	first = slices.DeleteFunc(slices.Clone(configs), func(c Config) bool { return !isConfirmed(c) })
	return first, slices.DeleteFunc(slices.Clone(configs), isConfirmed)
}

// confirmedPoints returns the points that rank a configuration: those of the finals' server if it
// has any.
func confirmedPoints(h journal.Header, points []Point) []Point {
	if h.Finals == nil || !slices.ContainsFunc(points, func(p Point) bool { return p.Confirmed }) {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Confirmed })
}

// onBestServer returns the configurations with only those points that come from the server that
// ranks the best one.
func (r Result) onBestServer() []Config {
	if r.Header.Finals == nil {
		return r.Configs
	}
	best, configs := r.Configs[0].Best, slices.Clone(r.Configs)
	for i, c := range configs {
		configs[i].Points = slices.DeleteFunc(slices.Clone(c.Points), func(p Point) bool { return best == nil || !r.AreComparable(*best, p) })
	}
	return configs
}

// AreComparable reports whether two points were measured on the same server.
func (r Result) AreComparable(a, b Point) bool {
	return r.Header.Finals == nil || a.Confirmed == b.Confirmed
}

// Server returns the name of the server on which a point was measured.
func (r Result) Server(p Point) string {
	if p.Confirmed && r.Header.Finals != nil {
		return r.Header.Finals.String()
	}
	return r.Header.Server.String()
}
