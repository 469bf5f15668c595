package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"tuner/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// Reuse returns the earlier campaigns that a campaign learns from, the newest first: those in its journal once it has begun, so
// that it goes on as it began; before that those in the folders that the profile names. It is nil for a strategy that does
// not learn from them. A folder without a campaign of the same model, requests and default configuration is an InputError.
func Reuse(s Setup) ([]search.Earlier, error) {
	if _, records, err := journal.Read(s.Profile.Output); err == nil {
		return recorded(records)
	}
	now, err := s.header(time.Time{})
	if err != nil {
		return nil, err
	}
	var list []search.Earlier
	var problems []error
	for _, dir := range now.Earlier {
		e, err := readEarlier(s, now, dir)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: search.earlier: %w", s.Profile.Path, err))
		}
		list = append(list, e)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &InputError{err}
	}
	if !plan.Reuses(s.Profile.Search.Strategy) {
		return nil, nil
	}
	slices.SortStableFunc(list, func(a, b search.Earlier) int { return b.Created.Compare(a.Created) })
	return list, nil
}

// earlierFolders are the folders of the campaigns that a profile asks to reuse, absolute and in order of name.
func earlierFolders(p spec.Profile) ([]string, error) {
	var dirs []string
	for _, path := range p.Search.Earlier {
		dir, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("cannot resolve %q: %w", path, err)
		}
		if filepath.Base(dir) == journal.FileName {
			dir = filepath.Dir(dir)
		}
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// recorded reads the earlier campaigns in a journal.
func recorded(records []journal.Record) ([]search.Earlier, error) {
	var list []search.Earlier
	for _, r := range records {
		if r.Kind != journal.KindEarlier {
			continue
		}
		var e search.Earlier
		if err := r.Decode(&e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// readEarlier reads the campaign in a folder. What that reused itself is no part of it.
func readEarlier(s Setup, now journal.Header, dir string) (search.Earlier, error) {
	old, records, err := journal.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return search.Earlier{}, fmt.Errorf("there is no campaign in %q: name the output folder of one, or leave it out", dir)
	}
	if err != nil {
		return search.Earlier{}, err
	}
	then, err := spec.RecordedProfile(old.Spec.Path, []byte(old.Spec.Text))
	if err != nil {
		return search.Earlier{}, fmt.Errorf("cannot reuse the campaign in %q: its profile does not parse any more: %w", dir, err)
	}
	if list := mismatches(s, then, old, now); len(list) > 0 {
		return search.Earlier{}, fmt.Errorf("cannot reuse the campaign in %q, which measured something else:\n  %s\nleave it out, or name one of the same model and requests",
			dir, strings.Join(list, "\n  "))
	}
	e := search.Earlier{From: dir, Created: old.Created, Same: isSame(s.Profile, then, old, now), Events: []search.Event{}}
	for _, r := range records {
		if r.Kind != journal.KindTrial {
			continue
		}
		var event search.Event
		if err := r.Decode(&event); err != nil {
			return search.Earlier{}, fmt.Errorf("cannot reuse the campaign in %q: %w", dir, err)
		}
		isElsewhere := old.Finals != nil && event.Trial.Phase == search.PhaseFinal // on another server than the rest
		if !isElsewhere && !hasOtherFile(event.Trial.Candidate, old.Models, now.Models) {
			e.Events = append(e.Events, event)
		}
	}
	return e, nil
}

// mismatches lists why an earlier campaign's figures say nothing of this one's configurations.
func mismatches(s Setup, then spec.Profile, old, now journal.Header) []string {
	var list []string
	add := func(what, then, now string) {
		if then != now {
			list = append(list, fmt.Sprintf("%s: %s then, %s now", what, then, now))
		}
	}
	add("model", digests(old.Models[:min(1, len(old.Models))]), digests(now.Models[:min(1, len(now.Models))]))
	add("model name", old.Model, now.Model)
	add("default configuration", shortDigest(old.BaseConfig), shortDigest(now.BaseConfig))
	add("shapes of the inputs", shapesText(RequestShapes(then, s.Subject.Config)), shapesText(RequestShapes(s.Profile, s.Subject.Config)))
	add("client batch", fmt.Sprint(then.Load.BatchSize), fmt.Sprint(s.Profile.Load.BatchSize))
	return list
}

// shapesText prints the shapes of inputs: "ids [32], mask [32]".
func shapesText(shapes map[string][]int64) string {
	var parts []string
	for _, input := range slices.Sorted(maps.Keys(shapes)) {
		parts = append(parts, fmt.Sprintf("%s %v", input, shapes[input]))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// isSame reports whether an earlier campaign's figures are data here: they are of the same machine, server and protocol, and on the bundled engine
// of the same ONNX Runtime. A dry run without an ONNX Runtime takes it for the same. Which server has the finals does not matter: what another
// one measured is left out.
func isSame(p, then spec.Profile, old, now journal.Header) bool {
	isSameRuntime := now.Server != nil || now.Runtime.Library == "" || isSameBuild(old.Runtime, now.Runtime)
	return old.Fingerprint == now.Fingerprint && isSameRuntime && isSameServer(old.Server, now.Server) &&
		reflect.DeepEqual(serverless(then.Runner), serverless(p.Runner))
}

// isSameServer compares two servers as far as they are known: a dry run does not launch one to ask for its version.
func isSameServer(old, now *journal.ServerInfo) bool {
	if old != nil && now != nil && now.Version == "" {
		return old.Mode == now.Mode && old.Where == now.Where
	}
	return old.String() == now.String()
}

// hasOtherFile reports whether a candidate's precision is another model file now than it was then, as when it was made on other data.
func hasOtherFile(c search.Candidate, then, now []journal.ModelFile) bool {
	precision := spec.PrecisionOriginal
	if v, ok := c.Get(search.KnobPrecision); ok {
		precision = string(v)
	}
	digest := func(files []journal.ModelFile) string {
		i := slices.IndexFunc(files, func(f journal.ModelFile) bool { return f.Precision == precision })
		if i < 0 {
			return ""
		}
		return files[i].SHA256
	}
	a, b := digest(then), digest(now)
	return a != "" && b != "" && a != b
}
