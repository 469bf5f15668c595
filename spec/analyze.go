package spec

import (
	"cmp"
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Analyze is an analyze.yaml with its defaults filled in. It is immutable. File names are relative
// to the working folder.
type Analyze struct {
	Path        string              // of the YAML file
	Input       string              // output folder of the campaign
	Output      string              // folder of the results; the campaign's if the file names none
	Objective   *search.Objective   // nil: the campaign's
	Constraints []search.Constraint // replace the campaign's; nil: the campaign's, empty: none
	Price       float64             // price of an hour of the machine; 0: the campaign's
	Confidence  float64             // replaces the campaign's (Search.Confidence); 0: the campaign's
	Top         int                 // number of configurations that the report shows in detail, ≥ 1
	Mode        string              // ModeOnline, ModeOffline, or "": see Goal and ComparedAt
	Rank        string              // RankScore or RankTop3Mean
	At          *At                 // nil: the mode's, see ComparedAt
	Formats     []string            // formats to write: some of the Format constants, in the file's order
	CSV         CSVFiles
	Plots       []Plot   // in addition to the usual ones
	Shared      bool     // Output may also hold other files, like Model Analyzer's export path
	Configs     []string // names of reported configurations, besides the default; nil: all
}

// The forms of the optimum among the formats. Package report/formats has the list of all formats.
const (
	FormatConfig     = "config"
	FormatRepository = "repository"
	FormatHelm       = "helm" // of the repository; only `tuner run` writes it
)

// Goal returns the campaign's goal. The file's objective, constraints and price replace the
// campaign's, also those that its mode implies. An Errors means that the goal depends on a cost and
// neither file has a price.
func (a Analyze) Goal(campaign search.Goal) (search.Goal, error) {
	campaign.Objective, campaign.Constraints = a.objective(campaign), a.constraints(campaign)
	campaign.Price = cmp.Or(a.Price, campaign.Price)
	if campaign.Price == 0 && slices.Contains(campaign.Metrics(), measure.Cost) {
		return campaign, Errors{{File: a.Path, Path: "price", Problem: "is required: the metric cost needs it, and the profile has none",
			Hint: "add a line price: {per_hour: 0.40}, in any currency"}}
	}
	return campaign, nil
}

// ParseAnalyze reads an analyze.yaml. path is its file name for errors. Relative paths in the file
// are relative to its folder. formats are the allowed formats; a file that names none gets all of
// them. The error is an Errors with every mistake of the file.
func ParseAnalyze(path string, text []byte, formats []string) (Analyze, error) {
	d := &document{file: path}
	a := analyzeDefaults()
	a.Formats = slices.Clone(formats)
	a.Path = path
	root, ok := d.open(text)
	if !ok || root.isForeign() {
		return Analyze{}, d.err()
	}
	given := root.mapping(analyzeFields(&a, formats), nil)
	if _, has := given["input"]; !has {
		d.addError(Error{Line: max(root.node.Line, 1), Path: "input", Problem: "is required", Allowed: "the output folder of a profile",
			Hint: "add a line input: FOLDER"})
	}
	checkObjective(given)
	if field, e := a.contradiction(); field != "" {
		given[field].fail(e)
	}
	if err := d.err(); err != nil {
		return Analyze{}, err
	}
	if a.Output == "" {
		a.Output = a.Input
	}
	return a, nil
}

// analyzeFields returns the readers of an analyze.yaml's fields, which store into a.
func analyzeFields(a *Analyze, formats []string) []field {
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
		{"confidence", func(v value) { v.confidence(&a.Confidence) }},
		{"top", func(v value) {
			if n, ok := v.whole(1, longestSeries); ok {
				a.Top = int(n)
			}
		}},
		{"mode", func(v value) { setWord(v, &a.Mode, modes()) }},
		{"rank", func(v value) { setWord(v, &a.Rank, ranks()) }},
		{"at", func(v value) { v.at(&a.At) }},
		{"plots", func(v value) { a.Plots = v.plots() }},
		{"inference_output_fields", columns(&a.CSV.Inference.Columns, InferenceFields(), BackendParameter)},
		{"gpu_output_fields", columns(&a.CSV.GPU.Columns, GPUFields(), "")},
		{"server_output_fields", columns(&a.CSV.Server.Columns, ServerFields(), "")},
		{"formats", func(v value) {
			var list []string
			for _, e := range v.list() {
				if f, ok := e.word(formats); ok {
					list = appendOnce(e, list, f)
				}
			}
			if slices.Contains(list, FormatHelm) && !slices.Contains(list, FormatRepository) {
				v.fail(Error{Problem: "has " + FormatHelm + ", the chart of the repository, without that",
					Hint: "add " + FormatRepository + ", or leave out " + FormatHelm})
			}
			a.Formats = list
		}},
	}
}
