package packing

import (
	"fmt"
	"strings"

	"tuner/internal/words"
)

// Conflict is the error of limits that cannot hold together.
type Conflict struct {
	Models []string // the fewest models whose limits cannot hold: one, a pair, or more; in the order of the list
	// Needs are the least cores on which each of them keeps its limits at the scale; 0: none suffice.
	Needs []int
	Cores int     // of the server
	Scale float64 // multiple of the loads; 0: any
}

// Error names the models, what they need, and what would help.
func (c *Conflict) Error() string {
	names := make([]string, len(c.Models))
	for i, name := range c.Models {
		names[i] = fmt.Sprintf("%q", name)
	}
	who := strings.Join(names, " and ")
	if len(names) > 1 {
		who += " together"
	}
	return fmt.Sprintf("cannot keep the limits of %s: %s; allow longer latencies, or send fewer requests", who, c.reason())
}

// reason says why the limits cannot hold.
func (c *Conflict) reason() string {
	at := "at any load"
	if c.Scale > 0 {
		at = fmt.Sprintf("at %.3g × the load", c.Scale)
	}
	if len(c.Models) == 1 {
		return fmt.Sprintf("on %s they do not hold %s", words.Count(c.Cores, "core"), at)
	}
	needs := make([]string, len(c.Needs))
	for i, n := range c.Needs {
		needs[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("%s they need %s of %s", at, strings.Join(needs, " + "), words.Count(c.Cores, "core"))
}
