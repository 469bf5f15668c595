package campaign

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"tuner/ort/addon"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/mixture"
)

// differences collects the differences of two campaigns, in sentences for people.
type differences []string

// compare compares one property, given as text for people.
func (d *differences) compare(what, then, now string) {
	if then != now {
		*d = append(*d, fmt.Sprintf("%s: %s then, %s now", what, then, now))
	}
}

// Differences lists the reasons why the campaign of a journal's header cannot be resumed as the
// requested one. It is empty if it can. Budget and until may differ: the same campaign then runs
// longer, or ends earlier.
func Differences(then journal.Header, now Asked) []string {
	var d differences
	h := now.Header
	if then.Spec.SHA256 != h.Spec.SHA256 {
		d = append(d, askedText(then.Spec, now.Profile)...)
	}
	d.compareModels(then, h)
	if !isSameBuild(then.Runtime, h.Runtime) {
		d.compare("ONNX Runtime", buildText(then.Runtime), buildText(h.Runtime))
	}
	d.compare("ONNX Runtime builds", buildsText(then.Runtimes), buildsText(h.Runtimes))
	d.compare("libraries with operators", operatorsText(then.Operators), operatorsText(h.Operators))
	d.compare("library with an execution provider", libraryText(then.ProviderLibrary), libraryText(h.ProviderLibrary))
	d.compare("server", then.Server.String(), h.Server.String())
	d.compare("server of the finals", finalsText(then), finalsText(h))
	d.compare("trace of the arrivals", traceText(then.Facts), traceText(h.Facts))
	d.compare("earlier campaigns", listText(then.Earlier), listText(h.Earlier))
	d.compare("machine", then.Fingerprint, h.Fingerprint)
	d.compare("processors that the models divide", processorsText(then), processorsText(h))
	if text := providersText(then.Facts, h.Facts); text != "" {
		d = append(d, text)
	}
	return d
}

// processorsText lists the processors that models divide.
func processorsText(h journal.Header) string {
	if h.Processors == nil {
		return "none"
	}
	return h.Processors.String()
}

// compareModels compares what belongs to the models of two headers.
func (d *differences) compareModels(then, now journal.Header) {
	d.compare("model name", then.Model, now.Model)
	if then.Model != now.Model || len(then.Parts) != len(now.Parts) {
		return // the models have nothing to compare
	}
	if len(now.Parts) == 0 || now.BaseConfig != "" { // one model, or a pipeline
		d.compareModel("", then, now)
	}
	for i, p := range now.Parts {
		d.compareModel(" of "+p.Model, then.Part(i), now.Part(i))
	}
}

// compareModel compares what belongs to a model. of names it in the sentences.
func (d *differences) compareModel(of string, then, now journal.Header) {
	d.compare("models"+of, filesText(then.Models), filesText(now.Models))
	d.compare("default configuration"+of, shortDigest(then.BaseConfig), shortDigest(now.BaseConfig))
	d.compare("data of the requests"+of, then.Requests.String(), now.Requests.String())
	d.compare("mix of the requests"+of, then.Mix.String(), now.Mix.String())
	d.compare("inputs of the accuracy check"+of, shortData(then.Data), shortData(now.Data))
	d.compare("rejected variants"+of, rejectedText(then.Variants), rejectedText(now.Variants))
	d.compare("accepted variants"+of, acceptedText(then.Variants), acceptedText(now.Variants))
}

// askedText says in which fields the profile p requests another search than the profile in a
// header. It is empty for the same search.
func askedText(then journal.SpecFile, p spec.Profile) []string {
	recorded, err := spec.RecordedProfile(then.Path, []byte(then.Text))
	if err == nil && AskSame(recorded, p) {
		return nil
	}
	text := fmt.Sprintf("profile: %s asks for another search than the journal's (%s)", p.Path, then.Path)
	if fields := DifferentFields(recorded, p); err == nil && len(fields) > 0 {
		text += "; they differ in: " + strings.Join(fields, ", ")
	}
	return []string{text}
}

// DifferentFields lists the fields of a profile.yaml in which two profiles request different
// searches.
func DifferentFields(a, b spec.Profile) []string {
	a, b = searchOf(a), searchOf(b)
	var fields []string
	for _, f := range []struct {
		name      string
		then, now any
	}{
		{"name", a.Name, b.Name},
		{"deploy_target", a.DeployTarget, b.DeployTarget},
		{"mode", a.Mode, b.Mode},
		{"runner", a.Runner, b.Runner},
		{"finals", a.Finals, b.Finals},
		{"search", a.Search, b.Search},
		{"space", a.Knobs, b.Knobs},
		{"load", []any{a.Load, a.Inputs}, []any{b.Load, b.Inputs}},
		{"objective", a.Goal.Objective, b.Goal.Objective},
		{"constraints", []any{a.Goal.Constraints, a.Accuracy.Limit}, []any{b.Goal.Constraints, b.Accuracy.Limit}},
		{"price", a.Goal.Price, b.Goal.Price},
		{"accuracy", withoutLimit(a.Accuracy), withoutLimit(b.Accuracy)},
		{"models", a.Models, b.Models},
		{"scale", a.Scales, b.Scales},
		{"isolation", a.Isolation, b.Isolation},
	} {
		if !reflect.DeepEqual(f.then, f.now) {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// traceText describes the trace in a header's facts; "" without one.
func traceText(encoded json.RawMessage) string {
	var facts search.Facts
	if json.Unmarshal(encoded, &facts) != nil || facts.Trace == nil {
		return ""
	}
	return fmt.Sprintf("%d requests, sha256 %s", facts.Trace.Requests, facts.Trace.SHA256[:min(12, len(facts.Trace.SHA256))])
}

// withoutLimit leaves the limit out, which is a constraint in the file.
func withoutLimit(a spec.Accuracy) spec.Accuracy {
	a.Limit = nil
	return a
}

// AskSame reports whether two profiles request the same search. Comments, budgets, untils and paths
// may differ.
func AskSame(a, b spec.Profile) bool { return reflect.DeepEqual(searchOf(a), searchOf(b)) }

// searchOf keeps the parts of a profile that affect the search. The header has the others: models,
// requests and inputs by their digests, calibration by its models, and servers by their own metadata.
// Earlier campaigns may also be named on the command line.
func searchOf(p spec.Profile) spec.Profile {
	p.Accuracy.Data, p.Accuracy.Calibration, p.Search.Earlier, p.Load.Arrivals.File = "", "", nil, ""
	if p.Inputs.Data != "" || !p.Inputs.Mix.IsZero() {
		p.Inputs.Data, p.Inputs.Shape = "", nil
	}
	p.Inputs.Mix = mixture.Mix{}
	p.Inputs.Examples = nil // reasons for shapes, which count themselves
	p.Runner = serverless(p.Runner)
	if p.Finals != nil {
		finals := serverless(*p.Finals)
		p.Finals = &finals
	}
	p.Search.Budget, p.Search.Until = search.Budget{}, 0
	p.Path, p.Text, p.Output, p.Model, p.Pipeline = "", nil, "", spec.ModelSource{}, ""
	p.Models = slices.Clone(p.Models)
	for i := range p.Models {
		p.Models[i] = searchOf(p.Models[i])
	}
	return p
}

// serverless keeps the way in which a runner is started, and its protocol, in the form of the
// journal. It omits the server's identity and address, since the header names the server that
// answered.
func serverless(r spec.Runner) spec.Runner {
	r = r.WithoutSecrets()
	return spec.Runner{Protocol: r.Protocol, Args: r.Args, Environment: r.Environment}
}

// isSameBuild reports whether two headers name the same build of ONNX Runtime. Either path or name
// must be equal, since a build may be given by name once and by path later. The version must be
// equal too, since another file may have replaced the first. So must the content if both headers
// have it.
func isSameBuild(a, b journal.RuntimeInfo) bool {
	isCalledSame := a.Library == b.Library || a.Name() == b.Name()
	return isCalledSame && a.Version == b.Version && (a.SHA256 == b.SHA256 || a.SHA256 == "" || b.SHA256 == "")
}

// buildText names a build of ONNX Runtime, with its content if known.
func buildText(r journal.RuntimeInfo) string {
	if r.SHA256 == "" {
		return r.Name()
	}
	return r.Name() + " " + r.SHA256[:min(12, len(r.SHA256))]
}

func buildsText(builds []journal.RuntimeInfo) string {
	names := make([]string, len(builds))
	for i, b := range builds {
		names[i] = b.Name()
	}
	return cmp.Or(strings.Join(names, ", "), "one")
}

func operatorsText(files []addon.File) string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.String()
	}
	return listText(names)
}

func libraryText(file *addon.File) string {
	if file == nil {
		return "none"
	}
	return file.String()
}

func finalsText(h journal.Header) string {
	if h.Finals == nil {
		return "the same"
	}
	return h.Finals.String()
}

// providersText names the execution providers that work now but did not then, or the reverse; "" if
// there are none. Their candidates are folded, so the space would differ.
func providersText(then, now json.RawMessage) string {
	before, today := brokenProviders(then), brokenProviders(now)
	names := func(reasons map[string]string) string { return listText(slices.Sorted(maps.Keys(reasons))) }
	if names(before) == names(today) {
		return ""
	}
	text := fmt.Sprintf("execution providers that do not work: %s then, %s now", names(before), names(today))
	for _, name := range slices.Sorted(maps.Keys(today)) {
		if _, known := before[name]; !known {
			text += fmt.Sprintf("\n    %s: %s", name, today[name])
		}
	}
	return text
}

// brokenProviders returns the execution providers that do not work, with the reasons, from a
// header's facts. If the campaign has several builds, the names include the build.
func brokenProviders(encoded json.RawMessage) map[string]string {
	var facts search.Facts
	_ = json.Unmarshal(encoded, &facts) // a header without facts has none
	reasons := map[string]string{}
	maps.Copy(reasons, facts.Unavailable)
	for model, own := range facts.Parts {
		for provider, reason := range own.Unavailable {
			reasons[provider+" for "+model] = reason
		}
	}
	for _, r := range facts.Runtimes {
		for provider, reason := range r.Unavailable {
			reasons[provider+" in "+r.Name] = reason
		}
	}
	return reasons
}

// filesText lists model files by precision and digest.
func filesText(files []journal.ModelFile) string {
	parts := make([]string, len(files))
	for i, f := range files {
		parts[i] = f.Precision + " " + f.SHA256[:min(12, len(f.SHA256))]
	}
	return strings.Join(parts, ", ")
}

// rejectedText lists the precisions that the space omits for their accuracy: "int8 on openvino,
// fp16".
func rejectedText(variants []journal.Variant) string {
	var names []string
	for _, v := range variants {
		for _, place := range slices.Sorted(maps.Keys(v.Rejected)) {
			names = append(names, v.NameIn(place))
		}
	}
	return listText(names)
}

// acceptedText lists the variants that were compared with the original and serve: "fp32 on
// openvino, int8 on cpu".
func acceptedText(variants []journal.Variant) string {
	var names []string
	for _, v := range variants {
		for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
			if v.Rejected[place] == "" && v.Rejected[""] == "" {
				names = append(names, v.NameIn(place))
			}
		}
	}
	return listText(names)
}

func listText(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// shortData shortens the digest of inputs for people.
func shortData(digest string) string { return cmp.Or(digest[:min(12, len(digest))], "none") }

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
