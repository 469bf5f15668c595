package pipeline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/ort/addon"
	"tuner/profile/campaign"
	"tuner/profile/starter"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/spec/draft"
)

// writeFiles writes the profile.yaml and analyze.yaml of a request for a served model, if they do
// not exist. It returns the profile's path, and the paths of the files that did not exist.
func writeFiles(r Request, name string, model starter.Model, dir string) (path string, written []string, err error) {
	first, err := model.Starter(dir, r.Shapes)
	if err != nil {
		return "", nil, err
	}
	if r.Wish.Data != "" {
		if r.Wish.Data, err = starter.PathFrom(dir, r.Wish.Data); err != nil {
			return "", nil, err
		}
	}
	if r.Wish.Mix.Histogram != "" {
		if r.Wish.Mix.Histogram, err = starter.PathFrom(dir, r.Wish.Mix.Histogram); err != nil {
			return "", nil, err
		}
	}
	if !r.Wish.Mix.IsZero() {
		first.Shapes = model.ShapesBeside(first.Shapes, r.Wish.Mix.Dimension)
	}
	if r.Wish.Data == "" {
		sayExamples(r.Messages, first)
	}
	if r.Wish.Precisions == nil {
		r.Wish.Precisions = first.Precisions.Names
		for _, left := range first.Precisions.Left {
			fmt.Fprintln(r.Messages, left.Sentence())
		}
	} else {
		first.Precisions.Left = nil // the choice is the user's
	}
	first.Name, first.Config, first.Output, first.Wish = name, "", ".", &r.Wish
	files, err := starter.Files(dir, first, model.Subject, formats.All().Words())
	if err != nil {
		return "", nil, err
	}
	path = files[0].Path
	missing, err := missingFiles(files)
	if err != nil || len(missing) == 0 {
		return path, nil, err
	}
	for _, f := range missing {
		if _, err := os.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
			written = append(written, f.Path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, exit.Usagef("cannot make folder %q: %v; choose another with -o", dir, durable.Cause(err))
	}
	return path, written, exit.OfFiles(starter.Replace(dir, missing))
}

// sayExamples prints which sizes and texts of requests are examples.
func sayExamples(messages io.Writer, s draft.Starter) {
	sized := slices.DeleteFunc(s.Examples(), func(e draft.StarterShape) bool { return e.Dims == nil })
	if len(sized) > 0 {
		fmt.Fprintf(messages, "sizes of symbolic dimensions are examples, and the figures depend on them: %s; set yours with --shape, or give rows with --data\n", shapesText(sized))
	}
	for _, e := range s.Texts {
		fmt.Fprintf(messages, "the values of %s are examples, and the figures depend on them: %s; give rows of your own with --data\n", e.Input, e.Reason)
	}
}

// shapesText lists shapes with reasons: "ids [128] (a text of 128 tokens)".
func shapesText(shapes []draft.StarterShape) string {
	parts := make([]string, len(shapes))
	for i, s := range shapes {
		parts[i] = fmt.Sprintf("%s %v", s.Input, s.Dims)
		if s.Reason != "" {
			parts[i] += fmt.Sprintf(" (%s)", s.Reason)
		}
	}
	return strings.Join(parts, ", ")
}

// missingFiles returns the files that do not exist, since users may have edited existing ones. A
// profile that asks for something else is an error. If only budget or until differ, the profile is
// written again.
func missingFiles(files []starter.File) ([]starter.File, error) {
	var missing []starter.File
	for _, f := range files {
		there, err := os.ReadFile(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
			continue
		case err != nil:
			return nil, exit.Usagef("cannot read %q: %v", f.Path, durable.Cause(err))
		case filepath.Base(f.Path) != draft.ProfileName:
			continue
		}
		different, isOtherEnd, err := compareProfiles(f.Path, there, f.Text)
		switch {
		case err != nil:
			return nil, exit.With(exit.Usage, err)
		case isOtherEnd:
			missing = append(missing, f)
		case len(different) > 0:
			return nil, exit.Usagef("%s describes another run than this command; they differ in: %s\nresume that run with 'tuner run -f %s', or choose another folder with -o",
				f.Path, strings.Join(different, ", "), words.ShellWord(f.Path))
		}
	}
	return missing, nil
}

// compareProfiles compares two texts of a profile. different lists the fields in which they ask for
// another search, another model or another folder. isOtherEnd means that they differ in budget or
// until only.
func compareProfiles(path string, there, asked []byte) (different []string, isOtherEnd bool, err error) {
	a, err := spec.ParseProfile(path, there)
	if err != nil {
		return nil, false, err
	}
	b, err := spec.ParseProfile(path, asked)
	if err != nil {
		return nil, false, err
	}
	different = campaign.DifferentFields(a, b)
	if !slices.Contains(different, "load") && !drawSame(a.Inputs, b.Inputs) {
		different = append(different, "load.inputs")
	}
	if a.Model.Path != b.Model.Path {
		different = append(different, "model")
	}
	if !slices.Equal(a.Model.Libraries.Operators, b.Model.Libraries.Operators) {
		different = append(different, addon.FileField)
	}
	if a.Model.Libraries.Provider != b.Model.Libraries.Provider {
		different = append(different, addon.ProviderField)
	}
	if !spec.IsSamePath(a.Output, b.Output) {
		different = append(different, "output")
	}
	if a.Search.Budget == b.Search.Budget && a.Search.Until == b.Search.Until {
		return different, false, nil
	}
	a.Search.Budget, a.Search.Until, a.Text, b.Text = b.Search.Budget, b.Search.Until, nil, nil
	if reflect.DeepEqual(a, b) {
		return nil, true, nil
	}
	if len(different) == 0 {
		different = []string{"the budget, and a file or a server"}
	}
	return different, false, nil
}

// drawSame reports whether requests are drawn from the same rows or the same mix of shapes. campaign.DifferentFields leaves
// them to the digests in a journal, and a profile on disk has none.
func drawSame(a, b spec.Inputs) bool {
	isSameFile := func(a, b string) bool { return a == b || a != "" && b != "" && spec.IsSamePath(a, b) }
	if isSameFile(a.Mix.Histogram, b.Mix.Histogram) {
		b.Mix.Histogram = a.Mix.Histogram
	}
	return isSameFile(a.Data, b.Data) && reflect.DeepEqual(a.Mix, b.Mix) && reflect.DeepEqual(a.Shape, b.Shape)
}

// analysisOf returns the analysis of a profile's campaign (draft.AnalysisOf).
func analysisOf(messages io.Writer, p spec.Profile) (spec.Analyze, error) {
	a, other, err := draft.AnalysisOf(p, formats.All().Words())
	if other != nil {
		fmt.Fprintf(messages, "%s belongs to another campaign (%s), so it is not used for these results\n", other.Path, other.Input)
	}
	return a, err
}
