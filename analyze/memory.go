package analyze

import (
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/footprint"
)

// memory is what a campaign tells of its configurations' memory. Each has one figure,
// which stands in all its points, and another one of the finals' server where that is
// another.
type memory struct{ searched, final *footprint.Model }

// remember learns from all events of a campaign, service trials among them.
func remember(c Campaign) memory {
	space := c.Profile.Space(c.Facts)
	m := memory{searched: footprint.New(space)}
	if m.final = m.searched; c.Header.Finals != nil {
		m.final = footprint.New(space)
	}
	for _, e := range c.Events {
		m.of(e.Trial.Phase).Add(e)
	}
	return m
}

func (m memory) of(phase search.Phase) *footprint.Model {
	if phase == search.PhaseFinal {
		return m.final
	}
	return m.searched
}

// seen are events as they are judged, with the memory of their configurations.
func (m memory) seen(events []search.Event) []search.Event {
	list := make([]search.Event, len(events))
	for i, e := range events {
		list[i] = m.of(e.Trial.Phase).Seen(e)
	}
	return list
}

// held is what a configuration holds, by the search and by the finals; nil unknown.
type held struct{ searched, final *footprint.Estimate }

// fill notes in each configuration what it holds where its figures come from, and returns
// that by both parts of the campaign.
func (m memory) fill(h journal.Header, configs []Config) []held {
	list := make([]held, len(configs))
	for i, c := range configs {
		if e, ok := m.searched.Of(c.Candidate); ok {
			list[i].searched = &e
		}
		if e, ok := m.final.Of(c.Candidate); ok {
			list[i].final = &e
		}
		configs[i].Memory = list[i].searched
		if h.Finals != nil && list[i].final != nil {
			configs[i].Memory = list[i].final
		}
	}
	return list
}

// withMemory gives the memory of a sample's values the interval of its estimate.
func withMemory(values map[measure.Metric]measure.Estimate, e *footprint.Estimate) {
	if _, known := values[measure.Memory]; known && e != nil {
		values[measure.Memory] = e.Estimate
	}
}
