package campaign

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

	"tuner/model/modelconfig"
	"tuner/model/precision/recipe"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// RecordedEarlier returns the campaigns from which the campaign in a folder learns, according to
// its journal. isBegun is false if the folder has no readable journal; the error is that of
// journal.Read.
func RecordedEarlier(dir string) (list []search.Earlier, isBegun bool, err error) {
	_, records, err := journal.Read(dir)
	if err != nil {
		return nil, false, err
	}
	list, err = earlier(records)
	return list, true, err
}

// ReadEarlier reads the campaigns in the folders that a header names, the newest first. Each
// problem names its folder: it has no campaign, or one with another model, other requests or
// another default configuration.
func ReadEarlier(now Asked) (list []search.Earlier, problems []error) {
	for _, dir := range now.Header.Earlier {
		e, err := readEarlier(now, dir)
		if err != nil {
			problems = append(problems, err)
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b search.Earlier) int { return b.Created.Compare(a.Created) })
	return list, problems
}

// EarlierFolders returns the folders of the campaigns from which a profile wants to learn, absolute
// and ordered by name.
func EarlierFolders(p spec.Profile) ([]string, error) {
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

// readEarlier reads the campaign in a folder, without the campaigns from which that one learned.
func readEarlier(now Asked, dir string) (search.Earlier, error) {
	then, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return search.Earlier{}, fmt.Errorf("there is no campaign in %q: name the output folder of one, or leave it out", dir)
	}
	if err != nil {
		return search.Earlier{}, fmt.Errorf("cannot reuse the campaign in %q: %w", dir, err)
	}
	if list := mismatches(then, now); len(list) > 0 {
		return search.Earlier{}, fmt.Errorf("cannot reuse the campaign in %q, which measured something else:\n  %s\n"+
			"leave it out, or name one of the same model and requests", dir, strings.Join(list, "\n  "))
	}
	e := search.Earlier{From: dir, Created: then.Header.Created, Same: isComparable(then, now), Events: []search.Event{}}
	for _, event := range then.Events {
		// on another server than the others
		isElsewhere := then.Header.Finals != nil && event.Trial.Phase == search.PhaseFinal
		if !isElsewhere && !hasOtherFile(event.Trial.Candidate, then.Header, now.Header) {
			e.Events = append(e.Events, event)
		}
	}
	return e, nil
}

// mismatches lists the reasons why an earlier campaign's figures do not apply to this campaign's
// configurations.
func mismatches(then Campaign, now Asked) []string {
	var d differences
	old, h := then.Header, now.Header
	d.compare("model", filesText(old.Models[:min(1, len(old.Models))]), filesText(h.Models[:min(1, len(h.Models))]))
	d.compare("model name", old.Model, h.Model)
	d.compare("default configuration", shortDigest(old.BaseConfig), shortDigest(h.BaseConfig))
	d.compare("shapes of the inputs", shapesText(RequestShapes(then.Profile, now.Config)), shapesText(RequestShapes(now.Profile, now.Config)))
	d.compare("data of the requests", old.Requests.String(), h.Requests.String())
	d.compare("mix of the requests", old.Mix.String(), h.Mix.String())
	d.compare("arrivals", then.Profile.Load.Arrivals.String(), now.Profile.Load.Arrivals.String())
	d.compare("trace of the arrivals", traceText(old.Facts), traceText(h.Facts))
	d.compare("client batch", fmt.Sprint(then.Profile.Load.BatchSize), fmt.Sprint(now.Profile.Load.BatchSize))
	return d
}

// RequestShapes returns the known shapes of inputs in a request, without the batch dimension. They
// come from the profile, or from the configuration if it fixes them.
func RequestShapes(p spec.Profile, config *modelconfig.Config) map[string][]int64 {
	shapes := map[string][]int64{}
	for _, in := range config.GetInput() {
		isOpen := slices.ContainsFunc(in.GetDims(), func(d int64) bool { return d < 0 })
		if !isOpen && in.GetReshape() == nil {
			shapes[in.GetName()] = in.GetDims()
		}
	}
	maps.Copy(shapes, p.Inputs.Shape)
	return shapes
}

// shapesText prints the shapes of inputs: "ids [32], mask [32]".
func shapesText(shapes map[string][]int64) string {
	var parts []string
	for _, input := range slices.Sorted(maps.Keys(shapes)) {
		parts = append(parts, fmt.Sprintf("%s %v", input, shapes[input]))
	}
	return listText(parts)
}

// isComparable reports whether an earlier campaign's figures count as measurements here. Machine,
// server and protocol must be the same, and for the bundled engine also ONNX Runtime. A dry run
// without an ONNX Runtime assumes the same one. The server of the finals does not matter, since its
// measurements are not used.
func isComparable(then Campaign, now Asked) bool {
	old, h := then.Header, now.Header
	isSameRuntime := h.Server != nil || h.Runtime.Library == "" || isSameBuild(old.Runtime, h.Runtime)
	return old.Fingerprint == h.Fingerprint && isSameRuntime && isSameServer(old.Server, h.Server) &&
		reflect.DeepEqual(serverless(then.Profile.Runner), serverless(now.Profile.Runner))
}

// isSameServer compares the known properties of two servers. A dry run does not launch a server to
// ask for its version.
func isSameServer(then, now *journal.ServerInfo) bool {
	if then != nil && now != nil && now.Version == "" {
		return then.Mode == now.Mode && then.Where == now.Where
	}
	return then.String() == now.String()
}

// hasOtherFile reports whether the model file of a candidate's precision differs between two
// campaigns. For example, it may have been made with other data.
func hasOtherFile(c search.Candidate, then, now journal.Header) bool {
	precision, _ := c.Get(search.KnobPrecision)
	name := cmp.Or(string(precision), recipe.Original)
	a, _ := then.File(name)
	b, _ := now.File(name)
	return a.SHA256 != "" && b.SHA256 != "" && a.SHA256 != b.SHA256
}
