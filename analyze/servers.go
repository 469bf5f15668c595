package analyze

import (
	"slices"

	"tuner/profile/journal"
)

// Where the finals ran on another server than the search (journal.Header.Finals), figures of the two do
// not compare: the verdict is of the finals' server alone. What puts points side by side (loads, Pareto
// sets, stages) has those of the answer's server.

// byServer takes those that are ranked by what the finals' server showed, which come first, apart from the others. Of a single server all are
// first.
func byServer(h journal.Header, configs []Config) (first, others []Config) {
	if h.Finals == nil {
		return configs, nil
	}
	isConfirmed := func(c Config) bool { return c.Best != nil && c.Best.Confirmed }
	first = slices.DeleteFunc(slices.Clone(configs), func(c Config) bool { return !isConfirmed(c) })
	return first, slices.DeleteFunc(slices.Clone(configs), isConfirmed)
}

// confirmedPoints are the points that a configuration is ranked by: those of the finals' server where it has any.
func confirmedPoints(h journal.Header, points []Point) []Point {
	if h.Finals == nil || !slices.ContainsFunc(points, func(p Point) bool { return p.Confirmed }) {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Confirmed })
}

// onBestServer are the configurations with those of their points alone that were measured on the server that the best one is ranked by.
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

// Server names the server that a point's figures come from.
func (r Result) Server(p Point) string {
	if p.Confirmed && r.Header.Finals != nil {
		return r.Header.Finals.String()
	}
	return r.Header.Server.String()
}
