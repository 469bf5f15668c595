package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"tuner/dataset"
	"tuner/internal/terminal"
	"tuner/onnx/rewrite"
	"tuner/precision"
	"tuner/precision/accuracy"
)

// conversion is what `tuner convert` did.
type conversion struct {
	Model       string
	Data        dataset.Dataset
	Calibration dataset.Dataset // without rows: Data
	Limit       *accuracy.Limit
	Repeats     accuracy.Report // the original on cpu, run again
	Variants    []result
}

// result is one precision's, as `tuner convert --output json` prints it. Each variant is judged on every provider.
type result struct {
	Precision string                     `json:"precision"`
	Path      string                     `json:"path,omitempty"` // of the file that was written; "": none
	Digest    string                     `json:"digest,omitempty"`
	Bytes     int64                      `json:"bytes,omitempty"`
	Converted int                        `json:"converted"` // nodes
	Kept      []precision.KeptNode       `json:"kept"`      // in fp32 for accuracy's sake
	Left      []rewrite.Kept             `json:"left"`      // could not be converted
	Notes     []string                   `json:"notes"`
	Accuracy  map[string]accuracy.Report `json:"accuracy"` // by provider
	Rejected  map[string]string          `json:"rejected"` // by provider
	Assigned  map[string]string          `json:"assigned"` // by provider other than cpu: which nodes it takes
	Error     string                     `json:"error,omitempty"`
	FromCache bool                       `json:"from_cache"`

	variant precision.Variant
	err     error // why there is no such variant
}

// document is what `tuner convert --output json` prints.
type document struct {
	Model     string          `json:"model"`
	Data      string          `json:"data"`
	Rows      int             `json:"rows"`
	Synthetic bool            `json:"synthetic"`
	Limit     *accuracy.Limit `json:"limit,omitempty"`
	Repeats   accuracy.Report `json:"determinism"` // the original compared with itself, on the first rows
	Variants  []result        `json:"variants"`
}

// accepted reports whether the variant is good for some provider.
func (r result) accepted(providers []string) bool {
	return r.err == nil && slices.ContainsFunc(providers, func(p string) bool { return r.variant.Rejected[p] == "" })
}

// write writes the accepted variants, and fills in what is told of all.
func (c *conversion) write(o convertOptions) error {
	var errs []error
	for i := range c.Variants {
		r := &c.Variants[i]
		v := r.variant
		r.Digest, r.Bytes, r.Converted = v.Digest, v.Bytes, v.Converted
		r.Kept, r.Left, r.Notes = slices.Concat([]precision.KeptNode{}, v.Kept), slices.Concat([]rewrite.Kept{}, v.Left), slices.Concat([]string{}, v.Notes)
		r.Accuracy, r.Rejected, r.FromCache = v.Accuracy, v.Rejected, v.FromCache
		if r.err != nil {
			r.Error = r.err.Error()
		}
		if !r.accepted(o.providers) || v.Path == c.Model { // fp32 that is the original itself
			continue
		}
		path := targetPath(o.dir, c.Model, r.Precision)
		if err := v.Export(path, o.force); err != nil {
			errs = append(errs, exportError(err))
			continue
		}
		r.Path = path
	}
	return errors.Join(errs...)
}

// exportError gives exit code 2, and the remedy, to a file that is there.
func exportError(err error) error {
	if errors.As(err, new(*precision.ExistsError)) {
		return usageErrorf("%v; --force replaces it, -o names another folder", err)
	}
	return inputError(err)
}

// verdict decides the exit code.
func (c *conversion) verdict(providers []string) error {
	var unmakeable []error
	anyAccepted := false
	for _, r := range c.Variants {
		if r.err != nil {
			unmakeable = append(unmakeable, fmt.Errorf("%s: %w", r.Precision, r.err))
		}
		anyAccepted = anyAccepted || r.accepted(providers)
	}
	switch {
	case len(unmakeable) > 0:
		return withExit(exitUsage, errors.Join(unmakeable...))
	case !anyAccepted:
		return withExit(exitInfeasible, fmt.Errorf("no variant is accepted on %s; nothing was written", strings.Join(providers, ", ")))
	}
	return nil
}

func (c *conversion) print(out io.Writer, o convertOptions) error {
	if o.output == "json" {
		return writeJSON(out, document{c.Model, c.Data.Name, c.rows(), c.Data.Synthetic, c.Limit, c.Repeats, c.Variants})
	}
	var b strings.Builder
	c.text(&b, o.providers)
	if _, err := io.WriteString(out, terminal.Fold(b.String(), terminal.Width)); err != nil {
		return fmt.Errorf("cannot print the variants: %w", err)
	}
	return nil
}

// text is what is told of the variants to people.
func (c *conversion) text(b *strings.Builder, providers []string) {
	fmt.Fprintf(b, "variants of %s, compared with it on %s\n", c.Model, c.dataText())
	for _, note := range c.Data.Notes {
		fmt.Fprintf(b, "  %s\n", note)
	}
	for _, note := range c.Calibration.Notes {
		fmt.Fprintf(b, "  calibration: %s\n", note)
	}
	if text := wobbleText(c.Repeats.Difference()); text != "" {
		fmt.Fprintf(b, "  the original does not repeat itself: from run to run %s\n", text)
	}
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PRECISION\tPROVIDER\tSIZE\tNODES\tKEPT\tCOSINE\tP1\tMIN\tTOP-1\tNEIGHBOURS\tVERDICT")
	for _, r := range c.Variants {
		for _, provider := range providers {
			fmt.Fprintln(table, c.row(r, provider))
		}
	}
	_ = table.Flush() // a strings.Builder takes everything
	fmt.Fprint(b, "NODES converted, KEPT in fp32 for the limit; COSINE: mean, first percentile and minimum of the rows\n\n")
	for _, r := range c.Variants {
		c.printDetails(b, r, providers)
	}
}

// rows is how many rows were compared: of a model with a fixed batch, those of all its requests.
func (c *conversion) rows() int {
	for _, r := range c.Variants {
		for _, report := range r.variant.Accuracy {
			return report.Rows
		}
	}
	return c.Data.Rows
}

// wobbleText says by how much an original differs from itself; "" for not at all.
func wobbleText(difference float64) string {
	switch {
	case math.IsInf(difference, 0):
		return "an output is another whole number, or NaN or infinite in one run alone"
	case difference > 0:
		return fmt.Sprintf("its outputs differ by up to %.3g", difference)
	}
	return ""
}

// dataText names the data, and says so when it is random.
func (c *conversion) dataText() string {
	text := fmt.Sprintf("%s of %s", countText(c.rows(), "row", "rows"), c.Data.Name)
	if c.Data.Synthetic {
		text = countText(c.rows(), "row", "rows") + " of synthetic data\n" +
			"  synthetic data are random inputs: they say less about accuracy than your own (--data)"
	}
	return text
}

// row is a line of the table. Of several outputs it shows the one with the lowest cosine.
func (c *conversion) row(r result, provider string) string {
	report, measured := r.Accuracy[provider]
	verdict := c.verdictOf(r, provider, measured)
	if r.variant.Path == "" { // there is none
		return fmt.Sprintf("%s\t%s\t\t\t\t\t\t\t\t\t%s", r.Precision, provider, verdict)
	}
	text := fmt.Sprintf("%s\t%s\t%s\t%d\t%d", r.Precision, provider, sizeText(r.Bytes), r.Converted, len(r.Kept))
	if !measured {
		return text + "\t\t\t\t\t\t" + verdict
	}
	f := lowest(report)
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", text, figure(f.CosineMean), figure(f.CosineP1), figure(f.CosineMin),
		percent(f.Top1), percent(f.Neighbour), verdict)
}

// verdictOf is the last word of a line of the table.
func (c *conversion) verdictOf(r result, provider string, measured bool) string {
	switch {
	case errors.Is(r.err, precision.ErrUnmakeable):
		return "cannot be made"
	case r.Rejected[provider] != "":
		return "rejected"
	case measured && c.Limit != nil:
		return "accepted"
	case measured:
		return "measured"
	case r.err != nil:
		return "failed"
	}
	return "the original"
}

// lowest returns the figures of the output with the lowest cosine; where none has one, of the first by name.
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

// printDetails tells of a variant what does not fit into the table.
func (c *conversion) printDetails(out io.Writer, r result, providers []string) {
	switch {
	case r.Path != "":
		fmt.Fprintf(out, "%s: %s\n", r.Precision, r.Path)
	case r.variant.Path == c.Model:
		fmt.Fprintf(out, "%s: the original itself; there is nothing to write\n", r.Precision)
	}
	for _, provider := range providers {
		name := r.Precision + " on " + provider
		if took := r.Assigned[provider]; took != "" {
			fmt.Fprintf(out, "%s runs %s\n", name, took)
		}
		if reason := r.Rejected[provider]; reason != "" {
			fmt.Fprintf(out, "%s is rejected: %s\n", name, reason)
		} else if report, ok := r.Accuracy[provider]; ok && c.Limit != nil {
			value, _ := c.Limit.Check(report)
			fmt.Fprintf(out, "%s is accepted: %s is %.6g (limit: %v)\n", name, c.Limit.Metric, value, c.Limit)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "%s: %s\n", r.Precision, note)
	}
	if len(r.Kept) > 0 {
		fmt.Fprintf(out, "%s keeps in fp32, to hold the limit (relative squared error of the node in int8):\n", r.Precision)
	}
	for _, n := range r.Kept {
		fmt.Fprintf(out, "  %-12.3g %s\n", n.Error, n.Node)
	}
	if len(r.Left) > 0 {
		fmt.Fprintf(out, "%s leaves as it was:\n", r.Precision)
	}
	printLeft(out, r.Left)
}

// printLeft prints the nodes that stay for a reason of their own: a line for each reason, in the order of the graph.
func printLeft(out io.Writer, left []rewrite.Kept) {
	const most = 3 // names of a reason
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

// figure prints a number of 0 to 1 that is close to 1 as a rule; "-" where there is none.
func figure(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

// percent prints a share; "-" where there is none.
func percent(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

// sizeText prints a number of bytes.
func sizeText(bytes int64) string {
	if bytes < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
