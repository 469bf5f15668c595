package figures

import (
	"fmt"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/search"
)

// Several models may divide a server's cores. Their configurations then name host policies, which the
// server's options define.

// ServeNote says with which options a server must start to serve the best configuration; "" if it needs
// none.
func ServeNote(r analyze.Result) string {
	best, ok := r.Winner()
	if options := best.ServerFlags(); ok && len(options) > 0 {
		return fmt.Sprintf("Each model has cores of its own, which the server's options define: %s.", strings.Join(options, " "))
	}
	return ""
}

// isDivided reports whether configurations of several models differ in how they share the cores.
func isDivided(r analyze.Result) bool {
	return slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return len(c.Policies) > 0 })
}

// coresCell prints the cores of each model: "1+3", or "shared".
func coresCell(c analyze.Config) string {
	if len(c.Policies) == 0 {
		return string(search.IsolationShared)
	}
	var counts []string
	for _, p := range c.Policies {
		counts = append(counts, fmt.Sprint(len(p.Cores)))
	}
	return strings.Join(counts, "+")
}
