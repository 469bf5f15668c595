package csv

import (
	"fmt"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/spec/csvfiles"
	"tuner/spec/goals"
)

// Model Analyzer writes one row for models that were under load at once. A cell has the values of all
// models in their order, with commas between them. A figure stands before its values in brackets: the
// sum of throughputs, the mean of all others (`_create_non_gpu_metric_row_entry` and `format_for_csv`
// in its result package).

// severalCell is inferenceCell for several models.
func severalCell(r analyze.Result, x measuredPoint, field string) string {
	switch field {
	case "model_name":
		return Text(ofEach(r, func(i int) string { return r.Models[i].Header.Model }))
	case "batch_size":
		return ofEach(r, func(i int) string { return known(strconv.Itoa(loadOf(r, x, i).BatchSize)) })
	case "concurrency":
		return ofEach(r, func(i int) string { return known(strconv.Itoa(loadOf(r, x, i).Concurrency)) })
	case "request_rate":
		return ofEach(r, func(i int) string { return known(strconv.FormatFloat(loadOf(r, x, i).RequestRate, 'g', -1, 64)) })
	case "model_config_path":
		return Text(ofEach(r, func(i int) string {
			return r.Models[i].Header.Model + strings.TrimPrefix(x.config.Name, r.Header.Model)
		}))
	case "instance_group":
		return ofEach(r, func(i int) string {
			return fmt.Sprintf("%d:%s", x.config.Parts[i].Setup.Instances, deviceOf(partOf(x.config, i)))
		})
	case "max_batch_size":
		return ofEach(r, func(i int) string { return figures.BatchCell(partOf(x.config, i)) })
	case "satisfies_constraints":
		return x.satisfies
	}
	if parameter, ok := strings.CutPrefix(field, csvfiles.BackendParameter); ok {
		return Text(ofEach(r, func(i int) string { return x.config.Parts[i].Deployed.GetParameters()[parameter].GetStringValue() }))
	}
	metric := goals.TagMetric(field)
	if metric == "" {
		return ""
	}
	return joinedFigure(r, x, metric)
}

// stageCell is inferenceCell for the fields of a pipeline that have the values of its stages. As in Model
// Analyzer (`_tabulate_measurements_setup`), the name of a configuration has those of the stages behind it.
// It returns false for other fields, and without a pipeline.
func stageCell(r analyze.Result, x measuredPoint, field string) (string, bool) {
	if !r.IsPipeline() {
		return "", false
	}
	join := func(separator string, text func(p analyze.ConfigPart) string) string {
		var list []string
		for _, p := range x.config.Parts {
			if !p.Calls {
				list = append(list, text(p))
			}
		}
		return strings.Join(list, separator)
	}
	parameter, isParameter := strings.CutPrefix(field, csvfiles.BackendParameter)
	switch {
	case field == "model_config_path":
		return Text(x.config.Name + ": " + join(", ", func(p analyze.ConfigPart) string { return p.Model + strings.TrimPrefix(x.config.Name, r.Header.Model) })), true
	case field == "instance_group":
		return join(",", func(p analyze.ConfigPart) string {
			return fmt.Sprintf("%d:%s", p.Setup.Instances, deviceOf(analyze.Config{Setup: p.Setup, Deployed: p.Deployed}))
		}), true
	case field == "max_batch_size":
		return join(",", func(p analyze.ConfigPart) string { return figures.BatchCell(analyze.Config{Setup: p.Setup}) }), true
	case isParameter:
		return Text(join(",", func(p analyze.ConfigPart) string { return p.Deployed.GetParameters()[parameter].GetStringValue() })), true
	}
	return "", false
}

// ofEach joins a text of each model.
func ofEach(r analyze.Result, text func(i int) string) string {
	list := make([]string, len(r.Models))
	for i := range list {
		list[i] = text(i)
	}
	return strings.Join(list, ",")
}

// loadOf returns the load of a model at a point.
func loadOf(r analyze.Result, x measuredPoint, i int) measure.Load {
	return x.Load.Of(r.Models[i].Header.Model)
}

// partOf returns a configuration's part of one model, as a configuration of it alone.
func partOf(c analyze.Config, i int) analyze.Config {
	p := c.Parts[i]
	return analyze.Config{Candidate: c.Candidate.Of(p.Model), Setup: p.Setup, Deployed: p.Deployed, Text: p.Text}
}

// joinedFigure prints a figure of all models: "380.4, [120.2,260.2]". It is "" if a model lacks it.
// Figures of the server are alike for all.
func joinedFigure(r analyze.Result, x measuredPoint, metric measure.Metric) string {
	sum := 0.0
	values := make([]string, len(r.Models))
	factor := figures.QuantityOf(metric).Factor
	for i, m := range r.Models {
		of := metric.Of(m.Header.Model)
		if goals.IsServers(metric) {
			of = metric
		}
		e, ok := x.Values[of]
		if !ok {
			return ""
		}
		sum += e.Value
		values[i] = threeDecimals(e.Value * factor)
	}
	if metric != measure.Throughput {
		sum /= float64(len(r.Models))
	}
	return fmt.Sprintf("%s, [%s]", threeDecimals(sum*factor), strings.Join(values, ","))
}
