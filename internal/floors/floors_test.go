// Package floors has the table of allowed imports between packages, and the test that enforces it.
// Imports go down only: data flows one way (docs/design/architecture.md).
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

// allowed lists, for each folder, the folders of this module that it may import directly. An entry
// applies to its folder and all below it, unless a longer entry exists. internal/cli wires concrete
// types, so it may import everything.
var allowed = map[string][]string{
	"cmd/stage":           {"internal/cli", "ort/ortlib"},
	"cmd/tuner":           {"internal/cli"},
	"internal/cli":        {"*"},
	"report":              {"spec/csvfiles", "spec/plots", "analyze/bottleneck", "spec/goals", "analyze", "pipeline/steps", "model/modelrepo", "model/modelconfig", "search", "search/verdict", "measure", "profile/journal", "spec", "measure/stats", "model/onnx", "model/precision/accuracy", "internal/plotstyle", "internal/terminal", "internal/parallel"}, // onnx: files and shapes of what is deployed
	"report/result":       {"analyze/bottleneck", "internal/hostinfo", "model/mix", "analyze", "profile/journal", "measure", "model/precision/accuracy", "search", "search/verdict", "pipeline/steps", "ort/addon"},                                                                                                                                              // data: what result.json is made of
	"export":              {"model/isolation", "search", "export/environment", "capacity", "capacity/autoscaler", "export/azuresize", "export/scaling", "export/monitoring", "export/tuned", "model/mix", "model/modelrepo", "measure", "search/verdict", "ort/addon", "internal/checksum"},
	"export/tuned":        {"model/isolation", "spec/goals", "report/result", "profile/journal", "model/mix", "model/modelrepo", "model/modelconfig", "measure", "search", "search/verdict", "internal/hostinfo", "ort/addon"}, // models of results: it knows no target; journal: servers, as result.json has them; search: places
	"export/environment":  {"internal/telemetry", "ort/hugepages"},                                                                                                                                                             // variables of a server: it knows no target
	"export/scaling":      {"capacity", "capacity/autoscaler"},                                                                                                                                                                 // a plan in, the autoscaler's YAML out
	"export/azuresize":    {},                                                                                                                                                                                                  // a table of facts
	"export/monitoring":   {},                                                                                                                                                                                                  // figures in, rules and a dashboard out
	"export/verify":       {"export/tuned", "model/isolation", "search", "search/verdict", "profile/journal", "measure/arrivals", "export", "runner", "model/modelrepo", "model/modelconfig", "model/tensors", "measure", "engine/api", "model/onnx", "runner/payload", "profile", "profile/campaign", "model/precision", "spec", "ort/addon"},
	"report/figures":      {"analyze/bottleneck", "model/mix", "report/result", "analyze", "pipeline/steps", "search", "search/verdict", "measure", "profile/journal", "spec", "model/precision/accuracy", "internal/terminal"}, // words and tables: it knows no format
	"report/data":         {"report", "report/csv", "report/figures", "analyze", "measure", "search", "spec/knobs", "internal/parallel"},                                                                                        // spec/knobs: the values of all knobs
	"report/html":         {"report", "report/figures", "analyze", "spec", "measure", "search", "search/verdict", "internal/webpage", "internal/parallel", "ort/addon"},                                                         // search/verdict: the answer under other limits
	"ortsweep":            {"internal/hostinfo", "profile", "profile/campaign", "spec", "spec/knobs", "search", "runner", "model/modelrepo", "model/modelconfig", "profile/journal", "measure", "measure/stats", "model/onnx", "internal/plotstyle", "internal/terminal"},
	"ortsweep/progress":   {"ortsweep", "ortsweep/race", "search", "measure", "internal/live", "internal/live/noise", "internal/words"},
	"ortsweep/race":       {"search", "measure/stats"},
	"ortsweep/flags":      {"internal/terminal", "ortsweep/olive", "spec", "spec/document", "search", "model/onnx", "model/framework", "ort/addon"},
	"ortsweep/olive":      {"model/onnx", "model/modelconfig"},
	"ortsweep/snippet":    {"internal/telemetry", "model/onnx", "model/modelconfig"},
	"fleet":               {"spec", "spec/document", "spec/paths", "ort/addon"}, // fleet.yaml and its plan: it asks no cluster
	"fleet/record":        {"internal/hostinfo"},                                // what pods deliver: it sends nothing
	"fleet/objects":       {"fleet", "fleet/record", "internal/hostinfo"},
	"fleet/worker":        {"fleet", "fleet/record", "internal/checksum", "internal/children", "internal/hostinfo", "profile/journal"},
	"fleet/cluster":       {"fleet", "fleet/record", "internal/children"},
	"fleet/driver":        {"fleet", "fleet/cluster", "fleet/objects", "fleet/record", "fleet/results"}, // it keeps no state: the cluster does
	"fleet/output":        {"fleet/results", "internal/terminal", "internal/webpage"},                   // a ranking in, text and a page out
	"fleet/results":       {"fleet", "fleet/record", "analyze", "measure", "measure/stats", "search", "search/posterior", "search/verdict", "profile/journal"},
	"gate":                {"measure/arrivals", "spec", "profile", "runner", "model/modelrepo", "model/modelconfig", "measure", "measure/stats", "internal/hostinfo", "runner/meter"},
	"compare":             {"analyze", "measure", "measure/stats", "model/modelconfig", "profile/campaign", "report/result", "search", "spec/knobs", "internal/durable"},             // results in, what changed out
	"capacity":            {"internal/parallel", "measure", "report/result", "search/queuesim"},                                                                                      // figures in, a plan out
	"capacity/adaptation": {"adaptive", "capacity", "capacity/replica", "capacity/traffic", "internal/parallel", "measure", "model/modelconfig", "report/result", "search/queuesim"}, // figures and a traffic in, the table of adaptive serving out
	"adaptive":            {},                                                                                                                                                        // a table and counts in, a configuration out: it loads nothing
	"adaptive/steering":   {"adaptive"},                                                                                                                                              // what a rule says, told to a server: it knows no other part of it
	"adaptive/triton":     {"engine/api"},                                                                                                                                            // a Triton in another process: it decides nothing
	"capacity/autoscaler": {},                                                                                                                                                        // Kubernetes' algorithm: it knows no traffic
	"capacity/traffic":    {"capacity/autoscaler", "measure/arrivals", "spec/traffic"},
	"capacity/replica":    {"internal/hostinfo", "measure", "measure/arrivals", "model/modelconfig", "ort/provider", "report/result", "search/queuesim"}, // one server: it knows no fleet
	"capacity/output":     {"capacity", "internal/terminal", "internal/webpage"},
	"capacity/verify":     {"capacity", "capacity/replica", "capacity/traffic", "engine/api", "measure", "measure/arrivals", "runner", "runner/load", "runner/meter", "search/queuesim"}, // a plan and launched servers in, latencies beside each other out
	"compare/output":      {"compare", "measure", "internal/terminal", "internal/webpage"},
	"gate/flags":          {"spec/gates", "internal/terminal", "gate/output", "spec", "spec/document", "model/onnx", "ort/addon"},
	"gate/judge":          {"gate", "gate/decide", "spec", "spec/knobs", "search", "model/precision", "model/precision/places", "profile/preparation", "ort/provider", "runner", "runner/target", "measure", "model/onnx", "ort/ortlib", "internal/checksum"},
	"gate/decide":         {"measure/stats"}, // pure: pairs in, a verdict out
	"gate/progress":       {"gate", "gate/decide", "measure", "internal/live", "internal/live/noise", "internal/words"},
	"gate/output":         {"gate", "gate/decide", "spec", "measure", "internal/plotstyle", "internal/terminal", "internal/webpage"},
	"profile":             {"spec/secrets", "model/isolation", "measure/arrivals", "spec/mixture", "model/mix", "profile/campaign", "spec", "spec/knobs", "search", "search/verdict", "runner", "model/modelrepo", "model/modelconfig", "model/tensors", "profile/journal", "measure", "engine/api", "model/onnx", "internal/hostinfo", "model/precision", "model/dataset", "runner/payload", "ort/addon"},
	"profile/preparation": {"profile", "model/isolation", "profile/campaign", "profile/dryrun", "profile/progress", "profile/spans", "spec", "search", "profile/journal", "runner", "runner/target", "ort/ortlib", "ort/provider/probe", "model/precision", "model/precision/places", "model/dataset", "internal/hostinfo", "internal/checksum", "internal/exit", "internal/words", "measure", "model/modelconfig", "model/modelrepo", "ort/provider", "ort/addon"}, // checks before a campaign
	"profile/dryrun":      {"profile", "profile/campaign", "spec", "search", "measure"},
	"profile/spans":       {"profile", "search", "measure", "internal/collector"},                                                          // spans of what an observer sees
	"profile/progress":    {"profile", "search", "search/verdict", "measure", "internal/live", "internal/live/noise", "internal/terminal"}, // search/verdict: the words of the decision so far
	"profile/starter":     {"spec/draft", "spec/mixture", "profile", "profile/preparation", "spec", "model/modelconfig", "model/onnx", "ort/ortlib", "internal/hostinfo", "ort/addon"},
	"profile/campaign":    {"internal/hostinfo", "spec/mixture", "model/mix", "model/isolation", "spec", "spec/knobs", "search", "profile/journal", "model/modelconfig", "internal/checksum", "internal/parallel", "ort/addon"}, // meaning of journals; it runs nothing
	"runner":              {"measure/arrivals", "model/isolation", "engine/api", "runner/load", "runner/wire", "runner/meter", "internal/hostinfo", "measure"},
	"runner/target":       {"runner", "internal/children", "internal/exit", "engine/api", "spec", "spec/knobs", "search", "profile/journal", "runner/wire", "runner/meter", "measure", "internal/hostinfo", "ort/ortlib", "model/modelrepo", "model/modelconfig", "ort/provider", "ort/addon"},                                                                                                                                                                                                                                                                                                                                                                     // modelconfig: what a remote server serves, to be given back
	"pipeline":            {"spec/draft", "analyze", "model/dataset", "export", "internal/checksum", "internal/exit", "internal/terminal", "internal/words", "measure", "profile/journal", "runner/meter", "model/modelconfig", "model/onnx", "ort/ortlib", "model/precision", "model/precision/accuracy", "model/precision/conversion", "model/precision/places", "profile", "profile/campaign", "profile/preparation", "profile/starter", "ort/provider", "ort/provider/probe", "model/framework", "report", "report/formats", "report/html", "report/json", "report/markdown", "report/text", "runner/target", "search", "spec", "pipeline/steps", "ort/addon"}, // the steps use everything but the command line
	"mcp":                 {"spec/draft", "analyze", "export", "internal/children", "internal/terminal", "measure", "model/framework", "model/modelconfig", "model/onnx", "ort/ortlib", "profile/journal", "profile/starter", "report/figures", "report/formats", "report/result", "report/text", "spec", "spec/mixture", "ort/addon"},                                                                                                                                                                                                                                                                                                                             // it reads here, and measures and writes in children
	"mcp/roots":           {"spec", "spec/paths", "ort/addon"},
	"pipeline/steps":      {"internal/checksum"},
	"analyze":             {"spec/csvfiles", "spec/plots", "model/isolation", "search/standings", "search/withheld", "internal/hostinfo", "model/mix", "profile/campaign", "spec", "spec/knobs", "search", "search/posterior", "search/verdict", "profile/journal", "pipeline/steps", "measure", "measure/agreement", "model/modelconfig", "measure/stats", "model/precision/accuracy", "internal/parallel"},
	// spec: Model Analyzer's tags
	"analyze/bottleneck": {"measure"}, // what limits: it ranks nothing
	"analyze/imported":   {"spec/goals", "analyze", "spec", "measure", "model/modelconfig", "search"},
	"spec":               {"spec/csvfiles", "spec/plots", "spec/stages", "spec/secrets", "spec/goals", "spec/scale", "search/joint", "measure/arrivals", "spec/traffic", "search", "model/modelconfig", "measure", "model/precision/accuracy", "ort/addon"},
	// YAML alone: it does not know what a field means
	"spec/document": {"internal/problems", "internal/words"},
	// the arrivals of requests in YAML: it knows no other field of a file
	"spec/traffic": {"spec/document", "measure/arrivals"},
	// the shapes of requests in YAML: it knows no other field of a file
	"spec/edit":    {"spec/goals", "spec", "measure"},
	"spec/mixture": {"spec/document", "measure/arrivals", "model/mix"},
	// a candidate's knobs in YAML and in config.pbtxt: it knows no other field of a file
	"spec/knobs": {"model/mix", "spec/document", "search", "model/modelconfig", "ort/addon"},
	// names of columns: it knows no figure
	"spec/csvfiles": {"spec/document"},
	// a gate of several models: the fields of one are read by spec
	"spec/gates": {"spec", "spec/document", "spec/goals", "search", "measure", "ort/addon"},
	// the words and names that fields may have
	"spec/reference":               {"spec/csvfiles", "spec/goals", "spec", "spec/knobs", "search", "measure", "model/modelconfig", "model/precision/accuracy", "ort/addon"},
	"spec/reference/referencetest": {"spec/reference", "internal/golden", "internal/schema"},
	// it writes files of tuner's own, and has package spec read them
	"spec/modelanalyzer": {"spec/csvfiles", "spec", "spec/document", "spec/goals", "search", "measure", "model/modelconfig"},
	// objectives, constraints and prices in YAML
	"spec/goals": {"spec/document", "search", "measure"},
	// the factors of several models' traffic in YAML
	"spec/paths":        {"spec"},
	"spec/scale":        {"spec/document"},
	"spec/draft":        {"spec/mixture", "spec", "search", "model/precision/recipe", "ort/sessionoption"},
	"spec/plots":        {"spec/document", "spec/goals", "measure", "model/modelconfig"},
	"spec/stages":       {"spec/document", "spec/knobs", "search", "model/modelrepo", "model/modelconfig", "ort/addon"},
	"search":            {"search/standings", "search/withheld", "search/footprint", "model/mix", "measure/arrivals", "search/posterior", "search/verdict", "measure", "measure/stats"},
	"search/standings":  {"search", "measure"},
	"search/withheld":   {"search", "measure"},
	"search/joint":      {"search", "measure"},                                                      // several models: it knows no other part of a search
	"search/searchtest": {"search", "search/joint", "search/queuesim", "measure", "internal/nodes"}, // laws of servers: it knows no strategy
	// loads of configurations, one after the other: it does not choose configurations
	"search/tour": {"search/standings", "search", "measure"},
	// a model of the server: it knows no strategy
	"search/queuesim": {"measure", "engine/gathering"}, // one rule of the engine that is pure
	// what fits: it measures nothing and knows no strategy
	"search/packing": {"search", "search/queuesim", "measure"},
	// several models: it knows no strategy of one
	"search/colocation": {"search/packing", "search/queuesim", "measure", "internal/nodes"}, // nodes: where a division would place models
	// a strategy of it: service trials of each model are those of the strategy of one
	"search/colocation/explorer": {"search", "search/colocation", "search/footprint", "search/guided", "search/packing", "search/posterior", "search/queuesim", "search/standings", "search/verdict", "measure", "measure/stats"},
	// a strategy for pipelines: engines of a stage are those of the strategy of one model
	"search/stagewise": {"search", "search/footprint", "search/guided", "search/packing", "search/posterior", "search/queuesim", "search/standings", "search/verdict", "measure"},
	// knowledge only: it decides nothing
	"search/posterior":  {"search/standings", "search/withheld", "search", "search/footprint", "measure", "measure/stats"},
	"search/verdict":    {"search/standings", "search", "search/posterior", "measure"},
	"model/isolation":   {"internal/hostinfo", "internal/nodes", "model/modelconfig"},
	"model/modelrepo":   {"model/modelconfig", "internal/checksum", "internal/inside"},
	"model/modelconfig": {"internal/problems"},
	"model/tensors":     {"model/modelconfig", "model/onnx"},
	"model/onnx":        {"internal/checksum", "internal/inside", "internal/problems"},
	// shapes and shares alone: it knows no model
	"model/mix":                  {"internal/checksum"},
	"model/dataset":              {"model/onnx", "internal/hostinfo", "internal/problems"},
	"model/precision":            {"internal/checksum", "internal/children", "model/onnx", "model/dataset", "runner", "engine/api", "model/modelrepo", "model/modelconfig", "internal/hostinfo", "runner/payload", "ort/addon"},
	"model/precision/places":     {"model/precision", "ort/provider", "ort/provider/probe", "ort/ortlib", "internal/hostinfo", "internal/checksum", "internal/exit", "search", "runner", "runner/target", "model/onnx", "ort/addon"}, // search: places
	"model/precision/conversion": {"model/precision", "model/precision/accuracy", "model/precision/places", "ort/provider", "ort/provider/probe", "model/framework", "model/dataset", "model/onnx", "internal/exit", "internal/terminal", "internal/words"},
	"model/precision/accuracy":   {"model/dataset/elements", "model/onnx", "measure/stats"},
	"model/precision/calibrate":  {"model/dataset/elements", "model/onnx"},
	"model/framework":            {"internal/checksum", "internal/children", "internal/programtest", "model/dataset/npy", "model/precision/accuracy", "model/onnx"},
	"engine/alarm":               {},
	"engine/gathering":           {}, // a rule: it has no clock and no queue
	"engine/budget":              {},
	"engine/certificates":        {}, // files for TLS: it knows no listener
	"engine/classification":      {"engine/budget", "engine/fault", "engine/request", "model/modelconfig"},
	"engine/buffers":             {},                                                                                        // memory: it charges nobody
	"engine/sharedmemory":        {"engine/budget", "engine/buffers", "engine/fault", "engine/request"},                     // bytes: it knows no protocol
	"engine/poll":                {},                                                                                        // what two polls found: it knows a server by an interface
	"engine/ratelimit":           {"engine/fault"},                                                                          // amounts: it knows no model
	"engine/cache":               {},                                                                                        // keys and values: it knows no model
	"engine/objects":             {},                                                                                        // stores of clouds: it knows no model
	"engine/mirror":              {"engine/objects"},                                                                        // folders of files: it loads nothing
	"engine/logging":             {},                                                                                        // lines: it knows no model and no protocol
	"engine/fault":               {},                                                                                        // a class and a text: every part of the engine makes errors
	"engine/trace":               {"engine/fault", "internal/collector"},                                                    // moments: it knows no model
	"engine/request":             {"engine/budget", "engine/fault", "engine/sequence", "engine/trace", "model/modelconfig"}, // sequence: its identity
	"engine/sequence":            {"engine/linked", "engine/scheduler"},
	"engine/ragged":              {"engine/fault", "engine/request", "engine/session", "model/modelconfig"},
	"engine/warmup":              {"engine/fault", "engine/ragged", "engine/request", "engine/session", "engine/state", "engine/statistics", "model/modelconfig"},
	"engine/session":             {"engine/request", "engine/trace", "model/modelconfig"},
	"engine/batching":            {"engine/request", "engine/scheduler", "model/modelconfig"},
	"engine/state":               {"engine/fault", "engine/request", "engine/sequence", "model/modelconfig"},
	"engine/statistics":          {"engine/api"},                                                                                // counters: it knows no model
	"engine/rest/generate":       {"engine/api", "engine/fault", "engine/request", "engine/rest/document", "model/modelconfig"}, // it knows no HTTP
	"engine/sagemaker":           {"engine", "engine/api", "engine/fault", "engine/rest", "engine/rest/document"},               // what a path means, and its models: it knows no listener
	"engine/vertexai":            {"engine/api", "engine/rest"},                                                                 // what a path means: it serves nothing
	"engine/grpcapi/lent":        {},                                                                                            // buffers: it knows no model and no message
	"engine/grpcapi/datatype":    {"model/modelconfig"},                                                                         // names: it reads no tensor
	"engine/rest/hangup":         {},                                                                                            // connections: it knows no HTTP
	"engine/repository":          {"engine/fault", "model/modelconfig", "model/modelrepo"},                                      // files: it loads and serves nothing
	"engine/ensemble":            {"engine/linked", "engine/request", "engine/statistics", "model/modelconfig"},                 // graphs and their flow: it runs no model
	// requests through models: it knows no repository
	"engine/served":   {"engine/api", "engine/batching", "engine/budget", "engine/cache", "engine/classification", "engine/ensemble", "engine/fault", "engine/hostpolicy", "engine/ragged", "engine/ratelimit", "engine/request", "engine/scheduler", "engine/sequence", "engine/session", "engine/state", "engine/statistics", "engine/trace", "model/modelconfig"},
	"engine":          {"engine/api", "model/modelconfig", "model/modelrepo", "internal/hostinfo"},
	"engine/api":      {"model/modelconfig/configpb", "model/modelconfig"},
	"engine/flags":    {"adaptive", "engine", "engine/certificates", "engine/logging", "engine/sagemaker", "engine/vertexai", "model/modelconfig", "engine/ratelimit", "engine/api", "engine/statistics", "engine/trace", "ort/addon"}, // statistics: the observer that makes summaries
	"engine/identity": {"engine", "engine/fault", "engine/request", "model/modelconfig"},
	"engine/serve":    {"adaptive", "adaptive/steering", "engine", "engine/certificates", "engine/logging", "engine/mirror", "engine/poll", "engine/api", "engine/flags", "engine/trace", "engine/identity", "engine/onnxruntime", "ort", "ort/ortlib", "ort/addon", "internal/hostinfo"},
	// onnx/extent: the unpacked size of a file, before ONNX Runtime opens it
	"engine/onnxruntime": {"engine", "internal/hostinfo", "engine/fault", "ort", "model/modelconfig", "model/onnx/extent", "ort/addon"},
	"model/onnx/extent":  {"model/onnx"},
	"ort":                {"internal/telemetry", "ort/hugepages"},
	"ort/hugepages":      {},                    // memory of the process: it knows no ONNX Runtime
	"ort/addon":          {"internal/checksum"}, // files: it opens no library
	"ort/ortlib":         {"internal/checksum", "internal/children"},
	"runner/load":        {"measure", "measure/stats"},
	"runner/wire":        {"engine/api"},
	"runner/meter":       {"engine/api", "internal/hostinfo", "measure"},
	"perf":               {"measure/arrivals", "runner/load", "measure", "runner/meter", "measure/stats", "runner/wire"},
	"perf/paflags":       {"internal/terminal", "spec/traffic", "measure/arrivals", "perf", "runner/load", "runner/wire", "runner/meter", "measure", "runner/payload", "model/onnx", "internal/hostinfo", "internal/problems"},
	"perf/session":       {"perf", "perf/output", "perf/paflags", "engine/api", "runner/wire", "runner/meter", "runner/payload", "model/modelconfig", "model/onnx", "internal/hostinfo"},
	"perf/output":        {"measure/arrivals", "perf", "runner/load", "measure", "runner/payload", "engine/api", "internal/plotstyle"},
	"perf/view":          {"perf", "perf/output", "perf/paflags", "internal/terminal"},
	"runner/payload":     {"engine/api", "model/dataset", "model/onnx", "model/modelconfig"},
	"profile/journal":    {"internal/hostinfo", "model/isolation", "measure", "model/mix", "model/precision/accuracy", "internal/parallel", "internal/words", "ort/addon"},
	"measure":            {"measure/stats"},
	"measure/agreement":  {"measure"},
	"measure/stats":      {},
	// schedules alone: it sends nothing
	"measure/arrivals":         {},
	"internal/hostinfo":        {},
	"internal/buildfacts":      {},
	"internal/alloctest":       {},
	"internal/checksum":        {},
	"internal/collector":       {}, // spans on their way: it does not know what they are about
	"internal/children":        {},
	"internal/doctor":          {"ort/provider/probe", "internal/hostinfo", "ort/ortlib", "internal/terminal"},
	"internal/exit":            {},
	"internal/durable":         {},
	"internal/floors":          {},
	"internal/golden":          {},
	"internal/transcript":      {},
	"internal/inside":          {},
	"internal/live":            {"internal/terminal", "internal/words"}, // frames: it knows no campaign
	"internal/live/noise":      {"internal/live", "measure"},
	"internal/live/stage":      {"internal/exit", "internal/live", "internal/live/web"},
	"internal/live/web":        {"internal/live", "internal/terminal", "internal/webpage"}, // frames and bytes: it knows no report
	"internal/memgroup":        {},                                                         // tests and the laboratory alone
	"internal/parallel":        {},
	"internal/plotstyle":       {},
	"internal/problems":        {},
	"internal/programtest":     {}, // tests alone
	"internal/proxytest":       {}, // tests and the laboratory alone
	"internal/schema":          {},
	"internal/telemetry":       {},
	"internal/terminal":        {},
	"internal/webpage":         {},
	"internal/words":           {},
	"internal/orttest":         {"ort", "model/onnx", "model/dataset/elements"},
	"ort/provider":             {},             // a table without imports
	"ort/sessionoption":        {},             // a table without imports
	"model/precision/recipe":   {"model/onnx"}, // a table whose rows rewrite models
	"internal/nodes":           {},             // numbers alone: it knows no processor
	"internal/overlay":         {},
	"ort/provider/probe":       {"internal/children", "internal/hostinfo", "ort/ortlib", "search", "model/modelconfig", "ort/addon"}, // the facts of a space; graph levels
	"ort/provider/probe/child": {"ort/provider/probe", "ort", "ort/addon", "model/modelconfig"},                                      // ort: it runs in a process of its own
	"internal/testserver":      {"engine/api", "model/modelconfig"},
}

// walls are imports that no refactoring may add, each with its reason. The module's packages are
// named by folder, others by import path.
var walls = []struct {
	from   []string // folders; empty: every folder except those in except
	except []string
	to     string
	reason string
}{
	{nil, []string{"ort"}, "github.com/yalue/onnxruntime_go", "package ort is the only one that touches ONNX Runtime"},
	{nil, []string{"engine", "ort/provider/probe/child", "internal/orttest"}, "ort", "an ONNX Runtime abort must not kill a campaign: the process boundary is the contract"},
	{nil, []string{"search"}, "search/guided", "what a strategy can tell is asked by the interfaces of search/plan, never of its type"},
	{[]string{"capacity"}, []string{"capacity/traffic"}, "os", "a plan depends on its question alone"},
	{[]string{"search"}, nil, "os", "search is pure: replayable and benchmarked in seconds"},
	{[]string{"search"}, nil, "internal/durable", "search is pure: it writes no files"},
	{[]string{"search"}, nil, "net", "search is pure: replayable and benchmarked in seconds"},
	{[]string{"search"}, nil, "context", "search is pure: it never blocks"},
	{[]string{"search"}, nil, "math/rand", "search is pure: its randomness comes from the seed (math/rand/v2 with a source of its own)"},
	{[]string{"report"}, nil, "runner", "a report must be reproducible from the journal"},
	{[]string{"export"}, []string{"export/verify"}, "runner", "an export is written from the result alone, without a server"},
	{[]string{"report/figures", "report/result"}, nil, "report", "what formats say and hold does not depend on a format, or on how files are written"},
	{[]string{"export"}, nil, "report", "an export reads result.json, and nothing that writes reports"},
	{[]string{"runner/load", "measure", "measure/stats", "runner/wire", "runner/meter"}, nil, "search", "the measurement core knows nothing of tuning"},
	{[]string{"runner/load", "measure", "measure/stats", "runner/wire", "runner/meter"}, nil, "ort/provider", "the measurement core does not know what computes"},
	{[]string{"runner/load", "measure", "measure/stats", "runner/wire", "runner/meter"}, nil, "ort/sessionoption", "the measurement core does not know what computes"},
	{[]string{"runner/load", "measure", "measure/stats", "runner/wire", "runner/meter"}, nil, "model/precision/recipe", "the measurement core does not know what computes"},
	{[]string{"report"}, nil, "profile", "a report must be reproducible from the journal"},
	{nil, nil, "github.com/c-bata/goptuna", "the search's benchmark needs it for its baselines, and is in a module of its own, lab: the product does not carry it"},
}

// pkg has the fields of `go list -json` that the tests use.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string // of the tests in the package
	XTestImports []string // of the tests in the package's external test package
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

// lab is a module that imports the product. The product and its tests build without it.
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

// applies reports whether a wall applies to a folder.
func applies(from, except []string, folder string) bool {
	inAny := func(folders []string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return within(folder, f) })
	}
	return (len(from) == 0 || inAny(from)) && !inAny(except)
}

// within reports whether a folder is root or lies below it.
func within(folder, root string) bool {
	return folder == root || strings.HasPrefix(folder, root+"/")
}

// entryOf returns the longest table entry that contains a folder.
func entryOf(folder string) (string, bool) {
	best, found := "", false
	for entry := range allowed {
		if within(folder, entry) && len(entry) >= len(best) {
			best, found = entry, true
		}
	}
	return best, found
}

// ground lists the packages that every package may import. internal/durable only writes and locks
// files, internal/exit makes errors, internal/words formats numbers for people, ort/provider,
// ort/sessionoption and model/precision/recipe are tables of facts. Walls exclude some of them from some folders.
var ground = []string{"internal/durable", "internal/exit", "internal/words", "ort/provider", "ort/sessionoption", "model/precision/recipe"}

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

// listPackages gets every package of the module with its direct imports from the go command.
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
