package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
)

// Result is the result of a request.
type Result struct {
	Request
	Repeats  accuracy.Report // of the original on cpu, compared with itself in a second run
	Variants []Variant
}

// Variant is the result for one precision, as `tuner convert --format json` prints it. Each variant
// is judged on every provider.
type Variant struct {
	Precision string `json:"precision"` // precision that was asked for, such as int8
	// path of the written file; absent if none was written
	Path      string `json:"path,omitempty"`
	Digest    string `json:"digest,omitempty"` // SHA-256 of the model with its external data
	Bytes     int64  `json:"bytes,omitempty"`  // size of the file with its external data, in bytes
	Converted int    `json:"converted"`        // number of nodes that were converted
	// nodes that stay in fp32 to keep the limit, the most sensitive first
	Kept  []precision.KeptNode `json:"kept"`
	Left  []rewrite.Kept       `json:"left"`  // nodes that could not be converted
	Notes []string             `json:"notes"` // remarks on the conversion, in sentences
	// comparisons with the original, by execution provider; null if nothing was compared
	Accuracy map[string]accuracy.Report `json:"accuracy"`
	// reason why the variant must not be served, by execution provider; a provider without an entry
	// accepts it
	Rejected map[string]string `json:"rejected"`
	// description of the nodes that a provider takes, by execution provider; cpu has no entry
	Assigned map[string]string `json:"assigned"`
	// why the variant could not be made; absent if it was made
	Error     string `json:"error,omitempty"`
	FromCache bool   `json:"from_cache"` // variant and figures come from the cache: nothing was converted or run

	made precision.Variant
	err  error // reason why there is no such variant
}

// Document is the JSON of a result.
type Document struct {
	Model string `json:"model"` // path of the model, as the user named it
	Data  string `json:"data"`  // data that outputs were compared on
	// number of rows that were compared; a request of a fixed batch has several
	Rows      int  `json:"rows"`
	Synthetic bool `json:"synthetic"` // the data was random, since the user named none
	// limit that a variant must keep; absent if variants are only measured
	Limit *accuracy.Limit `json:"limit,omitempty"`
	// the original on cpu compared with itself in a second run, on the first rows
	Repeats  accuracy.Report `json:"determinism"`
	Variants []Variant       `json:"variants"` // result for each precision, in the order of --precision
}

// WriteJSON writes the result for programs.
func (r Result) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	err := enc.Encode(Document{r.Model, r.Settings.Data.Name, r.rows(), r.Settings.Data.Synthetic, r.Settings.Limit, r.Repeats, r.Variants})
	if err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	return nil
}

// WriteText writes the result for people.
func (r Result) WriteText(out io.Writer) error {
	var b strings.Builder
	r.text(&b)
	if _, err := io.WriteString(out, terminal.Fold(b.String(), terminal.Width)); err != nil {
		return fmt.Errorf("cannot print the variants: %w", err)
	}
	return nil
}

// text writes the report on the variants for people.
func (r Result) text(b *strings.Builder) {
	fmt.Fprintf(b, "variants of %s, compared with it on %s\n", r.Model, r.dataText())
	for _, note := range r.Settings.Data.Notes {
		fmt.Fprintf(b, "  %s\n", note)
	}
	for _, note := range r.Settings.Calibration.Notes {
		fmt.Fprintf(b, "  calibration: %s\n", note)
	}
	if text := wobbleText(r.Repeats.Difference()); text != "" {
		fmt.Fprintf(b, "  the original's outputs are not the same in each run: %s\n", text)
	}
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PRECISION\tPROVIDER\tSIZE\tNODES\tKEPT\tCOSINE\tP1\tMIN\tTOP-1\tNEIGHBOURS\tVERDICT")
	for _, v := range r.Variants {
		for _, provider := range r.Providers {
			fmt.Fprintln(table, r.row(v, provider))
		}
	}
	_ = table.Flush() // a strings.Builder accepts everything
	fmt.Fprint(b, "NODES converted, KEPT in fp32 for the limit; COSINE: mean, first percentile and minimum of the rows\n\n")
	for _, v := range r.Variants {
		r.printDetails(b, v)
	}
}

// rows returns the number of compared rows. With a fixed batch it counts those of all requests.
func (r Result) rows() int {
	for _, v := range r.Variants {
		for _, report := range v.made.Accuracy {
			return report.Rows
		}
	}
	return r.Settings.Data.Rows
}

// wobbleText describes how much an original differs from itself; "" if it does not.
func wobbleText(difference float64) string {
	switch {
	case math.IsInf(difference, 0):
		return "a whole number changes, or a value is NaN or infinite in one run alone"
	case difference > 0:
		return fmt.Sprintf("they differ by up to %.3g", difference)
	}
	return ""
}

// dataText names the data, and mentions if it is random.
func (r Result) dataText() string {
	text := fmt.Sprintf("%s of %s", words.Count(r.rows(), "row"), r.Settings.Data.Name)
	if r.Settings.Data.Synthetic {
		text = words.Count(r.rows(), "row") + " of synthetic data\n" +
			"  synthetic data are random inputs: they say less about accuracy than your own (--data)"
	}
	return text
}

// row returns a row of the table. For several outputs it shows the one with the lowest cosine.
func (r Result) row(v Variant, provider string) string {
	report, measured := v.Accuracy[provider]
	verdict := r.verdictOf(v, provider, measured)
	if v.made.Path == "" { // not made
		return fmt.Sprintf("%s\t%s\t\t\t\t\t\t\t\t\t%s", v.Precision, provider, verdict)
	}
	text := fmt.Sprintf("%s\t%s\t%s\t%d\t%d", v.Precision, provider, sizeText(v.Bytes), v.Converted, len(v.Kept))
	if !measured {
		return text + "\t\t\t\t\t\t" + verdict
	}
	f := lowest(report)
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", text, figure(f.CosineMean), figure(f.CosineP1), figure(f.CosineMin),
		percent(f.Top1), percent(f.Neighbour), verdict)
}

// verdictOf returns the last cell of a row.
func (r Result) verdictOf(v Variant, provider string, measured bool) string {
	switch {
	case errors.Is(v.err, precision.ErrUnmakeable):
		return "cannot be made"
	case v.Rejected[provider] != "":
		return "rejected"
	case measured && r.Settings.Limit != nil:
		return "accepted"
	case measured:
		return "measured"
	case v.err != nil:
		return "failed"
	}
	return "the original"
}

// lowest returns the figures of the output with the lowest cosine. If none has one, it returns
// those of the first by name.
func lowest(r accuracy.Report) accuracy.Figures {
	var low accuracy.Figures
	for i, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		f := r.Outputs[name]
		if i == 0 || f.CosineMean < low.CosineMean || math.IsNaN(low.CosineMean) {
			low = f
		}
	}
	return low
}

// printDetails prints details of a variant that do not fit into the table.
func (r Result) printDetails(out io.Writer, v Variant) {
	switch {
	case v.Path != "":
		fmt.Fprintf(out, "%s: %s\n", v.Precision, v.Path)
	case v.made.Path == r.Model:
		fmt.Fprintf(out, "%s: the original itself; there is nothing to write\n", v.Precision)
	}
	for _, provider := range r.Providers {
		name := v.Precision + " on " + provider
		if took := v.Assigned[provider]; took != "" {
			fmt.Fprintf(out, "%s runs %s\n", name, took)
		}
		if reason := v.Rejected[provider]; reason != "" {
			fmt.Fprintf(out, "%s is rejected: %s\n", name, reason)
		} else if report, ok := v.Accuracy[provider]; ok && r.Settings.Limit != nil {
			value, _ := r.Settings.Limit.Check(report)
			fmt.Fprintf(out, "%s is accepted: %s is %.6g (limit: %v)\n", name, r.Settings.Limit.Metric, value, r.Settings.Limit)
		}
	}
	for _, note := range v.Notes {
		fmt.Fprintf(out, "%s: %s\n", v.Precision, note)
	}
	if len(v.Kept) > 0 {
		fmt.Fprintf(out, "%s keeps in fp32, to hold the limit (relative squared error of the node in int8):\n", v.Precision)
	}
	for _, n := range v.Kept {
		fmt.Fprintf(out, "  %-12.3g %s\n", n.Error, n.Node)
	}
	if len(v.Left) > 0 {
		fmt.Fprintf(out, "%s leaves unchanged:\n", v.Precision)
	}
	printLeft(out, v.Left)
}

// printLeft prints the nodes that were not converted for their own reasons, with a line for each
// reason, in graph order.
func printLeft(out io.Writer, left []rewrite.Kept) {
	const most = 3 // number of names per reason
	var reasons []string
	nodes := map[string][]string{}
	for _, n := range left {
		if nodes[n.Reason] == nil {
			reasons = append(reasons, n.Reason)
		}
		nodes[n.Reason] = append(nodes[n.Reason], fmt.Sprintf("%s (%s)", n.Node, n.Op))
	}
	for _, reason := range reasons {
		list := nodes[reason]
		text := strings.Join(list[:min(len(list), most)], ", ")
		if more := len(list) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(out, "  %s: %s\n", text, reason)
	}
}

// figure prints a number between 0 and 1 that is usually close to 1; "-" without one.
func figure(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

// percent prints a share; "-" without one.
func percent(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

// sizeText prints a size in bytes.
func sizeText(bytes int64) string {
	if bytes < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
