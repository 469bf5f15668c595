// Package guided is the strategy that knows how a server works.
//
// A pool's service times, measured in a second, tell an event simulation of batcher and instances what every batcher setting
// does under every load. The posterior corrects that by what was measured. Pools whose bounds cannot reach the best are never
// started. The search measures what is expected to bring most for its time, until nothing is worth a trial.
//
// After each event the steps are these. Each part has a package or a type of its own, and passes small values to the next:
//
//	event ─▶ service    what a batch of each size takes              ─▶ service curve
//	      ─▶ pools      what was opened and measured, what failed     ─▶ cells, histories
//	           │
//	           ▼
//	         predict    queue simulation, bounds, forecasts           ─▶ results, outlines
//	           │
//	           ▼
//	         belief     corrected by trials, judged by the goal       ─▶ beliefs
//	           │
//	           ▼
//	         surveyor   which cells may matter, and which one leads   ─▶ survey
//	           │
//	           ▼
//	         appraiser  what trials of a cell or a pool are worth     ─▶ gain per second
//	           │
//	           ▼
//	         Guided     the trial that is worth most, or the end      ─▶ action
//
// The opener makes service trials, the schedule knows what trials cost. Package tuning has all numbers by which they decide.
//
// Package guided stands inside search/plan, like every strategy. It never looks at a clock: what is next is a function of the
// settings and the events alone. The reasons are in docs/design/search.md.
package guided
