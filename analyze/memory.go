package analyze

import (
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/footprint"
)

// memory has a campaign's estimates of its configurations' memory. A configuration has one figure,
// which all its points show. If the finals ran on another server, it has a second figure for that.
type memory struct{ searched, final *footprint.Model }

// remember learns the memory from all events of a campaign, including service trials.
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

// seen returns the events with the estimated memory of their configurations.
func (m memory) seen(events []search.Event) []search.Event {
	list := make([]search.Event, len(events))
	for i, e := range events {
		list[i] = m.of(e.Trial.Phase).Seen(e)
	}
	return list
}

// held is the memory of a configuration, in the search and in the finals; nil unknown.
type held struct{ searched, final *footprint.Estimate }

// fill sets each configuration's memory on the server of its figures. It returns the memory in both
// parts of the campaign.
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

// withMemory replaces the memory in a sample's values by its estimate and interval.
func withMemory(values map[measure.Metric]measure.Estimate, e *footprint.Estimate) {
	if _, known := values[measure.Memory]; known && e != nil {
		values[measure.Memory] = e.Estimate
	}
}
