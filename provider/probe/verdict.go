package probe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/hostinfo"
	"tuner/ortlib"
)

// TryAll tries execution providers of a build with a model, each in a child process. unavailable
// maps a provider to the reason why it is out. assigned maps the others to the part of the model
// that they take. The cpu provider is always there and is not tried. The error is the context's.
func (p Prober) TryAll(ctx context.Context, build ortlib.Build, names []string, model string) (unavailable, assigned map[string]string, err error) {
	unavailable, assigned = map[string]string{}, map[string]string{}
	for _, name := range names {
		if name == "cpu" {
			continue
		}
		answer := p.Try(ctx, build, name, model)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err() // an interrupted child says nothing about the provider
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

// Verdict judges a provider by the session that was created with it. out says why the provider
// does not serve this model, "" if it does; took says which part of the model it runs.
func (a Answer) Verdict(provider string) (out, took string) {
	if a.Error != "" {
		return a.Reason(), ""
	}
	i := slices.IndexFunc(a.Assigned, func(n Nodes) bool { return n.Provider == provider })
	if i < 0 {
		return "", "an unknown part of the model: " + cmp.Or(a.Unassigned, "ONNX Runtime does not tell")
	}
	total := 0
	var rest []string
	for _, n := range a.Assigned {
		total += n.Nodes
		if n.Provider != provider && n.Nodes > 0 {
			rest = append(rest, fmt.Sprintf("%s runs %d (%s)", n.Provider, n.Nodes, opsText(n.Ops)))
		}
	}
	nodes := a.Assigned[i].Nodes
	switch {
	case nodes == 0 && total > 0:
		return fmt.Sprintf("it takes none of the model's %s; %s", nodesText(total), strings.Join(rest, ", ")), ""
	case nodes == total:
		return "", "all " + nodesText(total)
	}
	return "", fmt.Sprintf("%d of %s; %s", nodes, nodesText(total), strings.Join(rest, ", "))
}

// Reason is the error, and what the log adds to it.
func (a Answer) Reason() string {
	if a.Log == "" || strings.Contains(strings.Join(strings.Fields(a.Error), " "), a.Log) {
		return shortened(a.Error)
	}
	return shortened(a.Error) + ": " + shortened(a.Log)
}

// shortened makes one line of a text and cuts the middle of a long one. Texts of native libraries
// begin with the operation that failed, continue with function signatures, and end with the cause.
func shortened(text string) string {
	const head, tail = 100, 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > head+tail {
		return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
	}
	return string(runes)
}

func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
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
func explain(provider string, build ortlib.Build, answer Answer, reason string) string {
	if len(answer.Providers) > 0 && !slices.Contains(answer.Providers, provider) {
		return fmt.Sprintf("the ONNX Runtime build %s has only %s; %s", build.Name(), strings.Join(answer.Providers, ", "), otherBuild(provider))
	}
	if provider == "cuda" || provider == "tensorrt" {
		gpus, note := hostinfo.ReadGPUs()
		return explainGPU(provider, gpus, note, reason)
	}
	return reason
}

// otherBuild says which flavour has a provider.
func otherBuild(provider string) string {
	flavour := ""
	switch provider {
	case "openvino":
		flavour = "openvino"
	case "cuda", "tensorrt":
		flavour = "cuda"
	default:
		return "name one that has it with --ort-library (in a search, the knob runtime does too)"
	}
	return fmt.Sprintf("'tuner runtime install %s' gets one that has it, and --ort-library %[1]s chooses it (in a search, the knob runtime does too)", flavour)
}

// explainGPU says first that there is no GPU, if there is none, and then names the library that
// ONNX Runtime misses.
func explainGPU(provider string, gpus []hostinfo.GPU, note, reason string) string {
	if len(gpus) == 0 {
		reason = fmt.Sprintf("no NVIDIA GPU (%s); ONNX Runtime: %s", cmp.Or(note, "none is found"), reason)
	}
	return reason + "; " + Remedy(provider)
}

// Remedy says what a provider needs besides the build itself. The versions are those that the
// installable build links.
func Remedy(provider string) string {
	switch provider {
	case "cuda":
		return "it needs an NVIDIA GPU with its driver, CUDA 13 and cuDNN 9 on the loader's path"
	case "tensorrt":
		return "it needs an NVIDIA GPU with its driver, CUDA 13, cuDNN 9 and TensorRT 10 on the loader's path"
	case "openvino":
		return "delete the build's folder and install it again: tuner runtime install openvino"
	case "cpu":
		return "the build is damaged: delete its folder and install it again, or name another with --ort-library"
	}
	return "use another execution provider, or another build: tuner runtime list"
}
