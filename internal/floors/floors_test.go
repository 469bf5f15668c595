// Package floors holds the table of which package may import which, and the test that enforces it. Imports go down only:
// data flows one way (docs/design/architecture.md).
package floors

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed lists, for each folder, the folders of this module that it may import directly. A folder stands for itself and
// all below it, unless a longer entry exists. internal/cli wires concrete types: it may import everything.
var allowed = map[string][]string{
	"cmd/tuner":            {"internal/cli"},
	"internal/cli":         {"*"},
	"report":               {"analyze", "steps", "modelrepo", "modelconfig", "search", "search/verdict", "measure", "journal", "spec", "stats", "onnx", "precision/accuracy", "internal/plotstyle", "internal/terminal", "internal/parallel"}, // onnx: files and shapes of what is deployed
	"report/result":        {"analyze", "journal", "measure", "precision/accuracy", "search", "search/verdict", "steps"},                                                                                                                      // data: what result.json is made of
	"export":               {"internal/telemetry", "report/result", "journal", "modelrepo", "modelconfig", "measure", "search", "search/verdict", "hostinfo"},                                                                                 // journal: servers, as result.json has them; search: places
	"export/verify":        {"export", "runner", "modelrepo", "modelconfig", "measure", "engine/api", "onnx", "payload", "analyze", "profile", "precision", "spec"},
	"report/figures":       {"report/result", "analyze", "steps", "search", "search/verdict", "measure", "journal", "spec", "precision/accuracy", "internal/terminal"}, // words and tables: it knows no format
	"report/html":          {"report", "report/figures", "analyze", "spec", "measure", "search", "search/verdict", "internal/webpage", "internal/parallel"},            // search/verdict: the answer under other limits
	"ortsweep":             {"profile", "profile/campaign", "spec", "search", "runner", "modelrepo", "modelconfig", "journal", "measure", "stats", "onnx", "internal/plotstyle", "internal/terminal"},
	"ortsweep/race":        {"search", "stats"},
	"ortsweep/flags":       {"ortsweep/olive", "spec", "search", "onnx", "pytorch"},
	"ortsweep/olive":       {"onnx", "modelconfig"},
	"ortsweep/snippet":     {"internal/telemetry", "onnx", "modelconfig"},
	"gate":                 {"spec", "profile", "runner", "modelrepo", "modelconfig", "measure", "stats", "hostinfo", "meter"},
	"gate/flags":           {"gate/output", "spec", "onnx"},
	"gate/judge":           {"gate", "gate/decide", "spec", "search", "precision", "precision/places", "profile/preparation", "provider", "runner", "runner/target", "measure", "onnx", "ortlib", "internal/checksum"},
	"gate/decide":          {"stats"}, // pure: pairs in, a verdict out
	"gate/output":          {"gate", "gate/decide", "spec", "measure", "internal/plotstyle", "internal/terminal", "internal/webpage"},
	"profile":              {"profile/campaign", "spec", "search", "search/verdict", "runner", "modelrepo", "modelconfig", "journal", "measure", "engine/api", "onnx", "hostinfo", "precision", "dataset", "payload"},
	"profile/preparation":  {"profile", "profile/campaign", "profile/dryrun", "profile/progress", "spec", "search", "journal", "runner", "runner/target", "ortlib", "provider/probe", "precision", "precision/places", "dataset", "hostinfo", "internal/checksum", "internal/exit", "internal/words"}, // what a campaign needs of this machine
	"profile/dryrun":       {"profile", "profile/campaign", "spec", "search"},
	"profile/progress":     {"profile", "search", "measure", "internal/terminal"},
	"profile/starter":      {"profile", "profile/preparation", "spec", "modelconfig", "onnx", "ortlib", "hostinfo"},
	"profile/campaign":     {"spec", "search", "journal", "modelconfig", "internal/checksum", "internal/parallel"}, // what a journal means; it runs nothing
	"runner":               {"engine/api", "load", "wire", "meter", "hostinfo", "measure"},
	"runner/target":        {"runner", "internal/children", "internal/exit", "engine/api", "spec", "search", "journal", "wire", "meter", "measure", "hostinfo", "ortlib", "modelrepo", "modelconfig", "provider"},                                                                                                                                                                                                                                                                                                                       // modelconfig: what a remote server serves, to be given back
	"pipeline":             {"analyze", "dataset", "export", "internal/checksum", "internal/exit", "internal/terminal", "internal/words", "journal", "meter", "modelconfig", "onnx", "ortlib", "precision", "precision/accuracy", "precision/conversion", "precision/places", "profile", "profile/campaign", "profile/preparation", "profile/starter", "provider", "provider/probe", "pytorch", "report", "report/formats", "report/html", "report/json", "report/markdown", "report/text", "runner/target", "search", "spec", "steps"}, // the steps use everything but the command line
	"steps":                {"internal/checksum"},
	"analyze":              {"profile/campaign", "spec", "search", "search/posterior", "search/verdict", "journal", "steps", "measure", "modelconfig", "stats", "precision/accuracy", "internal/parallel"},
	"analyze/imported":     {"analyze", "spec", "measure", "modelconfig", "search"}, // spec: Model Analyzer's tags
	"spec":                 {"internal/problems", "search", "modelconfig", "measure", "precision/accuracy"},
	"spec/modelanalyzer":   {"spec", "search", "modelconfig"}, // it writes files of tuner's own, and has package spec read them
	"search":               {"search/posterior", "search/verdict", "measure", "stats"},
	"search/searchtest":    {"search", "measure"},
	"search/queuesim":      {"measure", "stats"},                               // a model of the server: it knows no strategy
	"search/posterior":     {"search", "search/footprint", "measure", "stats"}, // what is known: it decides nothing
	"search/verdict":       {"search", "search/posterior", "measure"},
	"modelrepo":            {"modelconfig", "internal/checksum", "internal/inside"},
	"modelconfig":          {"internal/problems"},
	"onnx":                 {"internal/checksum", "internal/inside", "internal/problems"},
	"dataset":              {"onnx", "hostinfo", "internal/problems"},
	"precision":            {"internal/checksum", "internal/children", "onnx", "dataset", "runner", "engine/api", "modelrepo", "modelconfig", "hostinfo", "payload"},
	"precision/places":     {"precision", "provider", "provider/probe", "ortlib", "hostinfo", "internal/checksum", "internal/exit", "search", "runner", "runner/target", "onnx"}, // search: places
	"precision/conversion": {"precision", "precision/accuracy", "precision/places", "provider", "provider/probe", "pytorch", "dataset", "onnx", "internal/exit", "internal/terminal", "internal/words"},
	"precision/accuracy":   {"dataset/elements", "onnx", "stats"},
	"precision/calibrate":  {"dataset/elements", "onnx"},
	"pytorch":              {"internal/children", "dataset/npy", "precision/accuracy", "onnx"},
	"engine/alarm":         {},
	"engine/budget":        {},
	"engine":               {"engine/api", "modelconfig", "modelrepo", "hostinfo"},
	"engine/api":           {"modelconfig/configpb", "modelconfig"},
	"engine/flags":         {"engine", "engine/api"},
	"engine/serve":         {"engine", "engine/api", "engine/flags", "engine/onnxruntime", "ort", "ortlib", "hostinfo"},
	"engine/onnxruntime":   {"engine", "ort", "modelconfig", "onnx/extent"}, // onnx/extent: what a file unfolds into, before ONNX Runtime gets it
	"onnx/extent":          {"onnx"},
	"ort":                  {"internal/telemetry"},
	"ortlib":               {"internal/checksum", "internal/children"},
	"load":                 {"measure", "stats"},
	"wire":                 {"engine/api"},
	"meter":                {"engine/api", "hostinfo", "measure"},
	"perf":                 {"load", "measure", "meter", "stats", "wire"},
	"perf/paflags":         {"perf", "load", "wire", "meter", "measure", "payload", "onnx", "hostinfo", "internal/problems"},
	"perf/session":         {"perf", "perf/output", "perf/paflags", "engine/api", "wire", "meter", "payload", "modelconfig", "onnx", "hostinfo"},
	"perf/output":          {"perf", "load", "measure", "payload", "engine/api", "internal/plotstyle"},
	"payload":              {"engine/api", "dataset", "onnx", "modelconfig"},
	"journal":              {"measure", "precision/accuracy", "internal/parallel"},
	"measure":              {"stats"},
	"stats":                {},
	"hostinfo":             {},
	"internal/alloctest":   {},
	"internal/checksum":    {},
	"internal/children":    {},
	"internal/doctor":      {"provider/probe", "hostinfo", "ortlib", "internal/terminal"},
	"internal/exit":        {},
	"internal/durable":     {},
	"internal/floors":      {},
	"internal/golden":      {},
	"internal/inside":      {},
	"internal/parallel":    {},
	"internal/plotstyle":   {},
	"internal/problems":    {},
	"internal/schema":      {},
	"internal/telemetry":   {},
	"internal/terminal":    {},
	"internal/webpage":     {},
	"internal/words":       {},
	"internal/orttest":     {"ort", "onnx"},
	"provider":             {},                                                                   // a table: it asks nobody
	"provider/probe":       {"internal/children", "hostinfo", "ortlib", "search", "modelconfig"}, // the facts of a space; graph levels
	"provider/probe/child": {"provider/probe", "ort", "modelconfig"},                             // ort: it runs in a process of its own
	"internal/testserver":  {"engine/api", "modelconfig"},
}

// walls are edges that no refactoring may add, each with its reason. The module's packages are named by folder, others by
// import path.
var walls = []struct {
	from   []string // folders; empty: every folder but those in except
	except []string
	to     string
	reason string
}{
	{nil, []string{"ort"}, "github.com/yalue/onnxruntime_go", "package ort is the only one that touches ONNX Runtime"},
	{nil, []string{"internal/cli", "engine", "ort", "provider/probe/child", "internal/orttest"}, "ort", "an ONNX Runtime abort must not kill a campaign: the process boundary is the contract"},
	{nil, []string{"search"}, "search/guided", "what a strategy can tell is asked by the interfaces of search/plan, never of its type"},
	{[]string{"search"}, nil, "os", "search is pure: replayable and benchmarked in seconds"},
	{[]string{"search"}, nil, "internal/durable", "search is pure: it writes no files"},
	{[]string{"search"}, nil, "net", "search is pure: replayable and benchmarked in seconds"},
	{[]string{"search"}, nil, "context", "search is pure: it never blocks"},
	{[]string{"search"}, nil, "math/rand", "search is pure: its randomness comes from the seed (math/rand/v2 with a source of its own)"},
	{[]string{"report"}, nil, "runner", "a report must be reproducible from the journal"},
	{[]string{"export"}, []string{"export/verify"}, "runner", "an export is written from the result alone, without a server"},
	{[]string{"report/figures", "report/result"}, nil, "report", "what formats say and hold does not depend on a format, or on how files are written"},
	{[]string{"export"}, nil, "report", "an export reads result.json, and nothing that writes reports"},
	{[]string{"load", "measure", "stats", "wire", "meter"}, nil, "search", "the measurement core knows nothing of tuning"},
	{[]string{"load", "measure", "stats", "wire", "meter"}, nil, "provider", "the measurement core does not know what computes"},
	{[]string{"report"}, nil, "profile", "a report must be reproducible from the journal"},
	{nil, nil, "github.com/c-bata/goptuna", "the search's benchmark needs it for its baselines, and is in a module of its own, lab: the product does not carry it"},
}

// pkg is the part of `go list -json` that the tests read.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string // of the tests inside of the package
	XTestImports []string // of the tests outside of it
}

const module = "tuner/"

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		entry, ok := entryOf(folder)
		if !ok {
			t.Errorf("package %s is not in the table of internal/floors: give it a floor", folder)
			continue
		}
		for _, imported := range p.Imports {
			target, ours := strings.CutPrefix(imported, module)
			if ours && !mayImport(entry, target) {
				t.Errorf("%s imports %s: the table allows only %v", folder, target, allowed[entry])
			}
		}
	}
}

func TestWallsStand(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		for _, w := range walls {
			if !applies(w.from, w.except, folder) {
				continue
			}
			for _, imported := range p.Imports {
				if strings.TrimPrefix(imported, module) == w.to {
					t.Errorf("%s imports %s: %s", folder, w.to, w.reason)
				}
			}
		}
	}
}

// lab is a module above this one: it imports the product. The product and its tests build without it.
func TestNothingImportsTheLaboratory(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if within(imported, module+"lab") {
				t.Errorf("%s imports %s: the product builds without the laboratory", p.ImportPath, imported)
			}
		}
	}
}

// applies reports whether a wall stands in front of folder.
func applies(from, except []string, folder string) bool {
	inAny := func(folders []string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return within(folder, f) })
	}
	return (len(from) == 0 || inAny(from)) && !inAny(except)
}

// within reports whether folder is root or lies below it.
func within(folder, root string) bool {
	return folder == root || strings.HasPrefix(folder, root+"/")
}

// entryOf returns the longest table entry that folder lies in.
func entryOf(folder string) (string, bool) {
	best, found := "", false
	for entry := range allowed {
		if within(folder, entry) && len(entry) >= len(best) {
			best, found = entry, true
		}
	}
	return best, found
}

// ground lists the packages that every other may import: internal/durable only writes and locks files, internal/exit makes
// errors, internal/words writes numbers for people, provider is a table of facts. Walls keep some of them out of some folders.
var ground = []string{"internal/durable", "internal/exit", "internal/words", "provider"}

// mayImport reports whether a package of a table entry may import target.
func mayImport(entry, target string) bool {
	if within(target, entry) || slices.Contains(ground, target) {
		return true
	}
	return slices.ContainsFunc(allowed[entry], func(a string) bool {
		if a == "*" || a == target {
			return true
		}
		owner, _ := entryOf(target)
		return within(target, a) && within(a, owner)
	})
}

// listPackages asks the go command for every package of the module and its direct imports.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("cannot read go list's output: %v", err)
		}
		packages = append(packages, p)
	}
}
