package plan

import (
	"math"
	"slices"

	"tuner/search"
)

const (
	rounds      = 4  // of finals, where the budget allows
	allRounds   = 12 // with those for members whose best load moves, and for figures that are still vague
	confirmed   = 2  // trials that a member needs at its load
	telling     = 3  // trials at a load that count more than what is believed of it
	runnersUp   = 2  // at most
	maxMembers  = 2 + runnersUp
	maxAdmitted = 2    // further members, where these turn out worse than believed
	contention  = 0.10 // a runner-up is within this of the leader: single windows differ by so much by chance
	longer      = 2    // windows of the finals are longer by this factor
	maxWindows  = 3    // of one launch in the finals
)

// turnsPerBlock is how many windows each seat of a block has on its launch: an even number, so that all are treated alike. A block of three then takes
// about 20 s, of which 9 s are windows. More of them on one launch would say less of what launches differ by.
const turnsPerBlock = 6

// takesTurns reports whether finals are measured in blocks of turns. A pause empties a queue, so that at a request rate it would hide that the queue
// grows.
func takesTurns(s search.Settings) bool { return s.Turns && !s.Space.Load.Rate }

// finals compares the best configurations and the default, each at its best load, on engine processes launched for each
// trial, in the order A B C, C B A, A B C, … so that slow changes of the machine hit all alike: where the server can be paused, the members of a round
// take turns within blocks (search.Settings.Block).
type finals struct {
	settings search.Settings
	believer Believer // nil where the explorer is none
	windows  int      // of each trial
	members  []member
	slot     int            // place in the order of trials
	first    int            // round in which the last of the members came in: rounds count from it
	single   bool           // blocks of turns are not to be had
	block    int            // that the last trial was a seat of; 0: none
	left     int            // of its seats, still to be told
	curve    []search.Event // of the curve phase
}

// newFinals chooses the members: the leader, what comes close to it, and the default.
func (p *Plan) newFinals() *finals {
	f := &finals{settings: p.settings, windows: p.finalWindows()}
	if !p.settings.Elsewhere { // what is believed of one server says nothing of another one's figures
		f.believer, _ = p.inner.(Believer)
	}
	ranked := slices.DeleteFunc(slices.Clone(p.inner.Ranked()), func(s search.Standing) bool { return !s.Point.Scored })
	rivals := 0 // runners-up so far
	for i, s := range ranked {
		isClose := s.Point.Passes() && rivals < runnersUp &&
			p.settings.Goal.Objective.Gain(ranked[0].Point.Score, s.Point.Score) >= -contention
		if i == 0 || isClose || s.Candidate.IsDefault() {
			f.members = append(f.members, newMember(s))
		}
		if i > 0 && isClose && !s.Candidate.IsDefault() {
			rivals++
		}
	}
	return f
}

// finalWindows is how many windows a launch is used for: as many as it takes that three fifths of the time are windows. A
// dearer launch is worth more of them (Kalibera and Jones, 2013: repeat most where the costs are least).
func (p *Plan) finalWindows() int {
	launch := p.costs.launches.all.or(guessedLaunch) + p.costs.serving.warmUp.or(guessedWarmUp)
	n := math.Round(1.5 * launch.Seconds() / (longer * p.settings.Window).Seconds())
	return min(max(int(n), 1), maxWindows)
}

// finalTrial is a trial with long windows on a fresh launch.
func finalTrial(s search.Settings, c search.Candidate, level float64, windows int) search.Trial {
	t := s.Trial(c, level, search.PhaseFinal)
	t.Windows = windows
	t.Window *= longer
	t.Fresh = true
	return t
}

// at returns the member whose turn it is at a place of the order.
func (f *finals) at(slot int) int {
	n := len(f.members)
	if i := slot % n; slot/n%2 == 0 {
		return i
	}
	return n - 1 - slot%n
}

// turn is the next place in the order whose member is still in, and false when the rounds are over. There are more rounds
// while a member's load is not settled, and with refine while the figures that will be reported are vague; and no more than it takes where
// nothing can be confirmed. One that came in later has as many.
func (f *finals) turn(refine bool) (slot int, ok bool) {
	all := rounds
	switch {
	case f.isVain():
		all = confirmed
	case slices.ContainsFunc(f.members, member.isOpen) || refine && f.isVague():
		all = allRounds
	}
	for slot := f.slot; slot < (f.first+all)*len(f.members); slot++ {
		if !f.members[f.at(slot)].out {
			return slot, true
		}
	}
	return 0, false
}

// isVain reports whether all members clearly miss the constraints: no more trials of them make anything of it.
func (f *finals) isVain() bool {
	return !slices.ContainsFunc(f.members, func(m member) bool { return !m.out && !m.isBeyond(f.settings.Goal) })
}

// isVague reports whether more trials would make the statement about the best and the default more certain.
func (f *finals) isVague() bool {
	best, ok := f.leader()
	return slices.ContainsFunc(f.members, func(m member) bool {
		c := m.standing.Candidate
		return (c.IsDefault() || ok && c.Key() == best.Candidate.Key()) && m.isVague(f.settings.Goal)
	})
}

// next returns what to measure next: one trial, or a block of turns. After the first round, a round is begun only when all of it is affordable. In the
// first, a block that is not affordable gives way to its first trial.
func (f *finals) next(affordable func([]search.Trial) bool, refine bool) (search.Action, bool) {
	slot, ok := f.turn(refine)
	if !ok {
		return search.Action{}, false
	}
	round := f.rest(slot)
	next := round[0]
	if n := len(f.members); slot < n {
		if next.Block != nil && !affordable(next.Block) {
			next = f.alone(slot)
		}
		return next, affordable(next.Trials())
	} else if slot%n != 0 {
		return next, affordable(next.Trials())
	}
	var trials []search.Trial
	for _, a := range round {
		trials = append(trials, a.Trials()...)
	}
	return next, affordable(trials)
}

// rest are the actions from a place in the order to the end of its round: blocks of turns, of as many seats each as can be, or single trials.
func (f *finals) rest(slot int) []search.Action {
	n := len(f.members)
	var actions []search.Action
	var seats []search.Trial
	for i := slot; i < (slot/n+1)*n; i++ {
		if m := f.members[f.at(i)]; !m.out {
			seats = append(seats, finalTrial(f.settings, m.standing.Candidate, m.current, f.windows))
			actions = append(actions, f.alone(i))
		}
	}
	if !takesTurns(f.settings) || f.single {
		return actions
	}
	actions = nil
	blocks := (len(seats) + search.MostSeats - 1) / search.MostSeats
	for ; blocks > 0; blocks-- {
		size := (len(seats) + blocks - 1) / blocks
		action := f.settings.Block(seats[:size], turnsPerBlock)
		if action.Why = "finals: a fresh launch by itself"; action.Block != nil {
			action.Why = "finals: fresh launches in turns"
		}
		actions, seats = append(actions, action), seats[size:]
	}
	return actions
}

// alone is the trial at a place in the order, measured by itself.
func (f *finals) alone(slot int) search.Action {
	m := f.members[f.at(slot)]
	return search.Action{Trial: finalTrial(f.settings, m.standing.Candidate, m.current, f.windows), Why: "finals: fresh launches one after the other"}
}

// tell enters a final trial.
func (f *finals) tell(e search.Event) {
	if slot, ok := f.turn(true); ok {
		f.seat(e.Trial.Block, slot)
		f.slot = slot + 1
	}
	if f.believer != nil {
		f.believer.Confirm(e)
	}
	i := slices.IndexFunc(f.members, func(m member) bool { return m.standing.Candidate.Key() == e.Trial.Candidate.Key() })
	if i >= 0 {
		level := f.members[i].current
		f.members[i].tell(e, f.settings.Goal, f.settings.Space.Load)
		f.follow(&f.members[i], level)
	}
	if f.left == 0 { // the others of a block are in the order already
		f.admit()
	}
}

// seat notes that a trial at a place in the order was told, of a block (0: measured alone). Where a block could not be measured in turns, no other is
// asked for.
func (f *finals) seat(block, slot int) {
	expected := len(f.rest(slot)[0].Trials())
	switch {
	case block == 0:
		f.left, f.single = 0, f.single || expected > 1
	case block != f.block:
		f.left = expected - 1
	default:
		f.left = max(0, f.left-1)
	}
	f.block = block
}

// admit makes a member of what is believed to be better than all members, after what the finals have shown of these, and is not what they refute; its
// first turn is in the same round.
func (f *finals) admit() {
	n := len(f.members)
	if f.believer == nil || n >= maxMembers+maxAdmitted {
		return
	}
	ranked := f.believer.Ranked()
	i := slices.IndexFunc(ranked, func(s search.Standing) bool { return s.Point.Passes() && !f.refutes(s) })
	if i < 0 || slices.ContainsFunc(f.members, func(m member) bool { return m.standing.Candidate.Key() == ranked[i].Candidate.Key() }) {
		return
	}
	if best, ok := f.leader(); ok && f.settings.Goal.Objective.Gain(best.Point.Score, ranked[i].Point.Score) <= worthIt-1 {
		return
	}
	round, place := f.slot/n, f.slot%n
	at := n
	if round%2 == 1 { // on the way back the last come first, so many have been: it is the next
		at = n - place
	}
	f.members = slices.Insert(f.members, at, newMember(ranked[i]))
	f.slot, f.first = round*(n+1)+place, round
}

// follow lets a member, after a trial at a level, go on where it is believed best, instead of where its final trials alone would have it:
// they are few. It stays at its level unless that is believed to miss the constraints, or another one to be worth it. Levels that the final
// trials refute are not believed in: what is reported are their figures.
func (f *finals) follow(m *member, level float64) {
	if f.believer == nil {
		return
	}
	now, isKnown := f.believer.Believed(m.standing.Candidate, level)
	ranked := f.believer.Ranked()
	i := slices.IndexFunc(ranked, func(s search.Standing) bool { return s.Candidate.Key() == m.standing.Candidate.Key() })
	if !isKnown || i < 0 || m.refutes(level, f.settings) || m.refutes(ranked[i].Point.Level, f.settings) {
		return
	}
	m.current = level
	if best := ranked[i].Point; !now.Passes() || f.settings.Goal.Objective.Gain(now.Score, best.Score) > worthIt-1 {
		m.current = best.Level
	}
}

// leader is the member with the best confirmed score within the constraints.
func (f *finals) leader() (search.Standing, bool) {
	var best search.Standing
	found := false
	for _, m := range f.members {
		s, ok := m.best(f.settings, f.judge)
		if ok && (!found || s.Point.Score > best.Point.Score) {
			best, found = s, true
		}
	}
	return best, found
}

// refutes reports whether what the search found of a configuration at its best load does not hold any more: its final trials at that load, or at
// a lower one that no higher load keeps, miss the constraints; or the finals have figures, which are of another server.
func (f *finals) refutes(s search.Standing) bool {
	return slices.ContainsFunc(f.members, func(m member) bool {
		switch l := m.at(s.Point.Level); {
		case f.settings.Elsewhere:
			return len(m.levels) > 0
		case m.standing.Candidate.Key() != s.Candidate.Key():
			return false
		case l != nil:
			return !f.judge(&m, *l).Passes()
		default:
			return m.refutes(s.Point.Level, f.settings)
		}
	})
}

// judge is what is to be thought of a member's final trials at a level: what is believed from all that is known, else, and where the finals refute
// it, what they show.
func (f *finals) judge(m *member, l confirmedLevel) search.Point {
	if f.believer != nil && !m.refutes(l.level, f.settings) {
		if p, ok := f.believer.Believed(m.standing.Candidate, l.level); ok {
			return p
		}
	}
	return f.settings.Goal.Judge(f.settings.Space.Load.At(l.level), l.pooled)
}
