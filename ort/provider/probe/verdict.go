package probe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tuner/internal/hostinfo"
	"tuner/internal/words"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
)

// TryAll tries execution providers of a build with a model, each in a child process. unavailable
// maps providers that do not work to the reason. assigned maps the others to their part of the
// model. The cpu provider is always there and is not tried. The only error is the context's.
func (p Prober) TryAll(ctx context.Context, build ortlib.Build, names []string, model string) (unavailable, assigned map[string]string, err error) {
	unavailable, assigned = map[string]string{}, map[string]string{}
	for _, name := range names {
		if name == provider.CPU {
			continue
		}
		answer := p.Try(ctx, build, name, model)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err() // an interrupted child tells nothing about the provider
		}
		out, took := answer.Verdict(name)
		if out == "" {
			assigned[name] = took
			continue
		}
		unavailable[name] = explain(name, build, answer, out)
	}
	return unavailable, assigned, nil
}

// Verdict judges a provider by the session that was created with it. out is the reason why the
// provider does not serve this model, "" if it does. took describes the part of the model that it
// runs.
func (a Answer) Verdict(of string) (out, took string) {
	if a.Error != "" {
		return a.Reason(), ""
	}
	i := slices.IndexFunc(a.Assigned, func(n Nodes) bool { return n.Provider == of })
	if i < 0 {
		return "", "an unknown part of the model: " + cmp.Or(a.Unassigned, "ONNX Runtime does not report it")
	}
	total := 0
	var rest []string
	for _, n := range a.Assigned {
		total += n.Nodes
		if n.Provider != of && n.Nodes > 0 {
			rest = append(rest, fmt.Sprintf("%s runs %d (%s)", n.Provider, n.Nodes, opsText(n.Ops)))
		}
	}
	nodes := a.Assigned[i].Nodes
	switch {
	case nodes == 0 && total > 0:
		return fmt.Sprintf("it takes none of the model's %s; %s", words.Count(total, "node"), strings.Join(rest, ", ")), ""
	case nodes == total:
		return "", "all " + words.Count(total, "node")
	}
	return "", fmt.Sprintf("%d of %s; %s", nodes, words.Count(total, "node"), strings.Join(rest, ", "))
}

// Reason returns the error, with its cause from the log.
func (a Answer) Reason() string {
	if a.Log == "" || strings.Contains(strings.Join(strings.Fields(a.Error), " "), a.Log) {
		return shortened(a.Error)
	}
	return shortened(a.Error) + ": " + shortened(a.Log)
}

// cudaFailure matches the cause in an error of ONNX Runtime's CUDA provider: "CUDA failure 2: out
// of memory". In the error it stands after two function signatures, and before places in its
// source.
var cudaFailure = regexp.MustCompile(`\b(?:CUDA|CUDNN|CUBLAS|CUDNN_FE) failure -?\d+: [^;]*[^; ]`)

// shortened joins a text into one line and cuts the middle of a long one. Texts of native libraries
// begin with the operation that failed, continue with function signatures, and end with the cause.
func shortened(text string) string {
	const head, tail = 100, 200
	line := strings.Join(strings.Fields(text), " ")
	if cause := cudaFailure.FindString(line); cause != "" {
		return cause
	}
	runes := []rune(line)
	if len(runes) > head+tail {
		return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
	}
	return string(runes)
}

// opsText lists the most frequent operators: "MatMul × 36, Add × 12, …".
func opsText(ops map[string]int) string {
	const most = 3
	names := slices.SortedFunc(maps.Keys(ops), func(a, b string) int {
		return cmp.Or(cmp.Compare(ops[b], ops[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		switch {
		case i == most:
			return strings.Join(append(parts, "…"), ", ")
		case ops[name] == 1:
			parts = append(parts, name)
		default:
			parts = append(parts, fmt.Sprintf("%s × %d", name, ops[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// explain adds the remedy to the reason why a provider is out.
func explain(name string, build ortlib.Build, answer Answer, reason string) string {
	row := provider.Of(name)
	if len(answer.Providers) > 0 && !slices.Contains(answer.Providers, name) && !row.Apart {
		return fmt.Sprintf("the ONNX Runtime build %s has only %s; %s", build.Name(), strings.Join(answer.Providers, ", "), otherBuild(row))
	}
	if row.GPU {
		gpus, note := hostinfo.ReadGPUs()
		return explainGPU(row, gpus, note, reason)
	}
	return reason
}

// otherBuild names the build that has a provider.
func otherBuild(row provider.Provider) string {
	if row.Flavour == "" {
		return "name one that has it with --ort-library (in a search, the knob runtime does too)"
	}
	return fmt.Sprintf("'tuner runtime install %s' gets one that has it, and --ort-library %[1]s chooses it (in a search, the knob runtime does too)", row.Flavour)
}

// explainGPU first says that there is no GPU, if so. Then it names the library that ONNX Runtime
// misses.
func explainGPU(row provider.Provider, gpus []hostinfo.GPU, note, reason string) string {
	if len(gpus) == 0 {
		reason = fmt.Sprintf("no NVIDIA GPU (%s); ONNX Runtime: %s", cmp.Or(note, "none is found"), reason)
	}
	return reason + "; " + Remedy(row.Name)
}

// Remedy returns the remedy for a provider that fails although the build has it.
func Remedy(name string) string {
	return cmp.Or(provider.Of(name).Remedy, "use another execution provider, or another build: tuner runtime list")
}
