package precision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tuner/internal/hostinfo"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/batch"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
)

// Maker makes the variants of one source. It is not safe for concurrent use.
type Maker struct {
	source *onnx.Model
	// base: start of the recipes: the source, with a symbolic batch dimension if requested
	base   *onnx.Model
	freed  bool   // base has a symbolic batch dimension and the source does not
	digest string // of the source
	// batch: fixed first dimension that the source's inputs share: rows per request; 1 without one
	batch  int64
	data   string // digest of the data
	memory int64  // memory that this process can have, in bytes; 0: unknown

	open      Opener
	options   Options
	rewriters func(ctx context.Context, precision string) (rewriter, error) // newRewriter, except in tests

	reference accuracy.Outputs // of the source on cpu; nil until it is needed
	labels    []int64          // labels of the data, if they match an output of the reference
	unfit     string           // reason why the limit applies to none of the reference's outputs; "" if it does
}

// NewMaker prepares the making of a source's variants. A *SourceError means that the source has
// none.
func NewMaker(source *onnx.Model, open Opener, o Options) (*Maker, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	if err := CheckSource(source, o.Libraries); err != nil {
		return nil, err
	}
	if o.Limit != nil && o.Limit.NeedsLabels() && o.Data.Labels == nil {
		return nil, &SourceError{Path: source.Path(), Err: fmt.Errorf("the limit is on %s, and the data %q has no labels; "+
			"add an array named label with the class of each row, counted from 0", o.Limit.Metric, o.Data.Name)}
	}
	digest, err := source.Digest()
	if err != nil {
		return nil, err
	}
	k := &Maker{source: source, base: source, digest: digest, batch: fixedBatch(source), data: o.Data.Digest(),
		memory: hostinfo.UsableMemory(), open: open, options: o}
	k.rewriters = k.newRewriter
	if o.FreeBatch && !inputs.Batches(source) {
		switch freed, err := batch.Symbolic(source); {
		case err == nil:
			k.base, k.freed = freed, true
		case !errors.Is(err, rewrite.ErrNothing):
			return nil, &SourceError{Path: source.Path(), Err: err}
		}
	}
	return k, nil
}

func checkOptions(o Options) error {
	switch {
	case o.Data.Rows < 1:
		return errors.New("cannot judge variants without data: the dataset has no rows")
	case !(o.MaxKept >= 0 && o.MaxKept <= 1):
		return fmt.Errorf("cannot keep a share of %v of the nodes: it must be from 0 to 1", o.MaxKept)
	case o.WeightBits != 0 && o.WeightBits != 7 && o.WeightBits != 8:
		return fmt.Errorf("cannot make weights of %d bits: only 7 and 8 are possible", o.WeightBits)
	case o.Cache == "":
		return errors.New("cannot make variants without a cache folder")
	case o.Limit != nil:
		return o.Limit.Validate()
	}
	return nil
}

// Make returns the variant of a precision, judged on the providers that will serve it, in that
// order. If it misses the accuracy limit on the first provider that runs it, its most sensitive
// nodes are kept in fp32. An *Unmakeable means that there is no such variant. Other errors are not
// the variant's fault.
func (k *Maker) Make(ctx context.Context, precision string, providers []string) (Variant, error) {
	if precision == recipe.Original && !k.freed {
		return k.Check(ctx, recipe.Original, k.source, providers)
	}
	id := k.keyOf(precision)
	id.Settings = k.settingsOf(ctx, precision)
	if k.rescues(precision) {
		id.MaxKept = k.options.MaxKept
	}
	store, e, err := k.find(id, providers)
	made := e == nil
	if err == nil && made {
		store, e, err = k.make(ctx, id, providers)
	}
	if err != nil {
		return Variant{}, err
	}
	v, err := k.judgeAll(ctx, store, e, providers, made)
	if err != nil || !overtaken(v, store.key.Provider, providers) {
		return v, err
	}
	if store, e, err = k.make(ctx, id, providers); err != nil {
		return Variant{}, err
	}
	return k.judgeAll(ctx, store, e, providers, true)
}

// rescues reports whether nodes of a precision may be kept in fp32 for the limit.
func (k *Maker) rescues(precision string) bool {
	return k.options.Limit != nil && k.options.MaxKept > 0 && rowOf(precision).Probe != nil
}

// find looks for a variant in the cache. If nodes are kept, it looks for one whose nodes were
// chosen on the first provider, or else on the next ones. If it finds nothing, the entry is nil.
func (k *Maker) find(id key, providers []string) (cache, *entry, error) {
	if !k.rescues(id.Precision) {
		providers = []string{""}
	}
	for _, id.Provider = range providers {
		store, err := newCache(k.options.Cache, id)
		if err != nil {
			return cache{}, nil, err
		}
		if e := store.find(); e != nil {
			return store, e, nil
		}
	}
	return cache{}, nil, nil
}

// overtaken reports whether a provider runs the variant that comes before the provider on which
// nodes were chosen to stay in fp32. The first provider makes the choice, and an earlier refusal
// must not change that.
func overtaken(v Variant, chosenOn string, providers []string) bool {
	return slices.ContainsFunc(providers[:max(0, slices.Index(providers, chosenOn))], func(provider string) bool {
		_, ran := v.Accuracy[provider]
		return ran
	})
}

// make makes a variant's model, keeps nodes in fp32 if needed, and stores it in the cache. If a
// refusal affected the result, it is stored where nothing looks for it, since the provider may run
// the variant another time.
func (k *Maker) make(ctx context.Context, id key, providers []string) (cache, *entry, error) {
	k.progress("%s: converting", id.Precision)
	r, err := k.rewriters(ctx, id.Precision)
	if err != nil {
		return cache{}, nil, err
	}
	a, err := k.try(r, id.Precision, nil)
	if err == nil && k.options.Limit != nil {
		a, err = k.secure(ctx, id.Precision, r, a, providers)
	}
	if err != nil {
		return cache{}, nil, err
	}
	if k.rescues(id.Precision) && a.settled {
		id.Provider = a.provider
	}
	store, err := newCache(k.options.Cache, id)
	if err != nil {
		return cache{}, nil, err
	}
	e := newEntry(a.model)
	e.Converted, e.Kept, e.Left, e.Notes = len(a.summary.Converted), a.kept, a.left(), k.notes(id.Precision, a.summary)
	if a.provider != "" {
		e.addReport(a.provider, a.report, a.miss)
	}
	return store, e, store.put(e)
}

// notes returns the rewrite's notes, one about the batch dimension, and one about ranges of random
// inputs.
func (k *Maker) notes(precision string, s rewrite.Summary) []string {
	var notes []string
	if k.freed {
		notes = append(notes, "its batch dimension is symbolic now; the original has a fixed one")
	}
	if rowOf(precision).Calibrated && k.calibration().Synthetic {
		notes = append(notes, fmt.Sprintf("its ranges come from %d rows of random inputs, and real inputs may exceed them: calibrate on your own data", k.calibration().Rows))
	}
	return append(notes, s.Notes...)
}

// Check judges a user's own model, or the source itself, on the providers that will serve it. It
// converts nothing. It caches the figures.
func (k *Maker) Check(ctx context.Context, name string, m *onnx.Model, providers []string) (Variant, error) {
	digest, err := m.Digest()
	if err != nil {
		return Variant{}, err
	}
	id := k.keyOf(name)
	id.Model = digest
	store, err := newCache(k.options.Cache, id)
	if err != nil {
		return Variant{}, err
	}
	e := store.findReceipt()
	made := e == nil
	if made {
		e = newEntry(m)
	}
	e.model = m
	if e.Digest, e.Bytes, err = identify(m); err != nil {
		return Variant{}, err
	}
	return k.judgeAll(ctx, store, e, providers, made)
}

// judgeAll judges an entry on the providers without cached figures, and returns the variant. With
// an error it returns the figures so far.
func (k *Maker) judgeAll(ctx context.Context, store cache, e *entry, providers []string, made bool) (Variant, error) {
	v := Variant{Precision: store.key.Precision, Path: e.model.Path(), Digest: e.Digest, Bytes: e.Bytes, Accuracy: map[string]accuracy.Report{},
		Rejected: map[string]string{}, Converted: e.Converted, Kept: e.Kept, Left: e.Left, Notes: e.Notes, FromCache: !made}
	changed := false
	for _, provider := range providers {
		if k.isReference(e.Digest, provider) {
			continue
		}
		if _, known := e.Reports[provider]; !known {
			k.progress("%s: checking on %s", v.Precision, provider)
			report, miss, err := k.judge(ctx, e.model, provider)
			var refused *RefusedError
			switch {
			case errors.As(err, &refused): // not stored: another time it may run
				v.Rejected[provider], v.FromCache = refused.Reason, false
				continue
			case err != nil && changed: // stores the known figures for the next time
				return v, errors.Join(err, store.update(e))
			case err != nil:
				return v, err
			}
			e.addReport(provider, report, miss)
			changed = true
		}
		v.Accuracy[provider] = e.Reports[provider]
		if miss := e.Missed[provider]; miss != "" {
			v.Rejected[provider] = miss
		}
	}
	v.Notes = slices.Concat(v.Notes, k.unjudged(v.Accuracy), lost(v.Accuracy))
	if changed {
		v.FromCache = false
		return v, store.update(e)
	}
	return v, nil
}

// unjudged adds notes about data and outputs of the original that cannot be used to judge a
// variant. They are the same on every provider.
func (k *Maker) unjudged(reports map[string]accuracy.Report) (notes []string) {
	misfit := false
	nonFinite := map[string]int{} // number of elements by output
	without := map[string]bool{}  // outputs to which the limit's metric does not apply
	for _, report := range reports {
		misfit = k.options.Data.Labels != nil && report.Labels == nil
		for name, f := range report.Outputs {
			nonFinite[name] = f.NonFiniteOriginal
		}
		if k.options.Limit != nil {
			for _, name := range k.options.Limit.Unjudged(report) {
				without[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(nonFinite)) {
		if n := nonFinite[name]; n > 0 {
			notes = append(notes, fmt.Sprintf("%d elements of the original's output %q are NaN or infinite: they are not compared", n, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(without)) {
		notes = append(notes, fmt.Sprintf("output %q is not judged: it has no %s", name, k.options.Limit.Metric))
	}
	if misfit {
		notes = append(notes, fmt.Sprintf("the labels of %q fit no output: they are not used", k.options.Data.Name))
	}
	return notes
}

// lost adds notes, by provider, about elements that a variant makes non-finite. The figures skip
// these elements, so they look as good as the rest.
func lost(reports map[string]accuracy.Report) (notes []string) {
	for _, provider := range slices.Sorted(maps.Keys(reports)) {
		outputs := reports[provider].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			if n := outputs[name].NonFinite; n > 0 {
				notes = append(notes, fmt.Sprintf("on %s, %d elements of output %q are NaN or infinite in the variant alone; the figures leave them out", provider, n, name))
			}
		}
	}
	return notes
}

// isReference reports whether a model on a provider is the reference of all comparisons.
func (k *Maker) isReference(digest, provider string) bool {
	return provider == cpu && digest == k.digest
}

// progress reports the current work.
func (k *Maker) progress(format string, args ...any) {
	if k.options.Progress != nil {
		k.options.Progress(fmt.Sprintf(format, args...))
	}
}
