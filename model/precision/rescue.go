package precision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tuner/internal/words"
	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
)

// probeRows is the number of rows for figures that are not reported. It is enough to order nodes by
// sensitivity, which differs much between nodes and little between rows. It is also enough to check
// whether a model gives repeatable results.
const probeRows = 32

// attempt is one model of a precision, with its result.
type attempt struct {
	model    *onnx.Model
	summary  rewrite.Summary
	kept     []KeptNode
	provider string // provider that judged it; "": none
	report   accuracy.Report
	miss     string
	settled  bool // judged, and no refusal affected the result
}

// left lists the candidates that were not converted for their own reasons.
func (a attempt) left() []rewrite.Kept {
	return slices.DeleteFunc(slices.Clone(a.summary.Kept), func(n rewrite.Kept) bool {
		return slices.ContainsFunc(a.kept, func(k KeptNode) bool { return k.Node == n.Node })
	})
}

// try converts the model with some nodes kept.
func (k *Maker) try(r rewriter, precision string, kept []KeptNode) (attempt, error) {
	names := make([]string, len(kept))
	for i, n := range kept {
		names[i] = n.Node
	}
	model, summary, err := r.convert(names)
	if errors.Is(err, rewrite.ErrNothing) && len(names) == 0 {
		if other, n := recipe.Instead(k.base, precision); other != "" {
			err = fmt.Errorf("%w; try %s, which converts %s", err, other, words.Count(n, "layer"))
		}
	}
	if err != nil {
		return attempt{}, &Unmakeable{precision, err}
	}
	return attempt{model: model, summary: summary, kept: kept}, nil
}

// judged judges an attempt on a provider.
func (k *Maker) judged(ctx context.Context, a attempt, provider string) (attempt, error) {
	var err error
	a.provider, a.settled = provider, true
	a.report, a.miss, err = k.judge(ctx, a.model, provider)
	return a, err
}

// secure judges a first attempt on the first provider that runs it. If it misses the limit, secure
// keeps nodes in fp32 for that provider.
func (k *Maker) secure(ctx context.Context, precision string, r rewriter, first attempt, providers []string) (attempt, error) {
	for _, provider := range providers {
		k.progress("%s: checking on %s", precision, provider)
		a, err := k.judged(ctx, first, provider)
		if errors.As(err, new(*RefusedError)) {
			continue
		}
		if err != nil || a.miss == "" || k.unfit != "" || !k.rescues(precision) {
			return a, err
		}
		return k.rescue(ctx, precision, r, a)
	}
	return first, nil
}

// rescue looks for the smallest number of the most sensitive nodes that must stay in fp32 to keep
// the limit. It doubles the number until the limit is kept, then bisects. Without success it
// returns the attempt unchanged, with the reason.
func (k *Maker) rescue(ctx context.Context, precision string, r rewriter, missed attempt) (attempt, error) {
	nodes, err := k.sensitivities(ctx, precision, r)
	switch {
	case isRefusal(err):
		missed.miss += "; the sensitivity of its nodes could not be measured: " + err.Error()
		missed.settled = errors.Is(err, ErrUnmakeable)
		return missed, nil
	case err != nil:
		return attempt{}, err
	}
	// with all of them there would be nothing to convert
	most := max(0, min(int(k.options.MaxKept*float64(len(nodes))), len(nodes)-1))
	fewest, last, err := fewestKept(most, func(n int) (attempt, error) {
		k.progress("%s: keeping %d of %d nodes in fp32", precision, n, len(nodes))
		a, err := k.try(r, precision, nodes[:n])
		if err == nil {
			a, err = k.judged(ctx, a, missed.provider)
		}
		if isRefusal(err) {
			return attempt{miss: err.Error(), settled: errors.Is(err, ErrUnmakeable)}, nil
		}
		return a, err
	})
	switch {
	case err != nil:
		return attempt{}, err
	case fewest != nil:
		return *fewest, nil
	}
	missed.miss += k.vain(most, len(nodes), last)
	missed.settled = most == 0 || last.settled
	return missed, nil
}

// isRefusal reports whether an error is only about the model that was tried: it does not run, or
// cannot be made.
func isRefusal(err error) bool {
	return errors.As(err, new(*RefusedError)) || errors.Is(err, ErrUnmakeable)
}

// fewestKept tries numbers of kept nodes up to most. It returns the attempt with the fewest that
// keeps the limit, nil if none does. last is the last attempt, which kept the most.
func fewestKept(most int, try func(n int) (attempt, error)) (fewest *attempt, last attempt, err error) {
	missed, kept := 0, 0
	for missed < most && fewest == nil {
		n := min(max(1, 2*missed), most)
		if last, err = try(n); err != nil {
			return nil, last, err
		}
		if last.miss == "" {
			a := last
			fewest, kept = &a, n
		} else {
			missed = n
		}
	}
	for fewest != nil && kept-missed > 1 {
		n := (missed + kept) / 2
		a, err := try(n)
		if err != nil {
			return nil, last, err
		}
		if a.miss == "" {
			fewest, kept = &a, n
		} else {
			missed = n
		}
	}
	return fewest, last, nil
}

// vain explains that keeping nodes did not help.
func (k *Maker) vain(most, of int, last attempt) string {
	switch {
	case most == 0:
		return fmt.Sprintf("; none of its %d nodes may stay in fp32 (at most %.3g %%, and never all)", of, 100*k.options.MaxKept)
	case last.provider == "":
		return fmt.Sprintf("; with the %d most sensitive of %d nodes in fp32 there are no figures: %s", most, of, last.miss)
	}
	value, _ := k.options.Limit.Check(last.report)
	if math.IsNaN(value) {
		return fmt.Sprintf("; with the %d most sensitive of %d nodes in fp32 %s", most, of, last.miss)
	}
	return fmt.Sprintf("; with the %d most sensitive of %d nodes in fp32 it is %.6g", most, of, value)
}

// sensitivities measures the error of each candidate node's conversion on cpu. It returns the
// nodes, worst first.
func (k *Maker) sensitivities(ctx context.Context, precision string, r rewriter) ([]KeptNode, error) {
	probe, outputs, err := r.probe()
	if err != nil {
		return nil, &Unmakeable{precision, err}
	}
	k.progress("%s: measuring the sensitivity of %d nodes", precision, len(outputs))
	data := k.options.Data.Head(probeRows)
	sums := make(map[string]float64, len(outputs))
	err = k.eachBatch(ctx, probe, cpu, data, func(_, out map[string]inputs.Tensor) error {
		for node, name := range outputs {
			for _, v := range elements.Floats(out[name]) {
				sums[node] += v
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rank(sums, float64(data.Batches(batchRows))), nil
}

// rank orders nodes by their mean error, worst first, and equal ones by name. NaN is the worst
// error.
func rank(sums map[string]float64, n float64) []KeptNode {
	nodes := make([]KeptNode, 0, len(sums))
	for node, sum := range sums {
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			sum = math.MaxFloat64 // JSON has no infinity
		}
		nodes = append(nodes, KeptNode{node, sum / n})
	}
	slices.SortFunc(nodes, func(a, b KeptNode) int {
		return cmp.Or(cmp.Compare(b.Error, a.Error), cmp.Compare(a.Node, b.Node))
	})
	return nodes
}
