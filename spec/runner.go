package spec

import (
	"net"
	"slices"
	"strings"

	"tuner/search"
)

// Runner says which server is measured and how it is talked to.
type Runner struct {
	Mode     string // RunnerBundled, RunnerLocal or RunnerRemote
	Protocol string // ProtocolGRPC or ProtocolHTTP

	// Of RunnerLocal: a tritonserver that is started for each pool, on ports of loopback and on a repository of its own.
	Server      string            // program: a path, or a name to be found in PATH
	Args        []string          // further options
	Environment map[string]string // variables beside this process's own
	Log         string            // file that its output is appended to; "" for none

	// Of RunnerRemote: a server that runs already, in explicit mode, with the model in its repository.
	URL        string // host:port of Protocol
	MetricsURL string // of its metrics page, for its GPUs; "" where they do not matter
}

// The values of Runner's fields.
const (
	RunnerBundled = "bundled"
	RunnerLocal   = "local"
	RunnerRemote  = "remote"
	ProtocolGRPC  = "grpc"
	ProtocolHTTP  = "http"
)

// DefaultServer is the program of RunnerLocal when the file names none.
const DefaultServer = "tritonserver"

// IsRemote reports whether the server that is measured runs on another machine, as far as its address tells.
func (r Runner) IsRemote() bool {
	if r.Mode != RunnerRemote {
		return false
	}
	host, _, err := net.SplitHostPort(r.URL)
	address := net.ParseIP(host)
	return err == nil && host != "localhost" && (address == nil || !address.IsLoopback())
}

// runner reads the section.
func (r profileReader) runner(v value) {
	u := &r.p.Runner
	text := func(target *string) func(value) {
		return func(v value) {
			if s, ok := v.text(); ok {
				*target = s
			}
		}
	}
	v.mapping([]field{
		{"mode", func(v value) { setWord(v, &u.Mode, []string{RunnerBundled, RunnerLocal, RunnerRemote}) }},
		{"protocol", func(v value) { setWord(v, &u.Protocol, []string{ProtocolGRPC, ProtocolHTTP}) }},
		{"server", func(v value) {
			if s, ok := v.text(); ok {
				if u.Server = s; strings.ContainsRune(s, '/') { // else it is found in PATH
					u.Server = relativeTo(r.p.Path, s)
					if !strings.ContainsRune(u.Server, '/') {
						u.Server = "./" + u.Server
					}
				}
			}
		}},
		{"args", func(v value) {
			for _, e := range v.list() {
				if s, ok := e.text(); ok {
					u.Args = append(u.Args, s)
				}
			}
		}},
		{"environment", func(v value) { u.Environment = v.texts() }},
		{"log", func(v value) { r.file(v, &u.Log) }},
		{"url", func(v value) {
			if s, ok := v.text(); ok {
				if _, _, err := net.SplitHostPort(s); err != nil || strings.ContainsRune(s, '/') {
					v.fail(Error{Problem: "is not an address", Allowed: "host:port, without http://"})
				}
				u.URL = s
			}
		}},
		{"metrics_url", text(&u.MetricsURL)},
	}, nil)
}

// texts reads {name: text}.
func (v value) texts() map[string]string {
	texts := map[string]string{}
	v.mapping(nil, func(key, v value) bool {
		if s, ok := v.text(); ok {
			texts[key.node.Value] = s
		}
		return true
	})
	return texts
}

// checkRunner reports fields of another mode than the one that is asked for, what a mode needs, and what only the bundled engine can do.
func (r profileReader) checkRunner(given map[string]value) {
	section, has := given["runner"]
	if !has {
		return
	}
	r.checkModeFields(section)
	u := &r.p.Runner
	switch {
	case u.Mode == RunnerBundled:
		return
	case u.Mode == RunnerRemote && u.URL == "":
		section.fail(Error{Problem: "names no server", Hint: "add url: HOST:PORT, of the protocol that is talked"})
	case u.Mode == RunnerLocal && u.Server == "":
		u.Server = DefaultServer
	}
	if r.p.DeployTarget == TargetTuner {
		given["deploy_target"].fail(Error{Problem: "contradicts runner.mode " + u.Mode + ": a Triton takes what a stock Triton honours",
			Hint: "write deploy_target: triton, or measure the bundled engine"})
	}
	if r.p.Accuracy.Limit != nil {
		section.fail(Error{Problem: "leaves nothing to compare outputs with: that takes tuner's own ONNX Runtime",
			Hint: "remove constraints.accuracy and the section accuracy, or measure the bundled engine"})
	}
	space := given["space"]
	for _, k := range r.p.Knobs {
		isOther := slices.ContainsFunc(k.Values, func(v search.Value) bool { return v != PrecisionOriginal })
		isAuto := slices.Contains(k.Values, Auto)
		if k.Name == search.KnobRuntime || k.Name == search.KnobPrecision && isOther || k.Name == search.KnobExecutionProvider && isAuto {
			space.child(k.Name).fail(Error{Problem: "is for the bundled engine alone in this version: runner.mode is " + u.Mode,
				Hint: "remove the values that need tuner's own ONNX Runtime, or write runner: {mode: bundled}"})
		}
	}
}

// checkModeFields reports fields of the section that mean nothing in its mode.
func (r profileReader) checkModeFields(section value) {
	modes := map[string]string{"server": RunnerLocal, "args": RunnerLocal, "environment": RunnerLocal, "log": RunnerLocal,
		"url": RunnerRemote, "metrics_url": RunnerRemote}
	for i := 0; i+1 < len(section.node.Content); i += 2 {
		name := section.node.Content[i].Value
		if mode, known := modes[name]; known && mode != r.p.Runner.Mode {
			section.child(name).fail(Error{Problem: "belongs to runner.mode " + mode, Hint: "write mode: " + mode + ", or remove the line"})
		}
	}
}
