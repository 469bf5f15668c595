package spec

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/search"
)

// IsBundled reports whether this program's engine is measured, and not another server.
func (r Runner) IsBundled() bool { return r.Mode == RunnerBundled }

// UsesBundled reports whether this program's engine serves any of a profile's trials.
func (p Profile) UsesBundled() bool {
	return p.Runner.IsBundled() || p.Finals != nil && p.Finals.IsBundled()
}

// Address returns a remote server's address, host:port, and whether connections use TLS. The
// default port is Triton's port of the protocol.
func (r Runner) Address() (address string, secure bool, err error) {
	secure = r.TLS != TLSFiles{}
	host := strings.TrimSuffix(r.URL, "/")
	if scheme, rest, found := strings.Cut(host, "://"); found {
		if !slices.Contains(schemes(), scheme) {
			return "", false, fmt.Errorf("the scheme %q is not known", scheme)
		}
		host, secure = rest, secure || strings.HasSuffix(scheme, "s")
	}
	if strings.Contains(host, "@") {
		return "", false, errors.New("it names a user; put credentials into headers, as $NAME of an environment variable")
	}
	if name, number, err := net.SplitHostPort(host); err == nil {
		if n, err := strconv.Atoi(number); err != nil || n < 1 || n > 65535 || name == "" {
			return "", false, fmt.Errorf("%q is not HOST:PORT", host)
		}
		return host, secure, nil
	}
	if host == "" || strings.ContainsAny(host, "/?#") || strings.Count(host, ":") == 1 {
		return "", false, errors.New("it is not HOST:PORT, without a path")
	}
	port := "8001"
	if r.Protocol == ProtocolHTTP {
		port = "8000"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port), secure, nil
}

// schemes lists the schemes of Runner.URL. A final s means TLS.
func schemes() []string { return []string{"http", "https", "grpc", "grpcs"} }

// bundledRunner returns the default runner of a profile.
func bundledRunner() Runner { return Runner{Mode: RunnerBundled, Protocol: ProtocolGRPC} }

// runnerField is a field of a runner, with its mode; "" for all modes.
type runnerField struct {
	field
	mode string
}

// runnerFields returns the fields with their readers, which store into target.
func (r profileReader) runnerFields(target *Runner) []runnerField {
	text := func(target *string) func(value) {
		return func(v value) {
			if s, ok := v.text(); ok {
				*target = s
			}
		}
	}
	files := func(v value) {
		v.mapping([]field{
			{"ca", func(v value) { r.file(v, &target.TLS.CA) }},
			{"certificate", func(v value) { r.file(v, &target.TLS.Certificate) }},
			{"key", func(v value) { r.file(v, &target.TLS.Key) }},
		}, nil)
	}
	return []runnerField{
		{field{"mode", func(v value) { setWord(v, &target.Mode, []string{RunnerBundled, RunnerLocal, RunnerRemote}) }}, ""},
		{field{"protocol", func(v value) { setWord(v, &target.Protocol, []string{ProtocolGRPC, ProtocolHTTP}) }}, ""},
		{field{"server", func(v value) { r.program(v, &target.Server) }}, RunnerLocal},
		{field{"args", func(v value) { target.Args = serverOptions(v) }}, RunnerLocal},
		{field{"environment", func(v value) { target.Environment = texts(v, value.anyText) }}, RunnerLocal},
		{field{"log", func(v value) { r.file(v, &target.Log) }}, RunnerLocal},
		{field{"url", text(&target.URL)}, RunnerRemote},
		{field{"metrics_url", text(&target.MetricsURL)}, RunnerRemote},
		{field{"model_repository", func(v value) { r.file(v, &target.Repository) }}, RunnerRemote},
		{field{"headers", func(v value) { target.Headers = texts(v, value.text) }}, RunnerRemote},
		{field{"tls", files}, RunnerRemote},
	}
}

// runner reads a runner. It reports missing fields of its mode, and fields of other modes.
func (r profileReader) runner(v value, target *Runner) {
	before := len(v.doc.errors)
	all := r.runnerFields(target)
	given := v.mapping(mapped(all, func(f runnerField) field { return f.field }), nil)
	if len(v.doc.errors) > before {
		return
	}
	for _, f := range all {
		if at, has := given[f.name]; has && f.mode != "" && f.mode != target.Mode {
			at.fail(Error{Problem: fmt.Sprintf("is for mode: %s, and the mode is %s", f.mode, target.Mode)})
		}
	}
	switch {
	case target.Mode == RunnerLocal && target.Server == "":
		target.Server = DefaultServer
	case target.Mode == RunnerRemote && target.URL == "":
		v.fail(Error{Problem: "has no url", Hint: "write {mode: remote, url: HOST:PORT}"})
	case target.Mode == RunnerRemote:
		checkURL(given, target)
	}
}

// checkURL reads the protocol from the scheme of a remote server's address, and reports an invalid
// address.
func checkURL(given map[string]value, target *Runner) {
	const allowed = "HOST:PORT, http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT"
	_, secure, err := target.Address()
	if err != nil {
		given["url"].fail(Error{Problem: "is not the address of a server: " + err.Error(), Allowed: allowed})
		return
	}
	if at, has := given["tls"]; has && !secure && !at.doc.isRecorded {
		at.fail(Error{Problem: "names no file, and url does not ask for TLS: nothing would be encrypted", Allowed: "{ca: FILE, certificate: FILE, key: FILE}",
			Hint: "write url: grpcs://HOST:PORT, or https://HOST:PORT, for TLS with the system's authorities"})
	}
	scheme, _, found := strings.Cut(target.URL, "://")
	if !found {
		return
	}
	protocol := strings.TrimSuffix(scheme, "s")
	if at, has := given["protocol"]; has && target.Protocol != protocol {
		at.fail(Error{Problem: fmt.Sprintf("contradicts the scheme of url, %s://", scheme), Hint: "keep one of the two"})
		return
	}
	target.Protocol = protocol
}

// program reads a program's name. A name with a slash is a path relative to the profile's folder.
// Others are searched in PATH.
func (r profileReader) program(v value, target *string) {
	name, ok := v.text()
	switch {
	case !ok:
	case strings.ContainsRune(name, filepath.Separator):
		*target = relativeTo(r.p.Path, name)
		if !strings.ContainsRune(*target, filepath.Separator) { // beside a profile in the working folder
			*target = "." + string(filepath.Separator) + *target
		}
	default:
		*target = name
	}
}

// OwnOptions lists the server options that tuner sets itself.
func OwnOptions() []string {
	return []string{"model-repository", "model-store", "model-control-mode", "load-model", "http-port", "grpc-port", "metrics-port",
		"http-address", "grpc-address", "metrics-address"}
}

// serverOptions reads additional options of a server.
func serverOptions(v value) []string {
	var options []string
	for _, e := range v.list() {
		text, ok := e.text()
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(text, "-"), "=")
		if strings.HasPrefix(text, "--") && slices.Contains(OwnOptions(), name) {
			e.fail(Error{Problem: fmt.Sprintf("sets --%s, which tuner sets for each server that it launches", name), Hint: "remove it"})
			continue
		}
		options = append(options, text)
	}
	return options
}

// texts reads a mapping from names to texts, each with read.
func texts(v value, read func(value) (string, bool)) map[string]string {
	list := map[string]string{}
	v.mapping(nil, func(key, v value) bool {
		if text, ok := read(v); ok {
			list[key.node.Value] = text
		}
		return true
	})
	return list
}

// finals reads the runner that confirms the finalists.
func (r profileReader) finals(v value) {
	given := v.mapping([]field{{"runner", func(v value) {
		finals := bundledRunner()
		r.runner(v, &finals)
		r.p.Finals = &finals
	}}}, nil)
	if _, has := given["runner"]; !has && v.node.Kind == yaml.MappingNode && len(v.node.Content) == 0 {
		v.fail(Error{Problem: "has no runner", Hint: "write finals: {runner: {mode: local, server: tritonserver}}"})
	}
}

// checkServers reports settings that do not work with servers other than the bundled engine.
func (r profileReader) checkServers(given map[string]value) {
	p := r.p
	if at, has := given["finals"]; has && p.Finals != nil && reflect.DeepEqual(*p.Finals, p.Runner) {
		at.fail(Error{Problem: "names the server that runner names", Hint: "remove it: the finals run there anyway"})
	}
	for _, s := range []struct {
		name   string
		runner *Runner
	}{{"runner", &p.Runner}, {"finals", p.Finals}} {
		at, has := given[s.name]
		if !has || s.runner == nil || s.runner.IsBundled() {
			continue
		}
		if p.DeployTarget != TargetTriton {
			at.fail(Error{Problem: "is another server than the bundled engine, and only that one honours the options of deploy_target: tuner (spinning, session entries, several runtimes)",
				Hint: "remove deploy_target"})
		}
		if space, has := given["space"]; has && s.name == "runner" && p.Runtimes() != nil {
			space.child(search.KnobRuntime).fail(Error{Problem: "cannot be chosen on another server than the bundled engine: it has its own ONNX Runtime", Hint: "remove the line"})
		}
	}
}
