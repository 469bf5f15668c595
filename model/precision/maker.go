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
	"tuner/model/precision/accuracy"
)

// Maker makes the variants of one source. Its methods may be called from one goroutine at a time.
type Maker struct {
	source *onnx.Model
	base   *onnx.Model // what the recipes start from: the source, with a symbolic batch dimension where that was asked for
	freed  bool        // base's batch dimension is symbolic and the source's is not
	digest string      // of the source
	batch  int64       // fixed first dimension that the source's inputs share: rows of one request; 1 where there is none
	data   string      // digest of the data
	memory int64       // that this process can have, in bytes; 0: unknown

	open    Opener
	options Options
	recipes func(ctx context.Context, precision string) (recipe, error) // newRecipe, but for tests

	reference accuracy.Outputs // of the source on cpu; nil until it is needed
	labels    []int64          // of the data, where they fit an output of the reference
	unfit     string           // why the limit judges none of the reference's outputs; "" where it does
}

// NewMaker prepares the making of a source's variants. A *SourceError says that the source has none.
func NewMaker(source *onnx.Model, open Opener, o Options) (*Maker, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	if err := CheckSource(source); err != nil {
		return nil, err
	}
	if o.Limit != nil && o.Limit.NeedsLabels() && o.Data.Labels == nil {
		return nil, &SourceError{source.Path(), fmt.Errorf("the limit is on %s, and the data %q has no labels; "+
			"add an array named label with the class of each row, counted from 0", o.Limit.Metric, o.Data.Name)}
	}
	digest, err := source.Digest()
	if err != nil {
		return nil, err
	}
	k := &Maker{source: source, base: source, digest: digest, batch: fixedBatch(source), data: o.Data.Digest(),
		memory: hostinfo.UsableMemory(), open: open, options: o}
	k.recipes = k.newRecipe
	if o.FreeBatch && !inputs.Batches(source) {
		switch freed, err := rewrite.SymbolicBatch(source); {
		case err == nil:
			k.base, k.freed = freed, true
		case !errors.Is(err, rewrite.ErrNothing):
			return nil, &SourceError{source.Path(), err}
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

// Make returns the variant of a precision, judged on the providers that are to serve it, which are tried in that order: where
// the accuracy limit is missed on the first that runs the variant, its most sensitive nodes are kept in fp32. An *Unmakeable
// says that there is no such variant; other errors are not the variant's fault.
func (k *Maker) Make(ctx context.Context, precision string, providers []string) (Variant, error) {
	if precision == FP32 && !k.freed {
		return k.Check(ctx, FP32, k.source, providers)
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

// rescues reports whether nodes of a precision are kept in fp32 for the limit.
func (k *Maker) rescues(precision string) bool {
	return k.options.Limit != nil && k.options.MaxKept > 0 && (precision == Int8 || precision == Int8Static)
}

// find looks for a variant in the cache: where nodes are kept, for one that has them from the first of the providers, else from the
// next. Without any, the entry is nil.
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

// overtaken reports whether a provider runs the variant that comes before the one on which nodes were chosen to stay in fp32: the
// choice is the first's, and must not depend on what it once refused.
func overtaken(v Variant, chosenOn string, providers []string) bool {
	return slices.ContainsFunc(providers[:max(0, slices.Index(providers, chosenOn))], func(provider string) bool {
		_, ran := v.Accuracy[provider]
		return ran
	})
}

// make makes a variant's model, rescues it if need be, and puts it into the cache. What a refusal had a part in is put where nothing
// looks for it: another time the provider may run it.
func (k *Maker) make(ctx context.Context, id key, providers []string) (cache, *entry, error) {
	k.progress("%s: converting", id.Precision)
	r, err := k.recipes(ctx, id.Precision)
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
	e.Converted, e.Kept, e.Left, e.Notes = len(a.summary.Converted), a.kept, a.left(), k.notes(a.summary)
	if a.provider != "" {
		e.addReport(a.provider, a.report, a.miss)
	}
	return store, e, store.put(e)
}

// notes are the rewrite's, and what became of the batch dimension.
func (k *Maker) notes(s rewrite.Summary) []string {
	if k.freed {
		return append([]string{"its batch dimension is symbolic now; that of the original is fixed"}, s.Notes...)
	}
	return s.Notes
}

// Check judges a model that the user made, or the source itself, on the providers that are to serve it. Nothing is converted;
// figures are kept in the cache.
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

// judgeAll judges an entry on the providers of which the cache tells nothing, and returns the variant; beside an error, what was known
// of it by then.
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
			case errors.As(err, &refused): // not kept: another time it may run
				v.Rejected[provider], v.FromCache = refused.Reason, false
				continue
			case err != nil && changed: // what is known already is known the next time
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

// unjudged notes what of the data and the original's outputs is no measure of a variant; it is the same on every provider.
func (k *Maker) unjudged(reports map[string]accuracy.Report) (notes []string) {
	misfit := false
	nonFinite := map[string]int{} // elements by output
	without := map[string]bool{}  // outputs that have not the metric of the limit
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
			notes = append(notes, fmt.Sprintf("%d elements of the original's output %q are NaN or infinite: nothing is judged by them", n, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(without)) {
		notes = append(notes, fmt.Sprintf("output %q is not judged by %s, which it does not have", name, k.options.Limit.Metric))
	}
	if misfit {
		notes = append(notes, fmt.Sprintf("the labels of %q fit no output: nothing is judged by them", k.options.Data.Name))
	}
	return notes
}

// lost notes, by provider, the elements of which a variant makes no numbers: the figures look as good without them as the rest is.
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

// isReference reports whether a model on a provider is what all others are compared with.
func (k *Maker) isReference(digest, provider string) bool {
	return provider == cpu && digest == k.digest
}

// progress tells what is being done.
func (k *Maker) progress(format string, args ...any) {
	if k.options.Progress != nil {
		k.options.Progress(fmt.Sprintf(format, args...))
	}
}
