package figures

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/model/precision/accuracy"
	"tuner/ort/provider"
	"tuner/profile/journal"
	"tuner/search"
)

// AccuracyLimit prints the limit of accuracy: "cosine ≥ 0.99"; "" without one.
func AccuracyLimit(r analyze.Result) string { return ofEach(r, accuracyLimit) }

func accuracyLimit(r analyze.Result) string {
	if r.Accuracy.Limit == nil {
		return ""
	}
	return r.Accuracy.Limit.String()
}

// AccuracyData names the data with which all variants were compared; "" if nothing was compared.
func AccuracyData(r analyze.Result) string { return ofEach(r, accuracyData) }

func accuracyData(r analyze.Result) string {
	var report *accuracy.Report
	for _, v := range r.Header.Variants {
		for _, compared := range v.Accuracy {
			report = &compared
		}
	}
	switch {
	case report == nil:
		return ""
	case report.Synthetic:
		return words.Count(report.Rows, "row") + " of random inputs; your own data (accuracy.data in the profile) may give another result"
	}
	return fmt.Sprintf("%s of %s", words.Count(report.Rows, "row"), r.Accuracy.Data)
}

// figuresOf finds the output with the least agreement.
func figuresOf(report accuracy.Report) (output string, f accuracy.Figures, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(report.Outputs)) {
		other := report.Outputs[name]
		if !ok || agreesLess(other, f) {
			output, f, ok = name, other, true
		}
	}
	return output, f, ok
}

// agreesLess orders outputs by mean cosine. One without a cosine, such as of whole numbers, agrees more
// than each that has one. Two of them are ordered by their largest error, if they have one.
func agreesLess(a, b accuracy.Figures) bool {
	if math.IsNaN(a.CosineMean) && math.IsNaN(b.CosineMean) {
		return !math.IsNaN(a.MaxAbs) && !(a.MaxAbs <= b.MaxAbs) // NaN is not
	}
	return !math.IsNaN(a.CosineMean) && !(a.CosineMean >= b.CosineMean)
}

// limitedText prints the figure that the limit bounds, for the worst output: "top5 agreement 0.97
// (output "logits")".
func limitedText(l accuracy.Limit, report accuracy.Report) string {
	text := strings.ReplaceAll(l.Metric, "_", " ")
	value, _ := l.Check(report)
	text += " " + figureText(value)
	// these figures cover all outputs together
	if len(report.Outputs) < 2 || l.Metric == "command" || l.Metric == "top1_accuracy_loss" {
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(report.Outputs)) {
		if one, _ := l.Check(accuracy.Report{Outputs: map[string]accuracy.Figures{name: report.Outputs[name]}}); one == value {
			return fmt.Sprintf("%s (output %q)", text, name)
		}
	}
	return text
}

// accuracyText prints a comparison: "cosine 0.9931 (least 0.983), nearest neighbour 89 %". The
// limited figure comes first, unless the other figures include it.
func accuracyText(r analyze.Result, report accuracy.Report) string {
	_, f, ok := figuresOf(report)
	if !ok {
		return "not compared"
	}
	var parts []string
	limit := r.Accuracy.Limit
	if limit != nil && (limit.Metric != "cosine" || len(report.Outputs) > 1) {
		parts = append(parts, limitedText(*limit, report))
	}
	if !math.IsNaN(f.CosineMean) {
		parts = append(parts, fmt.Sprintf("cosine %s (least %s)", figureText(f.CosineMean), figureText(f.CosineMin)))
	}
	parts = append(parts, "largest error "+figureText(f.MaxAbs))
	for _, share := range []struct {
		name  string
		value float64
	}{{"top-1", f.Top1}, {"nearest neighbour", f.Neighbour}} {
		if !math.IsNaN(share.value) {
			parts = append(parts, share.name+" "+shareText(share.value))
		}
	}
	if report.Command != nil && (limit == nil || limit.Metric != "command") {
		parts = append(parts, "command "+figureText(*report.Command))
	}
	return strings.Join(parts, ", ")
}

// figureText prints a figure of accuracy; "–" without one. A figure just below 1 does not print as
// 1.
func figureText(v float64) string {
	text := fmt.Sprintf("%.4g", v)
	switch {
	case math.IsNaN(v):
		return "–"
	case v < 1 && text == "1":
		return ">0.9999"
	}
	return text
}

func shareText(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// VariantNotes returns the terminal's lines on accuracy: the figures of accepted variants, and the
// rejected ones.
func VariantNotes(r analyze.Result) []string { return linesOfEach(r, variantNotes) }

func variantNotes(r analyze.Result) []string {
	var lines []string
	for _, v := range r.Header.Variants {
		for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
			if v.Rejected[place] == "" && v.Rejected[""] == "" {
				lines = append(lines, fmt.Sprintf("Accuracy of %s: %s%s.", v.NameIn(place), accuracyText(r, v.Accuracy[place]), keptText(v)))
			}
		}
	}
	if len(lines) > 0 {
		lines = append(lines, "Compared with fp32 on cpu, on "+AccuracyData(r)+".")
	}
	for _, rejected := range Rejections(r) {
		lines = append(lines, "Rejected, and not measured: "+rejected)
	}
	return lines
}

// Rejections list the variants that were never measured, with the reasons: "int8 on openvino: why".
func Rejections(r analyze.Result) []string { return linesOfEach(r, rejections) }

func rejections(r analyze.Result) []string {
	var lines []string
	for _, v := range r.Header.Variants {
		for _, place := range slices.Sorted(maps.Keys(v.Rejected)) {
			lines = append(lines, fmt.Sprintf("%s: %s", v.NameIn(place), firstLine(v.Rejected[place])))
		}
	}
	return lines
}

// keptText says how many operators stayed in fp32.
func keptText(v journal.Variant) string {
	if len(v.Kept) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d operators stay in fp32", len(v.Kept), len(v.Kept)+v.Converted)
}

// VariantHeads are the columns of the table of variants.
var VariantHeads = []string{"precision", "provider", "size", "cosine mean", "1st percentile", "least", "largest error", "top-1",
	"nearest neighbour", "limited figure", "verdict"}

func VariantRows(r analyze.Result) [][]string {
	var cells [][]string
	for _, one := range alone(r) {
		rows := variantRows(one)
		for i := range rows {
			if len(r.Served()) > 0 {
				rows[i][0] = one.Header.Model + " " + rows[i][0]
			}
		}
		cells = append(cells, rows...)
	}
	return cells
}

func variantRows(r analyze.Result) [][]string {
	var cells [][]string
	for _, v := range r.Header.Variants {
		for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
			cells = append(cells, variantRow(r, v, place))
		}
	}
	return cells
}

// variantRow makes a row of the table of variants.
func variantRow(r analyze.Result, v journal.Variant, place string) []string {
	report := v.Accuracy[place]
	_, f, _ := figuresOf(report)
	size, verdict, limited := "", "accepted", ""
	if l := r.Accuracy.Limit; l != nil {
		limited = limitedText(*l, report)
	}
	if v.Bytes > 0 {
		size = fmt.Sprintf("%.3g MB", float64(v.Bytes)/1e6)
	}
	if v.Rejected[place] != "" || v.Rejected[""] != "" {
		verdict = "rejected"
	}
	return []string{v.Precision, place, size, figureText(f.CosineMean), figureText(f.CosineP1), figureText(f.CosineMin),
		figureText(f.MaxAbs), shareText(f.Top1), shareText(f.Neighbour), limited, verdict}
}

// comparisonOf finds the comparison of a configuration's outputs with the original's. It names the
// variant with its place, and returns false for the original on cpu.
func comparisonOf(r analyze.Result, c analyze.Config) (report accuracy.Report, variant string, ok bool) {
	place := search.Place{Provider: c.Setup.Provider}
	if len(r.Header.Runtimes) > 1 {
		place.Runtime = c.Setup.Runtime
	}
	for _, v := range r.Header.Variants {
		if report, ok := v.Accuracy[place.String()]; ok && v.Precision == c.Setup.Precision {
			return report, v.NameIn(place.String()), true
		}
	}
	return accuracy.Report{}, "", false
}

// AccuracyReason describes the accuracy of a configuration in a sentence; "" for the original on
// cpu.
func AccuracyReason(r analyze.Result, c analyze.Config) string {
	return ofEach(r, func(one analyze.Result) string { return accuracyReason(one, partOf(one, c)) })
}

func accuracyReason(r analyze.Result, c analyze.Config) string {
	report, variant, ok := comparisonOf(r, c)
	if !ok {
		return ""
	}
	return fmt.Sprintf("Accuracy of %s: %s; limit %s; compared on %s.", variant, accuracyText(r, report), AccuracyLimit(r), AccuracyData(r))
}

// shortAccuracy describes the accuracy in a few words: "int8 on cpu has cosine 0.9931 on 64 rows of
// random data (limit cosine ≥ 0.99)". It returns "" for the original on cpu.
func shortAccuracy(r analyze.Result, c analyze.Config) string {
	return ofEach(r, func(one analyze.Result) string { return accuracyInShort(one, partOf(one, c)) })
}

func accuracyInShort(r analyze.Result, c analyze.Config) string {
	report, variant, ok := comparisonOf(r, c)
	if !ok {
		return ""
	}
	data := "your data"
	if report.Synthetic {
		data = "random data"
	}
	figure := "no figures"
	if _, f, ok := figuresOf(report); ok && !math.IsNaN(f.CosineMean) {
		figure = "cosine " + figureText(f.CosineMean)
	} else if l := r.Accuracy.Limit; l != nil {
		figure = limitedText(*l, report)
	}
	text := fmt.Sprintf("%s has %s on %s of %s", variant, figure, words.Count(report.Rows, "row"), data)
	if limit := AccuracyLimit(r); limit != "" {
		text += fmt.Sprintf(" (limit %s)", limit)
	}
	return text
}

// AssignedNotes report the share of the model that each execution provider took, if known.
func AssignedNotes(r analyze.Result) []string {
	var lines []string
	for _, of := range slices.Sorted(maps.Keys(r.Assigned)) {
		isTried := slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Setup.Provider == of })
		if of != provider.CPU && isTried {
			lines = append(lines, fmt.Sprintf("%s took %s.", of, r.Assigned[of]))
		}
	}
	return lines
}
