package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/journal"
	"tuner/precision/accuracy"
	"tuner/provider"
	"tuner/report/result"
	"tuner/search"
)

// limitOf prints the limit of accuracy: "cosine ≥ 0.99"; "" without one.
func limitOf(r analyze.Result) string {
	if r.Accuracy.Limit == nil {
		return ""
	}
	return r.Accuracy.Limit.String()
}

// dataOf says what variants were compared on; "" when nothing was compared. All were compared on the same.
func dataOf(r analyze.Result) string {
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
		return count(report.Rows, "row") + " of synthetic (random) inputs: your own data (accuracy.data in the profile) may tell otherwise"
	}
	return fmt.Sprintf("%s of %s", count(report.Rows, "row"), r.Accuracy.Data)
}

// figuresOf is the report on the output that agrees least, by its mean cosine, then by its largest error.
func figuresOf(report accuracy.Report) (output string, f accuracy.Figures, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(report.Outputs)) {
		other := report.Outputs[name]
		if !ok || other.CosineMean < f.CosineMean || math.IsNaN(f.CosineMean) && other.MaxAbs > f.MaxAbs {
			output, f, ok = name, other, true
		}
	}
	return output, f, ok
}

// limitedText is the figure that the limit bounds, of the output that is worst by it: "top5 agreement 0.97 (output "logits")".
func limitedText(l accuracy.Limit, report accuracy.Report) string {
	text := strings.ReplaceAll(l.Metric, "_", " ")
	value, _ := l.Check(report)
	text += " " + figureText(value)
	if len(report.Outputs) < 2 || l.Metric == "command" || l.Metric == "top1_accuracy_loss" { // these are not of one output among several
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(report.Outputs)) {
		if one, _ := l.Check(accuracy.Report{Outputs: map[string]accuracy.Figures{name: report.Outputs[name]}}); one == value {
			return fmt.Sprintf("%s (output %q)", text, name)
		}
	}
	return text
}

// accuracyText prints a comparison in a few words: "cosine 0.9931 (least 0.983), nearest neighbour 89 %". What the limit bounds
// comes first where the rest does not say it.
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

// figureText prints a figure of accuracy; "–" where it makes no sense. What is nearly 1 does not read as if it were.
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

// variantNotes are the terminal's lines on accuracy: what is deployed with other outputs than the original's, and what was
// thrown out.
func variantNotes(r analyze.Result) []string {
	var lines []string
	for _, v := range r.Header.Variants {
		for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
			if v.Rejected[place] == "" && v.Rejected[""] == "" {
				lines = append(lines, fmt.Sprintf("Accuracy of %s: %s%s.", pairText(v.Precision, place), accuracyText(r, v.Accuracy[place]), keptText(v)))
			}
		}
	}
	if len(lines) > 0 {
		lines = append(lines, "Compared with fp32 on cpu, on "+dataOf(r)+".")
	}
	for _, rejected := range rejections(r) {
		lines = append(lines, "Rejected, and not measured: "+rejected)
	}
	return lines
}

// rejections say what was never measured, because of its accuracy or because it cannot be made: "int8 on openvino: why".
func rejections(r analyze.Result) []string {
	var lines []string
	for _, v := range r.Header.Variants {
		for _, place := range slices.Sorted(maps.Keys(v.Rejected)) {
			lines = append(lines, fmt.Sprintf("%s: %s", pairText(v.Precision, place), firstLine(v.Rejected[place])))
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

// pairText names a precision in a place: "int8 on cpu in openvino@1.24.1".
func pairText(precision, place string) string {
	if place == "" {
		return precision
	}
	return precision + " on " + place
}

// writeVariants writes the section on accuracy: each variant's figures, what stayed in fp32, and what was rejected.
func writeVariants(b *strings.Builder, r analyze.Result) {
	if len(r.Header.Variants) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Accuracy of the variants\n\n")
	if data := dataOf(r); data != "" {
		fmt.Fprintf(b, "Compared with fp32 on cpu, on %s. Limit: %s.\n\n", escapeMarkdown(data), escapeMarkdown(limitOf(r)))
	}
	if cells := variantRows(r); len(cells) > 0 {
		b.WriteString(markdownTable(variantHeads, cells, nil))
	}
	for _, v := range r.Header.Variants {
		for _, note := range v.Notes {
			fmt.Fprintf(b, "\n%s: %s.\n", escapeMarkdown(v.Precision), escapeMarkdown(strings.TrimSuffix(note, ".")))
		}
		if len(v.Kept) > 0 {
			fmt.Fprintf(b, "\nIn %s these operators stay in fp32 to keep the limit (relative error that they would have):\n\n", escapeMarkdown(v.Precision))
		}
		for _, k := range v.Kept {
			fmt.Fprintf(b, "- %s (%.3g)\n", escapeMarkdown(k.Node), k.Error)
		}
	}
	if rejected := rejections(r); len(rejected) > 0 {
		fmt.Fprintf(b, "\n### Rejected variants\n\nThey were never measured:\n\n")
		for _, line := range rejected {
			fmt.Fprintf(b, "- %s\n", escapeMarkdown(line))
		}
	}
}

// variantHeads are the columns of the table of variants.
var variantHeads = []string{"precision", "provider", "size", "cosine mean", "1st percentile", "least", "largest error", "top-1",
	"nearest neighbour", "limited figure", "verdict"}

func variantRows(r analyze.Result) [][]string {
	var cells [][]string
	for _, v := range r.Header.Variants {
		for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
			cells = append(cells, variantRow(r, v, place))
		}
	}
	return cells
}

// variantRow is a line of the table of variants.
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

// comparisonOf is what came of comparing a configuration's outputs with the original's, and the variant with its place; false for the original
// on cpu.
func comparisonOf(r analyze.Result, c analyze.Config) (report accuracy.Report, variant string, ok bool) {
	place := search.Place{Provider: c.Setup.Provider}
	if len(r.Header.Runtimes) > 1 {
		place.Runtime = c.Setup.Runtime
	}
	for _, v := range r.Header.Variants {
		if report, ok := v.Accuracy[place.String()]; ok && v.Precision == c.Setup.Precision {
			return report, pairText(v.Precision, place.String()), true
		}
	}
	return accuracy.Report{}, "", false
}

// accuracyReason is what the comments of the optimal configuration say about its accuracy; "" for the original on cpu.
func accuracyReason(r analyze.Result, c analyze.Config) string {
	report, variant, ok := comparisonOf(r, c)
	if !ok {
		return ""
	}
	return fmt.Sprintf("Accuracy of %s: %s; limit %s; compared on %s.", variant, accuracyText(r, report), limitOf(r), dataOf(r))
}

// shortAccuracy is how far the outputs of a configuration agree with the original's, in a few words: "int8 on cpu has cosine 0.9931 on 64 rows of
// random data (limit cosine ≥ 0.99)"; "" for the original on cpu.
func shortAccuracy(r analyze.Result, c analyze.Config) string {
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
	text := fmt.Sprintf("%s has %s on %s of %s", variant, figure, count(report.Rows, "row"), data)
	if limit := limitOf(r); limit != "" {
		text += fmt.Sprintf(" (limit %s)", limit)
	}
	return text
}

// assignedNotes say how much of the model each execution provider took, as far as it is known.
func assignedNotes(r analyze.Result) []string {
	var lines []string
	for _, of := range slices.Sorted(maps.Keys(r.Assigned)) {
		isTried := slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Setup.Provider == of })
		if of != provider.CPU && isTried {
			lines = append(lines, fmt.Sprintf("%s took %s.", of, r.Assigned[of]))
		}
	}
	return lines
}

func newJSONVariant(r analyze.Result, v journal.Variant) result.Variant {
	j := result.Variant{Precision: v.Precision, Own: v.Own, Path: v.Path, SHA256: v.SHA256, Bytes: v.Bytes, Converted: v.Converted,
		Kept: v.Kept, Notes: v.Notes, Accuracy: v.Accuracy}
	for _, report := range v.Accuracy {
		j.Data = "user"
		if report.Synthetic {
			j.Data = "synthetic"
		}
	}
	for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
		judge := search.ParsePlace(place)
		j.Judges = append(j.Judges, result.Judge{Provider: judge.Provider, Runtime: cmp.Or(judge.Runtime, r.Header.Runtime.Name())})
	}
	for _, place := range slices.Sorted(maps.Keys(v.Rejected)) {
		out := search.ParsePlace(place)
		j.Rejected = append(j.Rejected, result.Rejection{Provider: out.Provider, Runtime: out.Runtime, Reason: v.Rejected[place]})
	}
	return j
}
