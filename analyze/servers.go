package analyze

import (
	"slices"

	"tuner/journal"
)

// Where the finals ran on another server than the search (journal.Header.Finals), figures of the two do not compare: a finalist is ranked by
// what was confirmed alone, before all that only the search's server saw, and there is no gain from one server to the other.

// confirmedPoints are the points that a configuration is ranked by: those of the finals' server where it has any.
func confirmedPoints(h journal.Header, points []Point) []Point {
	if h.Finals == nil || !slices.ContainsFunc(points, func(p Point) bool { return p.Confirmed }) {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Confirmed })
}

// rankByServer is rank, of the finals' server first.
func rankByServer(h journal.Header, configs []Config, cores int, believed string) []Config {
	base := Result{Configs: configs}.Default().Setup
	if h.Finals == nil {
		return rank(configs, base, cores, believed)
	}
	isConfirmed := func(c Config) bool { return c.Best != nil && c.Best.Confirmed }
	finalists := slices.DeleteFunc(slices.Clone(configs), func(c Config) bool { return !isConfirmed(c) })
	ranked := slices.Concat(rank(finalists, base, cores, believed), rank(slices.DeleteFunc(slices.Clone(configs), isConfirmed), base, cores, ""))
	for i := range ranked {
		if ranked[i].Best != nil {
			ranked[i].Rank = i + 1
		}
	}
	return ranked
}

// withinServers takes away the gains over a default that was measured on another server.
func withinServers(h journal.Header, configs []Config) []Config {
	base := Result{Configs: configs}.Default()
	if h.Finals == nil || base.Best == nil {
		return configs
	}
	compared := slices.Clone(configs)
	for i, c := range compared {
		if c.Best != nil && c.Best.Confirmed != base.Best.Confirmed {
			compared[i].Gain = nil
		}
	}
	return compared
}

// comparableStage is the name of the first stage where its figures and the winner's are of one server, else "".
func comparableStage(r Result, name string) string {
	stage, known := r.Config(name)
	best, won := r.Winner()
	if known && won && stage.Best != nil && !r.AreComparable(*stage.Best, *best.Best) {
		return ""
	}
	return name
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
