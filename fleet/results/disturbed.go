package results

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/fleet"
)

// mostDisturbed is the share of disturbed windows that a machine's figures stand. Beyond it another machine
// is asked for.
const mostDisturbed = 0.05

// mostMore is the largest number of further machines of a type for one model.
const mostMore = 2

// IsDisturbed reports whether others disturbed the campaign more than its figures stand.
func (r Row) IsDisturbed() bool { return r.State == StateAnswer && r.Disturbed > mostDisturbed }

// More returns the further campaigns that a stage needs: as many machines of a type as were disturbed, and
// mostMore of them. Only a stage with several machines of each type asks for more: its intervals are over machines.
func (r Ranking) More() []fleet.More {
	var list []fleet.More
	for _, m := range r.Models {
		for _, x := range m.Types {
			more := fleet.More{Machine: x.Machine, Model: m.Model}
			for _, row := range m.Rows {
				if row.Machine != x.Machine {
					continue
				}
				if row.Node != "" {
					more.Avoid = append(more.Avoid, row.Node)
				}
				if row.IsDisturbed() {
					more.Machines = min(more.Machines+1, mostMore)
				}
			}
			if x.Campaigns > 1 && more.Machines > 0 {
				slices.Sort(more.Avoid)
				list = append(list, more)
			}
		}
	}
	return list
}

// ReadAll reads the list in a fleet's output folder, with the further campaigns that have a result. A further
// machine that was not found leaves nothing missing.
func ReadAll(dir string) (List, error) {
	l, err := Read(dir)
	if err != nil {
		return l, err
	}
	more, err := Read(filepath.Join(dir, fleet.MoreDir))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	for _, c := range more.Campaigns {
		if c.Result != nil {
			c.Folder = filepath.Join(fleet.MoreDir, c.Folder)
			l.Campaigns = append(l.Campaigns, c)
		}
	}
	return l, err
}

// withoutDisturbed says what the answer is without the disturbed machines, if it is another one. Their figures
// stay in the ranking. A type all of whose machines were disturbed keeps them.
func withoutDisturbed(m ModelAnswer, list []campaign, describe func(analyze.Config) string) []string {
	var names []string
	quiet := slices.Clone(list)
	for _, x := range m.Types {
		rest := slices.DeleteFunc(slices.Clone(quiet), func(c campaign) bool { return c.Machine == x.Machine && c.IsDisturbed() })
		isLeft := slices.ContainsFunc(rest, func(c campaign) bool { return c.Machine == x.Machine && c.State == StateAnswer })
		if n := len(quiet) - len(rest); n > 0 && isLeft {
			quiet = rest
			names = append(names, fmt.Sprintf("%d of %s", n, x.Machine))
		}
	}
	if len(names) == 0 {
		return nil
	}
	others := typesOf(quiet, describe)
	compareToBest(others, m.ByCost && arePriced(others))
	was, is := m.Types[0], others[0]
	if is.Machine == was.Machine && is.Configuration == was.Configuration {
		return nil
	}
	return []string{fmt.Sprintf("Without the disturbed machines (%s), the best is %s with %s.", strings.Join(names, ", "), is.Machine, is.Setup)}
}
