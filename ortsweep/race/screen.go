package race

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tuner/ort/sessionoption"
	"tuner/search"
)

// block has knobs that change together, because one has no effect without the other, or because
// they interact.
type block struct{ knobs []search.Knob }

// near is the ratio to the best above which threads and artifacts still count as relevant, since
// they interact.
const near = 0.85

// mostScreened limits the product of a block. A larger block changes one knob at a time.
const mostScreened = 12

// mostProduct is the number of combinations that race in the product.
const mostProduct = 6

// group returns a knob's position in the order of screening: threads, artifact, all others.
func group(k search.Knob) int {
	switch {
	case k.Name == search.KnobIntraOpThreads:
		return 0
	case k.Scope == search.ScopeArtifact:
		return 1
	}
	return 2
}

// groups puts the knobs into blocks, and the blocks into groups that are screened one after the
// other. The knobs after threads and artifact are split into groups that one design can
// distinguish.
func groups(knobs []search.Knob) [][]block {
	list := make([][]block, 3)
	freedom := 0
	for _, b := range blocksOf(knobs) {
		at := group(b.knobs[0])
		if at == 2 {
			if freedom += b.size() - 1; freedom > designFreedom && len(list[len(list)-1]) > 0 {
				list, freedom = append(list, nil), b.size()-1
			}
			at = len(list) - 1
		}
		list[at] = append(list[at], b)
	}
	if len(list[0])*len(list[1]) > 0 { // threads again, around the best artifact, since the two interact
		list = slices.Insert(list, 2, list[0])
	}
	return slices.DeleteFunc(list, func(g []block) bool { return len(g) == 0 })
}

// screens returns the groups to screen, in their order. If the time is too short for one round of
// all, threads are screened only once, around the best artifact, which matters more. The last
// groups may be left out (nextGroup).
func (r *Race) screens() [][]block {
	list := groups(r.settings.Knobs)
	launches := 0
	for _, g := range list {
		if group(g[0].knobs[0]) == 2 {
			launches += designRuns
			continue
		}
		for _, b := range g {
			launches += b.size() - 1
		}
	}
	cost := time.Duration(launches) * r.costs.expect(needEngine, r.settings.Window)
	isTwice := len(list) > 2 && group(list[0][0].knobs[0]) == group(list[2][0].knobs[0])
	if isTwice && r.settings.Budget > 0 && cost > r.phaseEnd(PhaseScreen) {
		return list[1:]
	}
	return list
}

// weight returns a group's share of the time for screening, relative to others.
func weight(g []block) float64 {
	return [...]float64{1, 2, 4}[group(g[0].knobs[0])]
}

// size returns the number of the block's assignments, including unset ones.
func (b block) size() int {
	n := 1
	for _, k := range b.knobs {
		n *= len(k.Values) + 1
	}
	return n
}

// blocksOf groups the knobs that belong together: runtime, provider and precision; execution mode
// and inter-op threads.
func blocksOf(knobs []search.Knob) []block {
	var list []block
	at := map[string]int{}
	for _, k := range knobs {
		name := k.Name
		if k.Scope == search.ScopeArtifact {
			name = "artifact"
		} else if needs := sessionoption.Of(name).Needs.Option; needs != "" {
			name = needs
		}
		if i, ok := at[name]; ok {
			list[i].knobs = append(list[i].knobs, k)
			continue
		}
		at[name] = len(list)
		list = append(list, block{[]search.Knob{k}})
	}
	return list
}

// without returns a candidate with a knob unset.
func without(c search.Candidate, knob string) search.Candidate {
	return search.NewCandidate(slices.DeleteFunc(c.Settings(), func(s search.Setting) bool { return s.Knob == knob })...)
}

// variations returns all assignments of the block's knobs in a candidate, including unset ones. If
// the product is too large, it returns those that change one knob.
func (b block) variations(c search.Candidate) []search.Candidate {
	list := []search.Candidate{c}
	for _, k := range b.knobs {
		from := list
		if b.size() > mostScreened {
			from = []search.Candidate{c}
		}
		for _, at := range from {
			list = append(list, without(at, k.Name))
			for _, v := range k.Values {
				list = append(list, at.With(k.Name, v))
			}
		}
	}
	return list
}

// change is the screening's result for one assignment of a block, compared with the best candidate
// at the start of the heat.
type change struct {
	block    block
	settings []search.Setting
	effect   float64 // log ratio
	doubt    float64 // its standard error; 0 for an effect that was drawn towards zero
}

// sorted returns a candidate with its settings in the order of the knobs, so that equal candidates
// have equal keys.
func (r *Race) sorted(c search.Candidate) search.Candidate {
	var settings []search.Setting
	for _, k := range r.settings.Knobs {
		if v, ok := c.Get(k.Name); ok {
			settings = append(settings, search.Setting{Knob: k.Name, Value: v})
		}
	}
	return search.NewCandidate(settings...)
}

// legal returns the distinct canonical candidates among the given ones, and records which are left
// out.
func (r *Race) legal(raw []search.Candidate) []search.Candidate {
	var list []search.Candidate
	seen := map[string]bool{}
	for _, c := range raw {
		canonical, out := r.settings.Canonical(r.sorted(c))
		if out != "" {
			r.leaveOut(r.sorted(c), out)
			continue
		}
		if key := canonical.Key(); !seen[key] {
			seen[key] = true
			list = append(list, canonical)
		}
	}
	return list
}

// leaveOut records a candidate once.
func (r *Race) leaveOut(c search.Candidate, reason string) {
	if r.noted == nil {
		r.noted = map[string]bool{}
	}
	if key := c.Key(); !r.noted[key] {
		r.noted[key] = true
		r.outs = append(r.outs, Out{c, reason})
	}
}

// mostExpanded limits the number of combinations that a product tries.
const mostExpanded = 4096

// product returns every legal combination of the blocks. whole is false if there are more than
// limit, or too many to expand.
func (r *Race) product(blocks []block, limit int) (list []search.Candidate, whole bool) {
	raw := []search.Candidate{{}}
	for _, b := range blocks {
		for _, k := range b.knobs {
			from := raw
			for _, c := range from {
				for _, v := range k.Values {
					raw = append(raw, c.With(k.Name, v))
				}
			}
			if len(raw) > mostExpanded {
				return nil, false
			}
		}
	}
	list = r.legal(raw)
	if len(list) > limit {
		r.outs, r.noted = nil, nil
		return nil, false
	}
	return list, true
}

// nextGroup begins the screening of the next group that has something to compare and that fits into
// the time. Otherwise it continues with the product.
func (r *Race) nextGroup() {
	for len(r.blocks) > 0 {
		blocks := r.blocks[0]
		r.blocks = r.blocks[1:]
		var candidates []search.Candidate
		var d *design
		if group(blocks[0].knobs[0]) == 2 {
			d = r.newDesign(blocks)
			candidates = d.runs
		} else {
			candidates = []search.Candidate{r.best}
			for _, b := range blocks {
				candidates = append(candidates, b.variations(r.best)...)
			}
			candidates = r.legal(candidates)
		}
		if len(candidates) < 2 {
			continue
		}
		if len(r.heats) > 0 && !r.hasTime(PhaseScreen, candidates) {
			r.isCut = r.isCut || slices.ContainsFunc(blocks, func(b block) bool { return r.known(b) < 0 })
			continue
		}
		// Each group has its share of the phase's remaining time.
		rest := weight(blocks)
		for _, g := range r.blocks {
			rest += weight(g)
		}
		done := float64(r.elapsed) / max(1, float64(r.phaseEnd(PhaseScreen)))
		r.begin(PhaseScreen, candidates, done+(1-done)*weight(blocks)/rest)
		h := r.heat()
		h.screened, h.from, h.design = blocks, r.best, d
		return
	}
	r.beginProduct()
}

// learn evaluates a screening heat: the effects of each block's assignments, and the best candidate
// now.
func (r *Race) learn(h *heat) {
	from := h.entrant(h.from)
	if from == nil || from.failure != "" || len(from.scores) == 0 {
		return
	}
	if h.design != nil {
		for _, options := range h.design.changes(h) {
			r.conclude(options)
		}
		return
	}
	top := 0.0
	if lead := h.leader(); lead != nil && lead != from && lead.ratio(from).Value > 1 {
		top = math.Log(lead.ratio(from).Value)
		r.best = lead.candidate // the next groups are screened around the likely best
	}
	for _, b := range h.screened {
		var options []change
		for _, e := range h.entrants {
			if len(e.scores) == 0 || e.failure != "" || !differsOnlyIn(e.candidate, h.from, b) {
				continue
			}
			effect := 0.0
			if e != from {
				effect = math.Log(e.ratio(from).Value)
			}
			if effect >= top+math.Log(near) {
				doubt := math.Sqrt(2 * h.noise() / float64(len(e.scores)))
				options = append(options, change{settings: assignment(e.candidate, b), block: b, effect: effect, doubt: doubt})
			}
		}
		r.conclude(options)
	}
}

// conclude records the effects of a block's assignments, and replaces earlier ones.
func (r *Race) conclude(options []change) {
	if len(options) == 0 {
		return
	}
	if i := r.known(options[0].block); i >= 0 {
		r.changes[i] = options
		return
	}
	r.changes = append(r.changes, options)
}

// known returns the index of a block's changes, and -1 if they are unknown.
func (r *Race) known(b block) int {
	return slices.IndexFunc(r.changes, func(options []change) bool { return options[0].block.knobs[0].Name == b.knobs[0].Name })
}

// assignment returns a candidate's settings in a block.
func assignment(c search.Candidate, b block) []search.Setting {
	var part []search.Setting
	for _, s := range c.Settings() {
		if b.has(s.Knob) {
			part = append(part, s)
		}
	}
	return part
}

func (b block) has(knob string) bool {
	return slices.ContainsFunc(b.knobs, func(k search.Knob) bool { return k.Name == knob })
}

// differsOnlyIn reports whether two candidates are equal outside of a block.
func differsOnlyIn(a, b search.Candidate, in block) bool {
	rest := func(c search.Candidate) string {
		return search.NewCandidate(slices.DeleteFunc(c.Settings(), func(s search.Setting) bool { return in.has(s.Knob) })...).Key()
	}
	return rest(a) == rest(b)
}

// combination is a candidate under construction, with the sum of its parts' effects.
type combination struct {
	candidate search.Candidate
	effect    float64
}

// beginProduct races the combinations of what mattered, those with the largest sum of effects
// first.
func (r *Race) beginProduct() {
	sums := []combination{{r.best, 0}}
	for _, options := range r.changes {
		var next []combination
		for _, c := range sums {
			for _, o := range options {
				next = append(next, combination{assign(c.candidate, o), c.effect + o.effect})
			}
		}
		slices.SortStableFunc(next, func(a, b combination) int { return cmp.Compare(b.effect, a.effect) })
		if len(next) > 0 {
			sums = next[:min(len(next), mostExpanded/(1+len(r.settings.Knobs)))]
		}
	}
	raw := []search.Candidate{r.plain(worthwhile), r.plain(essential)}
	promised := promises{}
	for _, c := range sums {
		raw = append(raw, c.candidate)
		if list := r.legal([]search.Candidate{c.candidate}); len(list) == 1 {
			if _, known := promised[list[0].Key()]; !known { // the largest sum comes first
				promised[list[0].Key()] = c.effect
			}
		}
	}
	list := r.legal(raw)
	list = list[:min(len(list), mostProduct)]
	r.begin(PhaseProduct, list, 1)
	r.heat().promises = promised
	if r.late(r.heat()) {
		r.endHeat(r.heat())
	}
}

// worthwhile is the log effect from which a setting is worth having. essential is the one from
// which it is always wanted.
const (
	worthwhile = 0.01
	essential  = 0.03
)

// plain returns the combination of settings whose gain exceeds the noise: the best of each block,
// or unset if it gains little.
func (r *Race) plain(little float64) search.Candidate {
	c := r.best
	for _, options := range r.changes {
		best := slices.MaxFunc(options, func(a, b change) int { return cmp.Compare(a.effect, b.effect) })
		for _, o := range options {
			if len(o.settings) < len(best.settings) && o.effect > best.effect-max(little, o.doubt) {
				best = o
			}
		}
		c = assign(c, best)
	}
	return c
}

// assign sets a block of a candidate.
func assign(c search.Candidate, to change) search.Candidate {
	for _, k := range to.block.knobs {
		c = without(c, k.Name)
	}
	for _, s := range to.settings {
		c = c.With(s.Knob, s.Value)
	}
	return c
}
