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

	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// differences collects what two campaigns do not have in common, in sentences for people.
type differences []string

// add compares one property, as it is told to people.
func (d *differences) add(what, then, now string) {
	if then != now {
		*d = append(*d, fmt.Sprintf("%s: %s then, %s now", what, then, now))
	}
}

// Differences lists why the campaign of a journal's header cannot go on as the one that is asked
// for; none when it can. Budget and until may differ: with other ones the same campaign goes on
// longer, or ends earlier.
func Differences(then journal.Header, now Asked) []string {
	var d differences
	h := now.Header
	if then.Spec.SHA256 != h.Spec.SHA256 && !asksSame(then.Spec, now.Profile) {
		d = append(d, fmt.Sprintf("profile: %s asks for another search than the journal's (%s)", now.Profile.Path, then.Spec.Path))
	}
	d.add("model name", then.Model, h.Model)
	d.add("models", filesText(then.Models), filesText(h.Models))
	d.add("default configuration", shortDigest(then.BaseConfig), shortDigest(h.BaseConfig))
	if !isSameBuild(then.Runtime, h.Runtime) {
		d.add("ONNX Runtime", buildText(then.Runtime), buildText(h.Runtime))
	}
	d.add("ONNX Runtime builds", buildsText(then.Runtimes), buildsText(h.Runtimes))
	d.add("server", then.Server.String(), h.Server.String())
	d.add("server of the finals", finalsText(then), finalsText(h))
	d.add("inputs of the accuracy check", shortData(then.Data), shortData(h.Data))
	d.add("rejected variants", rejectedText(then.Variants), rejectedText(h.Variants))
	d.add("accepted variants", acceptedText(then.Variants), acceptedText(h.Variants))
	d.add("earlier campaigns", listText(then.Earlier), listText(h.Earlier))
	d.add("machine", then.Fingerprint, h.Fingerprint)
	if text := providersText(then.Facts, h.Facts); text != "" {
		d = append(d, text)
	}
	return d
}

// asksSame reports whether the profile in a header asks for the same search as p.
func asksSame(then journal.SpecFile, p spec.Profile) bool {
	recorded, err := spec.RecordedProfile(then.Path, []byte(then.Text))
	return err == nil && AskSame(recorded, p)
}

// AskSame reports whether two profiles ask for the same search, whatever their comments, budgets,
// untils and paths are.
func AskSame(a, b spec.Profile) bool { return reflect.DeepEqual(searchOf(a), searchOf(b)) }

// searchOf keeps of a profile what changes the search. The header has the rest: models and inputs
// by their digests, calibration by the models that it made, servers by what they say of themselves.
// Earlier campaigns may also be named on the command line.
func searchOf(p spec.Profile) spec.Profile {
	p.Accuracy.Data, p.Accuracy.Calibration, p.Search.Earlier = "", "", nil
	p.Runner = serverless(p.Runner)
	if p.Finals != nil {
		finals := serverless(*p.Finals)
		p.Finals = &finals
	}
	p.Search.Budget, p.Search.Until = search.Budget{}, 0
	p.Path, p.Text, p.Output, p.Model = "", nil, "", spec.ModelSource{}
	return p
}

// serverless keeps of a runner how it is started and its protocol, as far as a journal has that.
// Which server it is and how it is reached is left out: the header says which server answered.
func serverless(r spec.Runner) spec.Runner {
	r = r.WithoutSecrets()
	return spec.Runner{Protocol: r.Protocol, Args: r.Args, Environment: r.Environment}
}

// isSameBuild reports whether two headers name the same build of ONNX Runtime. The path or the name
// must be the same: a file may be known by its name once and by its path the other time. The
// version must be the same too, since another file may have taken its place, and so must the
// content where both headers know it.
func isSameBuild(a, b journal.RuntimeInfo) bool {
	isCalledSame := a.Library == b.Library || a.Name() == b.Name()
	return isCalledSame && a.Version == b.Version && (a.SHA256 == b.SHA256 || a.SHA256 == "" || b.SHA256 == "")
}

// buildText names a build of ONNX Runtime, and its content where that is known.
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

func finalsText(h journal.Header) string {
	if h.Finals == nil {
		return "the same"
	}
	return h.Finals.String()
}

// providersText says which execution providers do not work now and did then, or the other way
// round; "" for none. Their candidates are folded, so that the space would be another one.
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

// brokenProviders maps the execution providers that do not work, by a header's facts, to the
// reasons. Where the campaign has several builds, the names say in which.
func brokenProviders(encoded json.RawMessage) map[string]string {
	var facts search.Facts
	_ = json.Unmarshal(encoded, &facts) // a header without facts names none
	reasons := map[string]string{}
	maps.Copy(reasons, facts.Unavailable)
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

// rejectedText lists what the space leaves out for its accuracy: "int8 on openvino, fp16".
func rejectedText(variants []journal.Variant) string {
	var names []string
	for _, v := range variants {
		for _, place := range slices.Sorted(maps.Keys(v.Rejected)) {
			names = append(names, v.NameIn(place))
		}
	}
	return listText(names)
}

// acceptedText lists what was compared with the original and serves: "fp32 on openvino, int8 on
// cpu".
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

// shortData shortens the digest of inputs, for people.
func shortData(digest string) string { return cmp.Or(digest[:min(12, len(digest))], "none") }

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
