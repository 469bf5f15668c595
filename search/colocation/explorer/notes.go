package explorer

import (
	"fmt"
	"strings"

	"tuner/internal/words"
	"tuner/measure"
)

// Apart says how many cores each model would need on a server of its own at a load. It returns "" if
// that is not known of one of them.
func (x *Explorer) Apart(load measure.Load) string {
	if x.search == nil || load.Level() <= 0 {
		return ""
	}
	cores, ok := x.search.Apart(load.Level())
	if !ok {
		return ""
	}
	sum := 0
	var needs []string
	for i, p := range x.parts {
		sum += cores[i]
		needs = append(needs, fmt.Sprintf("%s for %s", words.Count(cores[i], "core"), p.name))
	}
	last := len(needs) - 1
	list := needs[last]
	if last > 0 {
		list = strings.Join(needs[:last], ", ") + " and " + list
	}
	return fmt.Sprintf("At scale %.4g, servers of their own would need %s, %d in all, by the service times; this server has %d.",
		load.Level(), list, sum, x.settings.Space.Facts.Cores)
}

// conflict names the models whose limits cannot hold together at the lowest scale, if no configuration keeps all
// there. It returns "" if all would fit on cores of their own.
func (x *Explorer) conflict() string {
	if x.search == nil {
		return ""
	}
	lowest := x.settings.Space.Load.First()
	if answer, leads := x.search.Answer(); leads && answer.Scale >= lowest {
		return ""
	}
	if err := x.search.Fits(lowest); err != nil {
		return "By the service times, this server " + err.Error() + "."
	}
	return ""
}

// Notes are sentences about the search: its omissions, and the reason of its end.
func (x *Explorer) Notes() []string {
	var list []string
	unseen := 0
	for _, p := range x.parts {
		unseen += p.unseen
	}
	if unseen > 0 {
		list = append(list, fmt.Sprintf("The space is so large that the search stayed with the fastest engine processes of each model: it never looked at the other configurations, %d at most.", unseen))
	}
	if note := x.conflict(); note != "" {
		list = append(list, note)
	}
	if next := x.Ask(); next.Stop {
		list = append(list, "The search is over: "+next.Why+".")
	}
	return list
}
