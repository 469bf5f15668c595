package cli

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

// assignedNodes says how much of a model an execution provider took (package ort, Assigned).
type assignedNodes struct {
	Provider string         `json:"provider"`
	Nodes    int            `json:"nodes"`
	Ops      map[string]int `json:"ops"` // nodes by operator
}

// verdict judges a provider by a session that was created with it: out says why it is none for this model, "" when it is one;
// took says which part of the model it runs.
func (a probeAnswer) verdict(provider string) (out, took string) {
	if a.Error != "" {
		return a.reason(), ""
	}
	i := slices.IndexFunc(a.Assigned, func(n assignedNodes) bool { return n.Provider == provider })
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
		return fmt.Sprintf("it takes none of the model's %s; %s", countText(total, "node", "nodes"), strings.Join(rest, ", ")), ""
	case nodes == total:
		return "", "all " + countText(total, "node", "nodes")
	}
	return "", fmt.Sprintf("%d of %s; %s", nodes, countText(total, "node", "nodes"), strings.Join(rest, ", "))
}

// reason is the error with what the log adds to it.
func (a probeAnswer) reason() string {
	if a.Log == "" || strings.Contains(strings.Join(strings.Fields(a.Error), " "), a.Log) {
		return shortened(a.Error)
	}
	return shortened(a.Error) + ": " + shortened(a.Log)
}

// shortened makes one line of a text, without the middle of a long one: the texts of native libraries begin with what failed,
// go on with the signatures of functions, and end with the cause.
func shortened(text string) string {
	const head, tail = 100, 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > head+tail {
		return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
	}
	return string(runes)
}

// opsText lists the most frequent operators: "MatMul × 36, Add × 12, …".
func opsText(ops map[string]int) string {
	const most = 3
	names := slices.SortedFunc(maps.Keys(ops), func(a, b string) int { return cmp.Or(cmp.Compare(ops[b], ops[a]), cmp.Compare(a, b)) })
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

// tryProviders tries execution providers of a build with a model, each in a child process: unavailable says by provider why
// it is out, assigned which nodes of the model the others took. The cpu provider is always there. A context that ends is the
// error.
func (p prober) tryProviders(ctx context.Context, build ortlib.Build, names []string, model string) (unavailable, assigned map[string]string, err error) {
	unavailable, assigned = map[string]string{}, map[string]string{}
	for _, name := range names {
		if name == "cpu" {
			continue
		}
		answer := p.probe(ctx, build, name, model)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err() // what the child says of its end tells nothing of the provider
		}
		out, took := answer.verdict(name)
		if out == "" {
			assigned[name] = took
			continue
		}
		unavailable[name] = explain(name, build, answer, out)
	}
	return unavailable, assigned, nil
}

// explain adds to the reason why a provider is out what the user can do about it.
func explain(provider string, build ortlib.Build, answer probeAnswer, reason string) string {
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

// explainGPU puts the missing GPU, where there is none, before what ONNX Runtime says of a missing library.
func explainGPU(provider string, gpus []hostinfo.GPU, note, reason string) string {
	if len(gpus) == 0 {
		reason = fmt.Sprintf("no NVIDIA GPU (%s); ONNX Runtime: %s", cmp.Or(note, "none is found"), reason)
	}
	return reason + "; " + providerRemedy(provider)
}
