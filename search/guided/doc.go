// Package guided is the strategy with a model of the server.
//
// A pool's service times are measured in a second. With them an event simulation of batcher and
// instances predicts every batcher setting under every load. The posterior corrects that by the
// trials. Pools whose bounds cannot reach the best are never started. The search measures the trial
// with the highest expected gain per time, until no trial is worth its time.
//
// After each event the steps are these. Each part has its own package or type, and passes small
// values to the next:
//
//	event ─▶ service    times of a batch of each size                ─▶ service curve
//	      ─▶ pools      opened pools, measurements, failures         ─▶ cells, histories
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
//	         appraiser  the worth of trials of a cell or a pool       ─▶ gain per second
//	           │
//	           ▼
//	         Guided     the trial that is worth most, or the end      ─▶ action
//
// The opener makes service trials, and the schedule knows the costs of trials. Package tuning has
// all parameters.
//
// Package guided stands inside search/plan, like every strategy. It never reads a clock: the next
// action is a function of the settings and the events alone. The reasons are in
// docs/design/search.md.
package guided
