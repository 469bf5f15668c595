package spec

import (
	"cmp"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/spec/csvfiles"
	"tuner/spec/document"
	"tuner/spec/goals"
	"tuner/spec/plots"
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
	CSV         csvfiles.Files
	Plots       []plots.Plot // in addition to the usual ones
	Shared      bool         // Output may also hold other files, like Model Analyzer's export path
	Configs     []string     // names of reported configurations, besides the default; nil: all
}

// The forms of the optimum among the formats. Package report/formats has the list of all formats.
const (
	FormatConfig     = "config"
	FormatRepository = "repository"
	FormatHelm       = "helm" // of the repository; only `tuner run` writes it
)

// Goal returns the campaign's goal. The file's objective, constraints and price replace the
// campaign's, also those that its mode implies. models are the names of the campaign's several
// models; none for one. An Errors means that the goal depends on a cost and neither file has a price, or
// that the campaign has no such metric.
func (a Analyze) Goal(campaign search.Goal, models []string) (search.Goal, error) {
	if a.Rank == RankTop3Mean && len(models) > 0 {
		return campaign, document.Errors{{File: a.Path, Path: "rank", Problem: RankTop3Mean + " is a mean of one model's throughputs, and the campaign has several models",
			Hint: "leave it out"}}
	}
	campaign.Objective, campaign.Constraints = a.objective(campaign, models), a.constraints(campaign)
	campaign.Price = cmp.Or(a.Price, campaign.Price)
	if err := goals.CheckModels(campaign, models); err != nil {
		return campaign, document.Errors{{File: a.Path, Path: "constraints, objective, weights", Problem: err.Error()}}
	}
	if campaign.Price == 0 && slices.Contains(campaign.Metrics(), measure.Cost) {
		return campaign, document.Errors{{File: a.Path, Path: "price", Problem: "is required: the metric cost needs it, and the profile has none",
			Hint: "add a line price: {per_hour: 0.40}, in any currency"}}
	}
	return campaign, nil
}

// ParseAnalyze reads an analyze.yaml. path is its file name for errors. Relative paths in the file
// are relative to its folder. formats are the allowed formats; a file that names none gets all of
// them. The error is a document.Errors with every mistake of the
// file.
func ParseAnalyze(path string, text []byte, formats []string) (Analyze, error) {
	d := document.New(path, initHint)
	a := analyzeDefaults()
	a.Formats = slices.Clone(formats)
	a.Path = path
	root, ok := d.Open(text)
	if !ok || isForeign(root) {
		return Analyze{}, d.Err()
	}
	given := root.Mapping(analyzeFields(&a, formats), nil)
	if _, has := given["input"]; !has {
		root.Require("input", "the output folder of a profile", "add a line input: FOLDER")
	}
	checkObjective(given)
	if field, e := a.contradiction(); field != "" {
		given[field].Fail(e)
	}
	if err := d.Err(); err != nil {
		return Analyze{}, err
	}
	if a.Output == "" {
		a.Output = a.Input
	}
	return a, nil
}

// analyzeFields returns the readers of an analyze.yaml's fields, which store into a.
func analyzeFields(a *Analyze, formats []string) []document.Field {
	folder := func(target *string) func(document.Value) {
		return func(v document.Value) {
			if name, ok := v.Text(); ok {
				*target = document.RelativeTo(a.Path, name)
			}
		}
	}
	set := func(o search.Objective) { a.Objective = &o }
	return []document.Field{
		{Name: "input", Read: folder(&a.Input)},
		{Name: "output", Read: folder(&a.Output)},
		{Name: "objective", Read: func(v document.Value) { set(goals.ObjectiveOfCampaign(v)) }},
		{Name: "weights", Read: func(v document.Value) { set(goals.WeightsOfCampaign(v)) }},
		{Name: "constraints", Read: func(v document.Value) {
			a.Constraints = goals.ConstraintsOfCampaign(v, func(v document.Value) {
				v.Fail(document.Error{Problem: "is decided before a campaign measures anything, not in its analysis",
					Hint: "write it in the profile's constraints, and profile into another output folder"})
			})
		}},
		{Name: "price", Read: func(v document.Value) { a.Price = goals.Price(v) }},
		{Name: "confidence", Read: func(v document.Value) { goals.Confidence(v, &a.Confidence) }},
		{Name: "top", Read: func(v document.Value) {
			if n, ok := v.Whole(1, document.LongestSeries); ok {
				a.Top = int(n)
			}
		}},
		{Name: "mode", Read: func(v document.Value) { setWord(v, &a.Mode, modes()) }},
		{Name: "rank", Read: func(v document.Value) { setWord(v, &a.Rank, ranks()) }},
		{Name: "at", Read: func(v document.Value) { at(v, &a.At) }},
		{Name: "plots", Read: func(v document.Value) { a.Plots = plots.Read(v) }},
		{Name: "inference_output_fields", Read: csvfiles.Columns(&a.CSV.Inference.Columns, csvfiles.InferenceFields(), csvfiles.BackendParameter)},
		{Name: "gpu_output_fields", Read: csvfiles.Columns(&a.CSV.GPU.Columns, csvfiles.GPUFields(), "")},
		{Name: "server_output_fields", Read: csvfiles.Columns(&a.CSV.Server.Columns, csvfiles.ServerFields(), "")},
		{Name: "formats", Read: func(v document.Value) {
			var list []string
			for _, e := range v.List() {
				if f, ok := e.Word(formats); ok {
					list = document.AppendOnce(e, list, f)
				}
			}
			if slices.Contains(list, FormatHelm) && !slices.Contains(list, FormatRepository) {
				v.Fail(document.Error{Problem: "has " + FormatHelm + ", the chart of the repository, without that",
					Hint: "add " + FormatRepository + ", or leave out " + FormatHelm})
			}
			a.Formats = list
		}},
	}
}
