package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tuner/model/onnx"
	"tuner/model/precision"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Maker makes a model in other precisions, and compares the variants' outputs with the original's
// (package precision), in named places. Both methods block while inferences run, and end soon with
// the context's error if it ends. The error of a variant that cannot be made is
// precision.ErrUnmakeable.
type Maker interface {
	Make(ctx context.Context, precision string, places []string) (precision.Variant, error)
	Check(ctx context.Context, name string, m *onnx.Model, places []string) (precision.Variant, error)
}

// Trier returns the reason why a place's execution provider does not work with a model file, and ""
// if it does. The error is the context's.
type Trier func(ctx context.Context, place search.Place, model string) (reason string, err error)

// Variants are the variants that a campaign measures in addition to the original model in the
// reference place, and those that it must not measure.
type Variants struct {
	// Records: all comparisons: the original in other places first, then in the profile's order
	Records  []journal.Variant
	Rejected []search.Rejection // those that are never measured
	Files    []File             // files that were made, and serve on some provider
	Data     string             // digest of the inputs of all comparisons; "" if there were none
	Fresh    bool               // something was converted or run, and not found in the cache
}

// Compares reports whether a profile has anything to compare with the reference, on a machine with
// these facts.
func Compares(p spec.Profile, facts search.Facts) bool {
	if p.Accuracy.Limit == nil {
		return false
	}
	space := p.Space(facts)
	elsewhere := slices.ContainsFunc(space.Places(), func(place search.Place) bool { return place != space.Reference() })
	return slices.ContainsFunc(variantNames(p, facts), func(name string) bool { return elsewhere || name != recipe.Original })
}

// Conversions lists the precisions to make before the search begins, assuming that none is
// rejected.
func Conversions(p spec.Profile, facts search.Facts) []string {
	return slices.DeleteFunc(variantNames(p, facts), func(name string) bool { return !slices.Contains(p.Model.Convert, name) })
}

// MakeVariants makes the precisions of the profile. It compares them, the user's own files, and the
// original in other places with the original in the reference place. facts name the providers that
// do not work here. Without a limit of accuracy it does nothing. within is the time for it (VariantTime, or
// a share of it; 0: no bound): variants for which that is too short are left out. The maker's owner adds the
// digest of the data.
func MakeVariants(ctx context.Context, p spec.Profile, s Subject, facts search.Facts, maker Maker, try Trier, within time.Duration) (Variants, error) {
	var v Variants
	if p.Accuracy.Limit == nil {
		return v, nil
	}
	space := p.Space(facts)
	clock, timed, cancel, err := newClock(ctx, p, within)
	if err != nil {
		return v, err
	}
	defer cancel()
	j := judge{s, maker, try, space.Places(), space.Reference(), clock}
	judged := map[string]bool{}
	for {
		facts.Rejected = v.Rejected
		names := slices.DeleteFunc(variantNames(p, facts), func(name string) bool { return judged[name] })
		if len(names) == 0 {
			return v, nil
		}
		judged[names[0]] = true
		record, fresh, err := j.recordWithin(ctx, timed, names[0], slices.Contains(p.Model.Convert, names[0]))
		v.Fresh = v.Fresh || fresh
		if err == nil {
			err = v.addRecord(j, record)
		}
		if err != nil {
			return Variants{}, err
		}
	}
}

// addRecord records the result of a variant.
func (v *Variants) addRecord(j judge, record journal.Variant) error {
	if len(record.Accuracy)+len(record.Rejected) == 0 {
		return nil // the original, if there is no other place
	}
	v.Records = append(v.Records, record)
	for _, name := range slices.Sorted(maps.Keys(record.Rejected)) {
		place := search.ParsePlace(name)
		v.Rejected = append(v.Rejected, search.Rejection{Precision: record.Precision, Provider: place.Provider, Runtime: place.Runtime,
			Reason: record.Rejected[name]})
	}
	if record.Path == "" || record.Own || record.Precision == recipe.Original || !j.serves(record) {
		return nil
	}
	file, err := j.subject.variantFile(record.Precision, record.Path)
	if err != nil {
		return err
	}
	v.Files = append(v.Files, file)
	return nil
}

// variantNames lists the variants to compare: the original, the user's files by name, and the
// conversions. A strategy with a fixed precision compares that of the space's first candidate. It
// changes if facts reject the first.
func variantNames(p spec.Profile, facts search.Facts) []string {
	if len(p.Space(facts).Places()) == 0 { // only the default serves
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
		return set && name != string(fixed) || !set && name != recipe.Original
	})
}

// variantFile opens a model file that was made from the subject's.
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

// checkOptional returns a *precision.Unmakeable if a file of a precision cannot serve an optional input of
// the configuration: a constant that requests may replace, which the file has to declare.
func (s Subject) checkOptional(name string, declared []onnx.Value) error {
	for _, in := range s.Config.GetInput() {
		if in.GetOptional() && !slices.ContainsFunc(declared, func(v onnx.Value) bool { return v.Name == in.GetName() }) {
			return &precision.Unmakeable{Precision: name, Err: fmt.Errorf("its file has the optional input %q of the configuration as a constant, which no request can replace: "+
				"leave it out of the configuration to measure this precision", in.GetName())}
		}
	}
	return nil
}

// With returns the subject with additional files, in their order.
func (s Subject) With(files []File) Subject {
	s.Files = slices.Concat(s.Files, files)
	return s
}

// judge compares one variant after the other.
type judge struct {
	subject   Subject
	maker     Maker
	try       Trier
	places    []search.Place // places that work here
	reference search.Place   // place of the original with which everything is compared
	clock     clock
}

// recordWithin is record within the time for variants, whose end ends the context within.
func (j judge) recordWithin(ctx, within context.Context, name string, convert bool) (record journal.Variant, fresh bool, err error) {
	if record, isLate := j.clock.recorded(name); isLate {
		return record, false, nil
	}
	if within.Err() == nil {
		record, fresh, err = j.record(within, name, convert)
	}
	if within.Err() == nil || ctx.Err() != nil || err == nil && record.Precision != "" {
		return record, fresh, err
	}
	places := []string{""} // all
	if name == recipe.Original {
		places = placeNames(j.others())
	}
	return j.clock.leaveOut(name, name != recipe.Original && !convert, places), true, nil
}

// others lists the places beside the reference.
func (j judge) others() []search.Place {
	return slices.DeleteFunc(slices.Clone(j.places), func(p search.Place) bool { return p == j.reference })
}

// record makes a variant, or opens the user's own, and has it compared. fresh means that some part
// was not in the cache.
func (j judge) record(ctx context.Context, name string, convert bool) (record journal.Variant, fresh bool, err error) {
	var made precision.Variant
	record = journal.Variant{Precision: name, Rejected: map[string]string{}}
	switch {
	case name == recipe.Original:
		others := j.others()
		if len(others) == 0 {
			return record, false, nil
		}
		made, err = j.maker.Make(ctx, recipe.Original, placeNames(others))
	case convert:
		if err = j.subject.checkOptional(name, nil); err == nil { // conversions make constants of all (rewrite.Clean)
			made, err = j.maker.Make(ctx, name, placeNames(j.places))
		}
	default:
		record.Own = true
		made, err = j.checkOwn(ctx, name)
	}
	switch {
	case name == recipe.Original && isIncomparable(err): // it still serves in the reference place
		for _, p := range j.others() {
			record.Rejected[p.String()] = err.Error()
		}
		return record, false, nil
	case errors.Is(err, precision.ErrUnmakeable), isIncomparable(err):
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

// isIncomparable reports whether variants cannot be compared on random rows. The user chose no such
// rows, so the campaign continues with the original.
func isIncomparable(err error) bool {
	var source *precision.SourceError
	return errors.As(err, &source) && source.Random
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
	if err := j.subject.checkOptional(name, model.Replaceable()); err != nil {
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

// tryProviders rejects places whose provider works with the original but not with the variant's
// file: it creates no session, or leaves every node to cpu.
func (j judge) tryProviders(ctx context.Context, record *journal.Variant) error {
	if record.Precision == recipe.Original {
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
