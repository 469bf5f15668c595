package modelanalyzer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tuner/spec"
	"tuner/spec/csvfiles"
	"tuner/spec/document"
)

// variantMark separates a model's name and the number of its configuration in Model Analyzer's
// names of configurations.
const variantMark = "_config_"

// analysis describes the analysis of one campaign's results.
type analysis struct {
	at      value
	folder  string   // of the campaign, below the checkpoints
	configs []string // reported configurations; nil: all
	goal    *model   // model whose goal replaces the campaign's; nil: none
	// together are several models whose goal replaces that of their campaign; empty: none
	together []model
	plots    []value // plots of its models; empty: those of the file
}

// analyses returns the analyses that a file requests. They cover the configurations in
// report_model_configs, or the models in analysis_models, or else those in profile_models. Each
// uses the folder of its campaign.
func (r *reader) analyses(root value) []spec.Analyze {
	var asked []analysis
	switch {
	case r.has("report_model_configs"):
		for _, x := range r.reported() {
			asked = append(asked, r.measured(x)...)
		}
	case r.has("analysis_models"):
		for _, m := range r.models("analysis_models", AnalysisSpec) {
			asked = append(asked, r.measured(analysis{at: m.at, folder: m.name, goal: &m})...)
		}
	case r.has("profile_models"):
		models := r.models("profile_models", PerModel)
		if r.isTogether(models) {
			asked = append(asked, analysis{at: models[0].at, folder: nameOf(models), together: models})
			break
		}
		for _, m := range models {
			for _, folder := range folders(m, r.batches(m)) {
				asked = append(asked, analysis{at: m.at, folder: folder, goal: &m})
			}
		}
	default:
		r.fail(root, document.Error{Problem: "names no models", Allowed: "report_model_configs, analysis_models, profile_models"})
	}
	r.several = len(asked) > 1
	var list []spec.Analyze
	for _, x := range asked {
		list = append(list, r.results(x))
	}
	return list
}

// has reports whether the file has a field, with any value.
func (r *reader) has(name string) bool {
	_, has := r.given[name]
	return has
}

// reported groups report_model_configs by model.
func (r *reader) reported() []analysis {
	var list []analysis
	for _, m := range r.models("report_model_configs", ReportSpec) {
		end := strings.LastIndex(m.name, variantMark) // a model's name may have it, too
		if end < 0 {
			r.fail(m.at, document.Error{Problem: fmt.Sprintf("%q is not the name of a configuration", m.name), Allowed: "MODEL_config_default, MODEL_config_0, …"})
			continue
		}
		name := m.name[:end]
		i := slices.IndexFunc(list, func(a analysis) bool { return a.folder == name })
		if i < 0 {
			i = len(list)
			list = append(list, analysis{at: m.at, folder: name})
		}
		list[i].configs = append(list[i].configs, m.name)
		if v, has := m.given["plots"]; has && v.isSaid() {
			list[i].plots = append(list[i].plots, v)
		}
	}
	return list
}

// measured returns the analyses of a model's campaigns. A file that reports does not say whether they had several client
// batches. So their folders are looked for where that of a single campaign is missing.
func (r *reader) measured(x analysis) []analysis {
	if r.machine.Folders == nil {
		return []analysis{x}
	}
	var batches []int
	for _, folder := range r.machine.Folders(r.checkpoints()) {
		if folder == x.folder {
			return []analysis{x}
		}
		if batch, ok := strings.CutPrefix(folder, x.folder+batchMark); ok {
			if n, err := strconv.Atoi(batch); err == nil {
				batches = append(batches, n)
			}
		}
	}
	if len(batches) == 0 {
		return []analysis{x} // which is told where it is read
	}
	slices.Sort(batches)
	list := make([]analysis, len(batches))
	for i, batch := range batches {
		list[i] = x
		list[i].folder += batchMark + strconv.Itoa(batch)
	}
	return list
}

// results converts the analysis of a campaign's folder into an analyze.yaml of tuner's own, and has
// it read.
func (r *reader) results(x analysis) spec.Analyze {
	n := newNative()
	n.text(x.at, r.relativePath(filepath.Join(r.checkpoints(), x.folder)), "input")
	at, export := r.exportPath()
	if at.node == nil {
		at = x.at
	}
	if r.several {
		export = filepath.Join(export, reportsFolder, x.folder)
	}
	n.text(at, r.relativePath(export), "output")
	if v, has := r.said("num_configs_per_model"); has {
		n.word(v, v.node.Value, "top")
	}
	switch {
	case x.goal != nil:
		r.goal(n, *x.goal)
	case len(x.together) > 0:
		r.goalTogether(n, x.together)
	}
	r.plots(n, x)
	text, err := n.print()
	var a spec.Analyze
	if err == nil {
		a, err = spec.ParseAnalyze(r.path, text, r.options.Formats)
	}
	r.translate(n, err)
	a.CSV, a.Shared, a.Configs = r.csv(), !r.several, x.configs
	return a
}

// plots adds the plots of an analysis's models, or else the file's. If two have the same name, the
// first counts.
func (r *reader) plots(n *native, x analysis) {
	asked := x.plots
	if v, has := r.said("plots"); has && len(asked) == 0 {
		asked = []value{v}
	}
	seen := map[string]bool{}
	for _, plots := range asked {
		if !plots.isMapping() {
			r.fail(plots, document.Error{Problem: "must be a mapping (name: {title, x_axis, y_axis, monotonic})"})
		}
		for _, p := range plots.entries() {
			if seen[p.name] {
				continue
			}
			seen[p.name] = true
			r.plot(n, p)
		}
	}
}

// plot adds a plot, with tuner's names of metrics.
func (r *reader) plot(n *native, p entry) {
	for _, f := range p.entries() {
		node := f.node
		if isAxis := f.name == "x_axis" || f.name == "y_axis"; isAxis && f.node.Value != "concurrency" && f.node.Value != "request_rate" {
			tag, ok := r.tag(f.value)
			if !ok {
				continue
			}
			node = scalar(f.value, tag, true)
		}
		n.set(f.value, node, "plots", p.name, f.name)
	}
}

// reportsFolder has the results of each model, below the export path, if there are several.
const reportsFolder = "reports"

// exportPath returns the folder of the results, relative to the working folder.
func (r *reader) exportPath() (value, string) {
	at, export := r.text("export_path", ".")
	return at, cmp.Or(r.options.ExportPath, export)
}

// joint returns the folder of the results of all models together, relative to the working folder;
// "" for a single model.
func (r *reader) joint() string {
	if !r.several {
		return ""
	}
	_, export := r.exportPath()
	return filepath.Clean(export)
}

// csv reads the names and the columns of the CSV files.
func (r *reader) csv() csvfiles.Files {
	return csvfiles.Files{
		Inference: r.csvFile("filename_model_inference", "inference_output_fields", csvfiles.InferenceFields(), csvfiles.BackendParameter),
		GPU:       r.csvFile("filename_model_gpu", "gpu_output_fields", csvfiles.GPUFields(), ""),
		Server:    r.csvFile("filename_server_only", "server_output_fields", csvfiles.ServerFields(), ""),
	}
}

// csvFile reads one of them. Its columns must be allowed, or begin with the prefix if there is one.
func (r *reader) csvFile(nameField, columnsField string, allowed []string, prefix string) csvfiles.File {
	var f csvfiles.File
	if v, has := r.said(nameField); has {
		if f.Name = v.node.Value; f.Name != filepath.Base(f.Name) || f.Name == ".." {
			r.fail(v, document.Error{Problem: "is not the name of a file without a folder"})
		}
	}
	v, has := r.said(columnsField)
	if !has {
		return f
	}
	for _, e := range v.words() {
		name := e.node.Value
		isParameter := prefix != "" && strings.HasPrefix(name, prefix) && len(name) > len(prefix)
		switch {
		case !isParameter && !slices.Contains(allowed, name):
			r.fail(e, document.Error{Problem: "is not a column of this file", Allowed: strings.Join(allowed, ", ")})
		case csvfiles.IsUnmeasured(name):
			r.warn(e, "%s is not measured: its column is empty", name)
		}
		f.Columns = append(f.Columns, name)
	}
	return f
}
