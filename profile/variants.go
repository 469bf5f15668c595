package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tuner/journal"
	"tuner/onnx"
	"tuner/precision"
	"tuner/search"
	"tuner/spec"
)

// Maker makes a model in other precisions, and compares what variants yield with what the original yields (package
// precision). Both block for as long as the inferences take, and end soon with the context's error when it ends. The error of
// a variant that cannot be made is precision.ErrUnmakeable.
type Maker interface {
	Make(ctx context.Context, precision string, providers []string) (precision.Variant, error)
	Check(ctx context.Context, name string, m *onnx.Model, providers []string) (precision.Variant, error)
}

// Trier says why an execution provider does not work with a model file, "" when it does; the error is the context's.
type Trier func(ctx context.Context, provider, model string) (reason string, err error)

// Variants is what a campaign measures beside the original model on the cpu provider, and what it must not measure.
type Variants struct {
	Records  []journal.Variant  // everything that was compared: the original on other providers first, then as in the profile
	Rejected []search.Rejection // of these, what is never measured
	Files    []File             // that were made, and serve on some provider
}

// MakeVariants makes the precisions that the profile names, and compares them, the user's own files, and the original on
// other providers with the original on cpu. facts name the providers that do not work here. Nothing happens without a limit
// of accuracy.
func MakeVariants(ctx context.Context, p spec.Profile, s Subject, facts search.Facts, maker Maker, try Trier) (Variants, error) {
	var v Variants
	if p.Accuracy.Limit == nil {
		return v, nil
	}
	j := judge{s, maker, try, workingProviders(p.Space(facts))}
	for _, name := range variantNames(p) {
		record, err := j.record(ctx, name, slices.Contains(p.Model.Convert, name))
		if err != nil {
			return Variants{}, err
		}
		if len(record.Accuracy)+len(record.Rejected) == 0 {
			continue // the original where there is no other provider
		}
		v.Records = append(v.Records, record)
		for _, provider := range slices.Sorted(maps.Keys(record.Rejected)) {
			v.Rejected = append(v.Rejected, search.Rejection{Precision: name, Provider: provider, Reason: record.Rejected[provider]})
		}
		if record.Path == "" || record.Own || name == spec.PrecisionOriginal || !j.serves(record) {
			continue
		}
		file, err := s.variantFile(name, record.Path)
		if err != nil {
			return Variants{}, err
		}
		v.Files = append(v.Files, file)
	}
	return v, nil
}

// variantNames lists what is compared: the original, the user's files by name, and what is converted.
func variantNames(p spec.Profile) []string {
	return append(orderPrecisions(p.Model.Precisions), p.Model.Convert...)
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
	providers []string // execution providers that work here
}

// record makes a variant, or opens the user's own, and has it compared.
func (j judge) record(ctx context.Context, name string, convert bool) (journal.Variant, error) {
	var made precision.Variant
	var err error
	record := journal.Variant{Precision: name, Rejected: map[string]string{}}
	switch {
	case name == spec.PrecisionOriginal:
		others := slices.DeleteFunc(slices.Clone(j.providers), func(p string) bool { return p == "cpu" })
		if len(others) == 0 {
			return record, nil
		}
		made, err = j.maker.Make(ctx, precision.FP32, others)
	case convert:
		made, err = j.maker.Make(ctx, name, j.providers)
	default:
		record.Own = true
		made, err = j.checkOwn(ctx, name)
	}
	if errors.Is(err, precision.ErrUnmakeable) {
		record.Rejected[""] = err.Error()
		return record, nil
	}
	if err != nil {
		return journal.Variant{}, fmt.Errorf("cannot judge precision %s of model %q: %w", name, j.subject.Name, err)
	}
	record.Path, record.SHA256, record.Bytes, record.Converted = made.Path, made.Digest, made.Bytes, made.Converted
	record.Accuracy, record.Notes = made.Accuracy, made.Notes
	maps.Copy(record.Rejected, made.Rejected)
	for _, k := range made.Kept {
		record.Kept = append(record.Kept, journal.KeptNode(k))
	}
	return record, j.tryProviders(ctx, &record)
}

// checkOwn has the user's own file compared.
func (j judge) checkOwn(ctx context.Context, name string) (precision.Variant, error) {
	i := slices.IndexFunc(j.subject.Files, func(f File) bool { return f.Precision == name })
	if i < 0 {
		return precision.Variant{}, fmt.Errorf("there is no file of precision %q", name)
	}
	model, err := onnx.Read(j.subject.Files[i].Source.Path)
	if err != nil {
		return precision.Variant{}, err
	}
	return j.maker.Check(ctx, name, model, j.providers)
}

// tryProviders rejects providers that do not work with the variant's file, although they do with the original: they create
// no session, or leave every node of it to cpu.
func (j judge) tryProviders(ctx context.Context, record *journal.Variant) error {
	if record.Precision == spec.PrecisionOriginal {
		return nil
	}
	for _, provider := range j.providers {
		if _, out := record.Rejected[provider]; out || provider == "cpu" {
			continue
		}
		reason, err := j.try(ctx, provider, record.Path)
		if err != nil {
			return err
		}
		if reason != "" {
			record.Rejected[provider] = reason
		}
	}
	return nil
}

// serves reports whether a variant may be measured on some provider.
func (j judge) serves(record journal.Variant) bool {
	return slices.ContainsFunc(j.providers, func(p string) bool { return record.Rejected[p] == "" }) && record.Rejected[""] == ""
}

// workingProviders lists the execution providers of a space that work here with some of its runtimes: cpu first, since the
// operators that stay in fp32 are chosen on the first one.
func workingProviders(s search.Space) []string {
	i := slices.IndexFunc(s.Knobs, func(k search.Knob) bool { return k.Name == search.KnobExecutionProvider })
	if i < 0 {
		return []string{baseProvider(s.Facts)}
	}
	var list []string
	for _, v := range s.Knobs[i].Values {
		switch {
		case v == "cpu":
			list = slices.Insert(list, 0, "cpu")
		case works(s.Facts, string(v)):
			list = append(list, string(v))
		}
	}
	return list
}

// baseProvider is the execution provider of the default configuration.
func baseProvider(facts search.Facts) string {
	if p := facts.Base[search.KnobExecutionProvider]; p != "" {
		return string(p)
	}
	return "cpu"
}

func works(facts search.Facts, provider string) bool {
	if len(facts.Runtimes) == 0 {
		_, out := facts.Unavailable[provider]
		return !out
	}
	return slices.ContainsFunc(facts.Runtimes, func(r search.RuntimeFacts) bool {
		_, out := r.Unavailable[provider]
		return !out
	})
}
