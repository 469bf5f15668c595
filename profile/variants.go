package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tuner/model/onnx"
	"tuner/model/precision"
	"tuner/ort/provider"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Maker makes a model in other precisions, and compares what variants yield with what the original yields (package
// precision), in places by name. Both block for as long as the inferences take, and end soon with the context's error when it
// ends. The error of a variant that cannot be made is precision.ErrUnmakeable.
type Maker interface {
	Make(ctx context.Context, precision string, places []string) (precision.Variant, error)
	Check(ctx context.Context, name string, m *onnx.Model, places []string) (precision.Variant, error)
}

// Trier says why a place's execution provider does not work with a model file, "" when it does; the error is the context's.
type Trier func(ctx context.Context, place search.Place, model string) (reason string, err error)

// Variants is what a campaign measures beside the original model in the reference place, and what it must not measure.
type Variants struct {
	Records  []journal.Variant  // everything that was compared: the original in other places first, then as in the profile
	Rejected []search.Rejection // of these, what is never measured
	Files    []File             // that were made, and serve on some provider
	Data     string             // digest of the inputs that all were compared on; "" where nothing was
	Fresh    bool               // something was converted or run, rather than found in the cache
}

// Compares reports whether a profile has anything to compare with the reference, on a machine of which facts tell.
func Compares(p spec.Profile, facts search.Facts) bool {
	if p.Accuracy.Limit == nil {
		return false
	}
	space := p.Space(facts)
	elsewhere := slices.ContainsFunc(space.Places(), func(place search.Place) bool { return place != space.Reference() })
	return slices.ContainsFunc(variantNames(p, facts), func(name string) bool { return elsewhere || name != spec.PrecisionOriginal })
}

// Conversions lists the precisions that are made of the model before the search begins, as long as none is rejected.
func Conversions(p spec.Profile, facts search.Facts) []string {
	return slices.DeleteFunc(variantNames(p, facts), func(name string) bool { return !slices.Contains(p.Model.Convert, name) })
}

// MakeVariants makes the precisions that the profile names, and compares them, the user's own files, and the original in
// other places with the original in the reference place. facts name the providers that do not work here. Nothing happens
// without a limit of accuracy. The digest of the data is left to the maker's owner.
func MakeVariants(ctx context.Context, p spec.Profile, s Subject, facts search.Facts, maker Maker, try Trier) (Variants, error) {
	var v Variants
	if p.Accuracy.Limit == nil {
		return v, nil
	}
	space := p.Space(facts)
	j := judge{s, maker, try, space.Places(), space.Reference()}
	judged := map[string]bool{}
	for {
		facts.Rejected = v.Rejected
		names := slices.DeleteFunc(variantNames(p, facts), func(name string) bool { return judged[name] })
		if len(names) == 0 {
			return v, nil
		}
		judged[names[0]] = true
		record, fresh, err := j.record(ctx, names[0], slices.Contains(p.Model.Convert, names[0]))
		v.Fresh = v.Fresh || fresh
		if err == nil {
			err = v.add(j, record)
		}
		if err != nil {
			return Variants{}, err
		}
	}
}

// add enters what was found out about a variant.
func (v *Variants) add(j judge, record journal.Variant) error {
	if len(record.Accuracy)+len(record.Rejected) == 0 {
		return nil // the original where there is no other place
	}
	v.Records = append(v.Records, record)
	for _, name := range slices.Sorted(maps.Keys(record.Rejected)) {
		place := search.ParsePlace(name)
		v.Rejected = append(v.Rejected, search.Rejection{Precision: record.Precision, Provider: place.Provider, Runtime: place.Runtime,
			Reason: record.Rejected[name]})
	}
	if record.Path == "" || record.Own || record.Precision == spec.PrecisionOriginal || !j.serves(record) {
		return nil
	}
	file, err := j.subject.variantFile(record.Precision, record.Path)
	if err != nil {
		return err
	}
	v.Files = append(v.Files, file)
	return nil
}

// variantNames lists what is compared: the original, the user's files by name, and what is converted. A strategy
// that keeps the precision compares that of the space's first candidate, which is another one when facts reject
// the first.
func variantNames(p spec.Profile, facts search.Facts) []string {
	if len(p.Space(facts).Places()) == 0 { // nothing serves but the default
		return nil
	}
	names := append(orderPrecisions(p.Model.Precisions), p.Model.Convert...)
	if strategy, _ := plan.Find(p.Search.Strategy); !strategy.KeepsPrecision {
		return names
	}
	first, ok := p.Space(facts).Candidates().First()
	if !ok {
		return nil
	}
	fixed, set := first.Get(search.KnobPrecision)
	return slices.DeleteFunc(names, func(name string) bool {
		return set && name != string(fixed) || !set && name != spec.PrecisionOriginal
	})
}

// variantFile opens a model file that was made of the subject's.
func (s Subject) variantFile(precision, path string) (File, error) {
	model, file, err := openFile(precision, path, s.Files[0].Source.Folder)
	if err != nil {
		return File{}, err
	}
	if err := sameSignature(s.Model, model); err != nil {
		return File{}, err
	}
	return file, nil
}

// With returns the subject with more files, in their order.
func (s Subject) With(files []File) Subject {
	s.Files = slices.Concat(s.Files, files)
	return s
}

// judge compares one variant after the other.
type judge struct {
	subject   Subject
	maker     Maker
	try       Trier
	places    []search.Place // that work here
	reference search.Place   // with the original there everything is compared
}

// record makes a variant, or opens the user's own, and has it compared; fresh says that not all of it was in the cache.
func (j judge) record(ctx context.Context, name string, convert bool) (record journal.Variant, fresh bool, err error) {
	var made precision.Variant
	record = journal.Variant{Precision: name, Rejected: map[string]string{}}
	switch {
	case name == spec.PrecisionOriginal:
		others := slices.DeleteFunc(slices.Clone(j.places), func(p search.Place) bool { return p == j.reference })
		if len(others) == 0 {
			return record, false, nil
		}
		made, err = j.maker.Make(ctx, precision.FP32, placeNames(others))
	case convert:
		made, err = j.maker.Make(ctx, name, placeNames(j.places))
	default:
		record.Own = true
		made, err = j.checkOwn(ctx, name)
	}
	if errors.Is(err, precision.ErrUnmakeable) {
		record.Rejected[""] = err.Error()
		return record, false, nil
	}
	if err != nil {
		return journal.Variant{}, false, fmt.Errorf("cannot judge precision %s of model %q: %w", name, j.subject.Name, err)
	}
	record.Path, record.SHA256, record.Bytes, record.Converted = made.Path, made.Digest, made.Bytes, made.Converted
	record.Accuracy, record.Notes = made.Accuracy, made.Notes
	maps.Copy(record.Rejected, made.Rejected)
	for _, k := range made.Kept {
		record.Kept = append(record.Kept, journal.KeptNode(k))
	}
	return record, !made.FromCache, j.tryProviders(ctx, &record)
}

// checkOwn has the user's own file compared.
func (j judge) checkOwn(ctx context.Context, name string) (precision.Variant, error) {
	file, ok := j.subject.File(name)
	if !ok {
		return precision.Variant{}, fmt.Errorf("there is no file of precision %q", name)
	}
	model, err := onnx.Read(file.Source.Path)
	if err != nil {
		return precision.Variant{}, err
	}
	return j.maker.Check(ctx, name, model, placeNames(j.places))
}

func placeNames(places []search.Place) []string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.String()
	}
	return names
}

// tryProviders rejects places whose provider does not work with the variant's file, although it does with the original: it
// creates no session, or leaves every node of it to cpu.
func (j judge) tryProviders(ctx context.Context, record *journal.Variant) error {
	if record.Precision == spec.PrecisionOriginal {
		return nil
	}
	for _, place := range j.places {
		if _, out := record.Rejected[place.String()]; out || place.Provider == provider.CPU {
			continue
		}
		reason, err := j.try(ctx, place, record.Path)
		if err != nil {
			return err
		}
		if reason != "" {
			record.Rejected[place.String()] = reason
		}
	}
	return nil
}

// serves reports whether a variant may be measured in some place.
func (j judge) serves(record journal.Variant) bool {
	return slices.ContainsFunc(j.places, func(p search.Place) bool { return record.Rejected[p.String()] == "" }) && record.Rejected[""] == ""
}
