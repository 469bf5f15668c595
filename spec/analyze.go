package spec

import (
	"cmp"
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Analyze is an analyze.yaml with its defaults filled in. It is immutable. File names are relative to the working folder.
type Analyze struct {
	Path        string              // of the YAML file
	Input       string              // output folder of the campaign
	Output      string              // folder of the results; the campaign's when the file names none
	Objective   *search.Objective   // nil: the campaign's
	Constraints []search.Constraint // in place of the campaign's; nil: the campaign's, empty: none
	Price       float64             // of an hour of the machine, in place of the campaign's; 0: the campaign's
	Top         int                 // how many configurations the report shows in detail, ≥ 1
	Mode        string              // ModeOnline
	Formats     []string            // what is written: some of the Format constants, in the file's order
	CSV         CSVLayout           // of the CSV files; Model Analyzer's files alone can change it
	Shared      bool                // Output may hold other files, too, as Model Analyzer's export path does
	Configs     []string            // names of the configurations that are reported, beside the default; nil: all
}

// ModeOnline is what a report is for: serving requests that someone waits for.
const ModeOnline = "online"

// The formats of results.
const (
	FormatTable      = "table"
	FormatCSV        = "csv"
	FormatPNG        = "png"
	FormatConfig     = "config"
	FormatRepository = "repository"
)

func formats() []string {
	return []string{FormatTable, FormatCSV, FormatPNG, FormatConfig, FormatRepository}
}

// Goal returns the campaign's goal with the file's own objective, constraints and price in place of those that it gives. An Errors
// says that it depends on a cost without a price in either file.
func (a Analyze) Goal(campaign search.Goal) (search.Goal, error) {
	if a.Objective != nil {
		campaign.Objective = *a.Objective
	}
	if a.Constraints != nil {
		campaign.Constraints = slices.Clone(a.Constraints)
	}
	campaign.Price = cmp.Or(a.Price, campaign.Price)
	if campaign.Price == 0 && slices.Contains(campaign.Metrics(), measure.Cost) {
		return campaign, Errors{{File: a.Path, Path: "price", Problem: "is required: cost cannot be told without it, and the profile has none",
			Hint: "add a line price: {per_hour: 0.40}, in any currency"}}
	}
	return campaign, nil
}

// ParseAnalyze reads an analyze.yaml. path is its file name: it appears in errors, and relative paths in the file are
// relative to its folder. The error is an Errors with every mistake of the file.
func ParseAnalyze(path string, text []byte) (Analyze, error) {
	d := &document{file: path}
	a := analyzeDefaults()
	a.Path = path
	root, ok := d.open(text)
	if !ok || root.isForeign() {
		return Analyze{}, d.err()
	}
	given := root.mapping(analyzeFields(&a), nil)
	if _, has := given["input"]; !has {
		d.add(Error{Line: max(root.node.Line, 1), Path: "input", Problem: "is required", Allowed: "the output folder of a profile",
			Hint: "add a line input: FOLDER"})
	}
	checkObjective(given)
	if err := d.err(); err != nil {
		return Analyze{}, err
	}
	if a.Output == "" {
		a.Output = a.Input
	}
	return a, nil
}

// analyzeFields reads the fields of an analyze.yaml into a.
func analyzeFields(a *Analyze) []field {
	folder := func(target *string) func(value) {
		return func(v value) {
			if name, ok := v.text(); ok {
				*target = relativeTo(a.Path, name)
			}
		}
	}
	objective := func(o search.Objective) { a.Objective = &o }
	return []field{
		{"input", folder(&a.Input)},
		{"output", folder(&a.Output)},
		{"objective", func(v value) { objective(v.objective()) }},
		{"weights", func(v value) { objective(v.weights()) }},
		{"constraints", func(v value) {
			a.Constraints = v.constraints(func(v value) {
				v.fail(Error{Problem: "is decided before a campaign measures anything, not in its analysis",
					Hint: "write it in the profile's constraints, and profile into another output folder"})
			})
		}},
		{"price", func(v value) { a.Price = v.price() }},
		{"top", func(v value) {
			if n, ok := v.whole(1, longestSeries); ok {
				a.Top = int(n)
			}
		}},
		{"mode", func(v value) { setWord(v, &a.Mode, []string{ModeOnline}, "offline") }},
		{"formats", func(v value) {
			var list []string
			for _, e := range v.list() {
				if f, ok := e.word(formats()); ok {
					list = appendOnce(e, list, f)
				}
			}
			a.Formats = list
		}},
	}
}
