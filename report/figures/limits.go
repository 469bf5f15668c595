package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/analyze/bottleneck"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/ort/provider"
	"tuner/search/verdict"
)

// limitations names the bottleneck of the best configuration, of the other finalists and of the
// default.
func limitations(r analyze.Result) Section {
	if len(r.Models) > 0 {
		return severalLimits(r)
	}
	s := Section{Title: "What limits it"}
	if r.IsPipeline() {
		s.Lines, s.Heads, s.Cells = pipelineLines(r), stageHeads(), stageCells(r.Explanation.Subjects[0])
		return s
	}
	for i, subject := range r.Explanation.Subjects {
		c := configOf(r, subject)
		if i == 0 {
			s.Lines = append(s.Lines, latencyLines(subject)...)
			s.Lines = append(s.Lines, strings.TrimSpace(bottleneckText(r, subject, c)+" "+adviceText(r, subject, c)))
			if r.At == nil { // otherwise the user chose the load
				s.Lines = append(s.Lines, higherText(r, subject))
			}
			continue
		}
		name := ShortName(r, c)
		if c.Candidate.IsDefault() {
			name = "The default"
		}
		lines := append(latencyLines(subject), bottleneckText(r, subject, c))
		s.Lines = append(s.Lines, name+", for comparison. "+strings.Join(lines, " "))
	}
	return s
}

// latencyLines describe the parts of a request's latency.
func latencyLines(s analyze.Subject) []string {
	b := s.Breakdown
	if b == nil || b.Latency <= 0 {
		return nil
	}
	part := func(name string, seconds float64) string {
		return fmt.Sprintf("%s %s (%.0f %%)", name, measure.LatencyAvg.Format(seconds), 100*seconds/b.Latency)
	}
	parts := []string{part("queue", b.Queue)}
	if b.ComputeInput+b.ComputeOutput >= 0.01*b.Latency {
		parts = append(parts, part("compute input", b.ComputeInput), part("compute infer", b.ComputeInfer), part("compute output", b.ComputeOutput))
	} else {
		parts = append(parts, part("compute", b.Compute()))
	}
	parts = append(parts, part("client, wire and front end", b.Outside))
	return []string{fmt.Sprintf("At %s a request takes %s on average: %s.", s.Load, measure.LatencyAvg.Format(b.Latency), strings.Join(parts, ", "))}
}

// bottleneckText names the bottleneck of a configuration, with the figures that show it.
func bottleneckText(r analyze.Result, s analyze.Subject, c analyze.Config) string {
	b := s.Breakdown
	switch s.Bottleneck {
	case bottleneck.Memory:
		x := r.Explanation.Barred
		return fmt.Sprintf("Memory limits it: %s at %s would be %.1f %% better in %s, but its %s.", x.Name, x.Load, tenths(x.Change), GainOf(r), verdict.MissesText(x.Misses))
	case bottleneck.Compute:
		return fmt.Sprintf("Compute limits it: %s.", busyText(*b, c))
	case bottleneck.Queue:
		return fmt.Sprintf("The queue limits it: requests wait for longer than their computation takes, although only %s.", busyText(*b, c))
	case bottleneck.Client:
		if text := generatorText(c.Best.Flags); text != "" {
			return fmt.Sprintf("The client limits it: %s. The server may do more than these figures say.", text)
		}
		return fmt.Sprintf("Client, wire and front end limit it: a request spends most of its time there, while only %s.", busyText(*b, c))
	case bottleneck.Load:
		return fmt.Sprintf("Nothing is saturated: %s. The load asks for no more.", busyText(*b, c))
	}
	return "What limits it is not known: the server's statistics are missing."
}

// busyText says how busy instances and cores are.
func busyText(b bottleneck.Breakdown, c analyze.Config) string {
	verb := "are"
	if b.Instances == 1 {
		verb = "is"
	}
	text := fmt.Sprintf("%.2f of %s %s busy on average", min(b.Busy, float64(b.Instances)), words.Count(b.Instances, "instance"), verb)
	if b.MeanBatch > 0 && c.Setup.MaxBatchSize > 1 {
		text += fmt.Sprintf(", in batches of %.1f (%d at most)", b.MeanBatch, c.Setup.MaxBatchSize)
		text += batchesText(b.Batches)
	}
	if b.EngineCPU > 0 {
		text += fmt.Sprintf("; the engine uses %.2f cores, the load generator %.2f", b.EngineCPU, b.ClientCPU)
	}
	return text
}

// batchesText names the batch sizes that ran most often; "" where there are fewer than two, or the
// server does not report them.
func batchesText(batches []bottleneck.BatchShare) string {
	const most = 3
	if len(batches) < 2 {
		return ""
	}
	often := slices.SortedStableFunc(slices.Values(batches), func(x, y bottleneck.BatchShare) int { return cmp.Compare(y.Share, x.Share) })
	var parts []string
	for _, b := range often[:min(most, len(often))] {
		if b.Share < 0.005 { // it would print as 0 %
			break
		}
		parts = append(parts, fmt.Sprintf("%d in %.0f %%", b.Size, 100*b.Share))
	}
	return ", of size " + strings.Join(parts, ", ") + " of the executions"
}

// adviceText says what would relieve a bottleneck; "" where no remedy is known.
func adviceText(r analyze.Result, s analyze.Subject, c analyze.Config) string {
	switch s.Bottleneck {
	case bottleneck.Compute:
		return computeAdvice(r, s, c)
	case bottleneck.Queue:
		if d := c.Setup.QueueDelay; d > 0 {
			return fmt.Sprintf("The batcher may delay a request by %s to wait for others; a shorter max_queue_delay, or more load, shortens that.", delayCell(d))
		}
		return "Requests arrive unevenly: some wait for a batch to end while other instances are idle."
	}
	return ""
}

// cheaperText names ways to reduce the work of busy instances. It names larger batches only if the
// service curve shows a gain.
func cheaperText(curve *analyze.ServiceCurve, c analyze.Config) string {
	if gain, ok := batchingGain(curve, c); ok && gain >= worthBatching {
		return "Only cheaper work (a lower precision, another execution provider, larger batches) or"
	}
	return "Only cheaper work (a lower precision, another execution provider) or"
}

// worthBatching is the smallest relative gain of a larger batch that reports mention. It is about
// the noise of a window.
const worthBatching = 0.05

// batchingGain compares the time per inference in the largest batch of the service curve with that
// in the configuration's largest batch. A gain of 0.2 means 20 % less time. It returns false if the
// curve has no larger batch.
func batchingGain(curve *analyze.ServiceCurve, c analyze.Config) (float64, bool) {
	if curve == nil || len(curve.Sizes) == 0 || c.Setup.MaxBatchSize == 0 {
		return 0, false
	}
	now, most := -1, len(curve.Sizes)-1
	for i, size := range curve.Sizes {
		if size <= c.Setup.MaxBatchSize {
			now = i
		}
	}
	if now < 0 || now == most {
		return 0, false
	}
	each := func(i int) float64 { return curve.Alone[i] / float64(curve.Sizes[i]) }
	return 1 - each(most)/each(now), true
}

// computeAdvice names remedies for busy instances: idle cores, less work, or more cores.
func computeAdvice(r analyze.Result, s analyze.Subject, c analyze.Config) string {
	b, cheaper := *s.Breakdown, cheaperText(s.Curve, c)
	others := (b.Foreign + b.Steal) * float64(r.Cores)
	idle := float64(r.Cores) - b.EngineCPU - b.ClientCPU - others
	switch {
	case b.GPU >= bottleneck.Saturated:
		return fmt.Sprintf("The GPU computes for %.0f %% of the time. %s another GPU would give more.", 100*b.GPU, cheaper)
	case provider.OnGPU(c.Setup.Provider) || b.EngineCPU == 0 || r.Cores == 0:
		return "More instances give more if the resource that they share is not saturated."
	case idle <= (1-bottleneck.Saturated)*float64(r.Cores):
		text := fmt.Sprintf("The %s are busy", words.Count(r.Cores, "core"))
		if others >= leastWithheld*float64(r.Cores) {
			text += fmt.Sprintf(", and other work takes %.2f of them", others)
		}
		return fmt.Sprintf("%s. %s more cores would give more.", text, cheaper)
	}
	text := fmt.Sprintf("%.1f of %s are idle; more instances or threads could use them", idle, words.Count(r.Cores, "core"))
	if len(r.Explanation.Knobs) > 0 {
		text += ", and the knobs below show the effect"
	}
	return text + "."
}

// generatorText returns the first flag that reports a load generator that was too slow; "" without
// one.
func generatorText(flags []measure.Flag) string {
	for _, f := range []measure.Flag{measure.FlagClientCPU, measure.FlagSendDelay, measure.FlagLate} {
		if slices.Contains(flags, f) {
			return f.Text()
		}
	}
	return ""
}

// higherText explains why a configuration's load is not higher.
func higherText(r analyze.Result, s analyze.Subject) string {
	switch h := s.Higher; {
	case h != nil && len(h.Misses) > 0:
		return fmt.Sprintf("Why no higher load: at %s, the next that was measured, %s.", h.Load, verdict.MissesText(h.Misses))
	case h != nil && h.Change <= 0:
		return fmt.Sprintf("Why no higher load: at %s, the next that was measured, it is %.1f %% worse in %s.", h.Load, tenths(-h.Change), GainOf(r))
	case h != nil:
		return higherDoubt(r, s, *h)
	case s.IsHighest:
		return "Why no higher load: the profile has none, so none was measured."
	}
	return "No higher load was measured."
}

// higherDoubt explains why a higher load that looks better is not recommended.
func higherDoubt(r analyze.Result, s analyze.Subject, h analyze.Higher) string {
	for _, p := range configOf(r, s).Points {
		if kept := p.Probability(); p.Load == h.Load && len(p.Chances) > 0 && kept < r.Verdict.Confidence {
			return fmt.Sprintf("Why no higher load: at %s, the next that was measured, the limits are kept with a probability of %s.", h.Load, verdict.Percent(kept))
		}
	}
	return fmt.Sprintf("Why no higher load: at %s, the next that was measured, it is %.1f %% better in %s, which is too uncertain.", h.Load, tenths(h.Change), GainOf(r))
}
