package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tuner/internal/hostinfo"
	"tuner/internal/terminal"
	"tuner/ort/provider/probe"
)

// Marks of a line: good; absent but not needed; broken.
const (
	markGood = "✓"
	markNone = "–"
	markBad  = "✗"
)

// Write writes the diagnosis for people: sections of marked lines, with a remedy after each
// problem.
func Write(out io.Writer, d Diagnosis) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(mark, name, format string, args ...any) {
		fmt.Fprintf(table, "  %s %s\t%s\n", mark, name, fmt.Sprintf(format, args...)) // Flush returns the errors
	}
	fmt.Fprintf(table, "Machine %s\n", d.Fingerprint)
	printHost(line, d.Host, d.MemoryPolicy)
	printNoise(line, d.Noise)
	for _, problem := range d.Host.Problems {
		line(markBad, "problem", "%s", problem)
	}
	fmt.Fprintf(table, "\nONNX Runtime\n")
	printRuntimes(line, d)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot print the diagnosis: %w", err)
	}
	return nil
}

// printLine prints one marked line of a section.
type printLine func(mark, name, format string, args ...any)

func printHost(line printLine, h hostinfo.Host, memoryPolicy string) {
	line(markGood, "system", "%s/%s, %s, kernel %s", h.OS, h.Arch, h.Platform, h.Kernel)
	line(markGood, "processor", "%s", h.CPU.Model)
	line(markGood, "cores", "%s", coresText(h.CPU))
	if len(h.CPU.Features) > 0 {
		line(markGood, "features", "%s", strings.Join(h.CPU.Features, " "))
	}
	for _, f := range featureAdvice(h) {
		line(markNone, f.name, "%s", indent(f.advice))
	}
	limit := "no limit"
	if h.Memory.Limit > 0 {
		limit = "limited to " + gibibytes(h.Memory.Limit)
	}
	line(markGood, "memory", "%s, %s available, %s", gibibytes(h.Memory.Total), gibibytes(h.Memory.Available), limit)
	printNUMA(line, h.NUMA, memoryPolicy)
	for _, gpu := range h.GPUs {
		line(markGood, fmt.Sprintf("GPU %d", gpu.Index), "%s", gpuText(gpu))
	}
	if h.GPUNote != "" {
		line(markNone, "GPU", "%s", indent(h.GPUNote))
	}
}

// gpuText describes a GPU. It omits facts that the driver does not report, except name and memory.
func gpuText(gpu hostinfo.GPU) string {
	text := cmp.Or(gpu.Name, "unknown model") + ", "
	if gpu.Memory > 0 {
		text += fmt.Sprintf("%s (%s used)", gibibytes(gpu.Memory), gibibytes(gpu.Used))
	} else {
		text += "memory unknown"
	}
	for _, fact := range [][2]string{{"compute capability ", gpu.Capability}, {"driver ", gpu.Driver}, {"CUDA up to ", gpu.CUDADriver}} {
		if fact[1] != "" {
			text += ", " + fact[0] + fact[1]
		}
	}
	return text
}

// coresText describes the usable cores, and their limits.
func coresText(c hostinfo.CPU) string {
	text := fmt.Sprintf("%.4g usable of %d", c.Usable(), c.Logical)
	if c.Physical > 0 {
		text += fmt.Sprintf(" (%d physical)", c.Physical)
	}
	if n := len(c.Allowed); n > 0 && n < c.Logical {
		text += fmt.Sprintf(", affinity mask of %d", n)
	}
	if c.Quota > 0 {
		return text + fmt.Sprintf(", cgroup quota of %.4g: ONNX Runtime does not see it, so set intra_op_threads", c.Quota)
	}
	return text + ", no quota"
}

// featureLack is a processor feature whose absence changes which settings are worth trying.
type featureLack struct{ name, advice string }

func featureAdvice(h hostinfo.Host) []featureLack {
	if h.Arch != "amd64" {
		return nil
	}
	var lacks []featureLack
	if !h.CPU.Has("AVX512VNNI") && !h.CPU.Has("AVXVNNI") && !h.CPU.Has("AMXINT8") {
		lacks = append(lacks, featureLack{"VNNI", "absent: int8 gains less, and int8 files of other tools may saturate. 'tuner convert' makes weights of 7 bits here, which do not"})
	}
	if !h.CPU.Has("AVX2") {
		lacks = append(lacks, featureLack{"AVX2", "absent: ONNX Runtime runs with its slowest kernels"})
	}
	return lacks
}

func printNUMA(line printLine, nodes []hostinfo.NUMANode, memoryPolicy string) {
	if len(nodes) < 2 {
		line(markGood, "NUMA", "one node")
		return
	}
	for _, node := range nodes {
		line(markGood, fmt.Sprintf("NUMA %d", node.ID), "%d processors, %s", len(node.CPUs), gibibytes(node.Memory))
	}
	if memoryPolicy != "" {
		line(markNone, "NUMA", "a host policy cannot bind memory to a node: %s", memoryPolicy)
	}
}

// noisy is the share of CPU time from which other processes visibly disturb measurements.
const noisy = 0.10

func printNoise(line printLine, n *Noise) {
	if n == nil {
		line(markNone, "noise", "unknown on this system")
		return
	}
	text := fmt.Sprintf("other processes use %.0f %% of the CPU time, the hypervisor takes %.1f %%", 100*n.Busy, 100*n.Steal)
	if n.Busy+n.Steal < noisy {
		line(markGood, "noise", "%s", text)
		return
	}
	line(markBad, "noise", "%s", text)
	line(" ", "", "→ end other processes before you measure; disturbed measurements are marked")
}

func printRuntimes(line printLine, d Diagnosis) {
	if len(d.Runtimes) == 0 {
		line(markBad, "none", "no ONNX Runtime is installed")
		line(" ", "", "→ tuner runtime install cpu")
	}
	for _, r := range d.Runtimes {
		printRuntime(line, r, r.Name == d.Selected)
	}
	for _, name := range d.Installable {
		line(markNone, name, "not installed: tuner runtime install %s", name)
	}
	if d.Pip != "" {
		line(markBad, "pip", "%s", indent(d.Pip))
	} else {
		line(markGood, "pip", "python3 with pip can install runtimes")
	}
}

func printRuntime(line printLine, r Runtime, selected bool) {
	name := r.Name
	if selected {
		name += " (selected)"
	}
	if r.Error != "" {
		line(markBad, name, "%s", indent(r.Error))
		return
	}
	line(markGood, name, "version %s, %s", r.Version, r.Library)
	for _, p := range r.Providers {
		if p.Works {
			line("  "+markGood, p.Name, "created a session in %.0f ms", p.Milliseconds)
			continue
		}
		line("  "+markBad, p.Name, "%s", indent(p.Error))
		remedy := probe.Remedy(p.Name)
		if p.Refused != "" {
			remedy = fmt.Sprintf("the build runs a tiny model, so %q is at fault: copy or export it again", p.Refused)
		}
		line(" ", "", "→ %s", remedy)
	}
}

// messageWidth is the width of messages: the terminal's width minus the names.
const messageWidth = terminal.Width - 36

// indent keeps the lines of a long message in their column, and folds wide lines.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(terminal.Fold(text, messageWidth)), "\n", "\n\t")
}

func gibibytes(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
