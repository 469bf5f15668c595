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
	"tuner/spec/document"
	"tuner/spec/secrets"
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
	document.Field
	mode string
}

// runnerFields returns the fields with their readers, which store into target.
func (r profileReader) runnerFields(target *Runner) []runnerField {
	text := func(target *string) func(document.Value) {
		return func(v document.Value) {
			if s, ok := v.Text(); ok {
				*target = s
			}
		}
	}
	files := func(v document.Value) {
		v.Mapping([]document.Field{
			{Name: "ca", Read: func(v document.Value) { r.file(v, &target.TLS.CA) }},
			{Name: "certificate", Read: func(v document.Value) { r.file(v, &target.TLS.Certificate) }},
			{Name: "key", Read: func(v document.Value) { r.file(v, &target.TLS.Key) }},
		}, nil)
	}
	return []runnerField{
		{document.Field{Name: "mode", Read: func(v document.Value) { setWord(v, &target.Mode, []string{RunnerBundled, RunnerLocal, RunnerRemote}) }}, ""},
		{document.Field{Name: "protocol", Read: func(v document.Value) { setWord(v, &target.Protocol, []string{ProtocolGRPC, ProtocolHTTP}) }}, ""},
		{document.Field{Name: "server", Read: func(v document.Value) { r.program(v, &target.Server) }}, RunnerLocal},
		{document.Field{Name: "args", Read: func(v document.Value) { target.Args = serverOptions(v) }}, RunnerLocal},
		{document.Field{Name: "environment", Read: func(v document.Value) { target.Environment = texts(v, document.Value.AnyText) }}, RunnerLocal},
		{document.Field{Name: "log", Read: func(v document.Value) { r.file(v, &target.Log) }}, RunnerLocal},
		{document.Field{Name: "url", Read: text(&target.URL)}, RunnerRemote},
		{document.Field{Name: "metrics_url", Read: text(&target.MetricsURL)}, RunnerRemote},
		{document.Field{Name: "model_repository", Read: func(v document.Value) { r.file(v, &target.Repository) }}, RunnerRemote},
		{document.Field{Name: "headers", Read: func(v document.Value) { target.Headers = texts(v, document.Value.Text) }}, RunnerRemote},
		{document.Field{Name: "tls", Read: files}, RunnerRemote},
	}
}

// runner reads a runner. It reports missing fields of its mode, and fields of other modes.
func (r profileReader) runner(v document.Value, target *Runner) {
	before := v.Mistakes()
	all := r.runnerFields(target)
	given := v.Mapping(mapped(all, func(f runnerField) document.Field { return f.Field }), nil)
	if v.Mistakes() > before {
		return
	}
	for _, f := range all {
		if at, has := given[f.Name]; has && f.mode != "" && f.mode != target.Mode {
			at.Fail(document.Error{Problem: fmt.Sprintf("is for mode: %s, and the mode is %s", f.mode, target.Mode)})
		}
	}
	switch {
	case target.Mode == RunnerLocal && target.Server == "":
		target.Server = DefaultServer
	case target.Mode == RunnerRemote && target.URL == "":
		v.Fail(document.Error{Problem: "has no url", Hint: "write {mode: remote, url: HOST:PORT}"})
	case target.Mode == RunnerRemote:
		checkURL(given, target)
	}
}

// checkURL reads the protocol from the scheme of a remote server's address, and reports an invalid
// address.
func checkURL(given map[string]document.Value, target *Runner) {
	const allowed = "HOST:PORT, http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT"
	_, secure, err := target.Address()
	if err != nil {
		given["url"].Fail(document.Error{Problem: "is not the address of a server: " + err.Error(), Allowed: allowed})
		return
	}
	if at, has := given["tls"]; has && !secure && !at.IsRecorded() {
		at.Fail(document.Error{Problem: "names no file, and url does not ask for TLS: nothing would be encrypted", Allowed: "{ca: FILE, certificate: FILE, key: FILE}",
			Hint: "write url: grpcs://HOST:PORT, or https://HOST:PORT, for TLS with the system's authorities"})
	}
	scheme, _, found := strings.Cut(target.URL, "://")
	if !found {
		return
	}
	protocol := strings.TrimSuffix(scheme, "s")
	if at, has := given["protocol"]; has && target.Protocol != protocol {
		at.Fail(document.Error{Problem: fmt.Sprintf("contradicts the scheme of url, %s://", scheme), Hint: "keep one of the two"})
		return
	}
	target.Protocol = protocol
}

// program reads a program's name. A name with a slash is a path relative to the profile's folder.
// Others are searched in PATH.
func (r profileReader) program(v document.Value, target *string) {
	name, ok := v.Text()
	switch {
	case !ok:
	case strings.ContainsRune(name, filepath.Separator):
		*target = document.RelativeTo(r.p.Path, name)
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
func serverOptions(v document.Value) []string {
	var options []string
	for _, e := range v.List() {
		text, ok := e.Text()
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(text, "-"), "=")
		if strings.HasPrefix(text, "--") && slices.Contains(OwnOptions(), name) {
			e.Fail(document.Error{Problem: fmt.Sprintf("sets --%s, which tuner sets for each server that it launches", name), Hint: "remove it"})
			continue
		}
		options = append(options, text)
	}
	return options
}

// texts reads a mapping from names to texts, each with read.
func texts(v document.Value, read func(document.Value) (string, bool)) map[string]string {
	list := map[string]string{}
	v.Mapping(nil, func(key, v document.Value) bool {
		if text, ok := read(v); ok {
			list[key.Node.Value] = text
		}
		return true
	})
	return list
}

// finals reads the runner that confirms the finalists.
func (r profileReader) finals(v document.Value) {
	given := v.Mapping([]document.Field{{Name: "runner", Read: func(v document.Value) {
		finals := bundledRunner()
		r.runner(v, &finals)
		r.p.Finals = &finals
	}}}, nil)
	if _, has := given["runner"]; !has && v.Node.Kind == yaml.MappingNode && len(v.Node.Content) == 0 {
		v.Fail(document.Error{Problem: "has no runner", Hint: "write finals: {runner: {mode: local, server: tritonserver}}"})
	}
}

// checkServers reports settings that do not work with servers other than the bundled engine.
func (r profileReader) checkServers(given map[string]document.Value) {
	p := r.p
	if at, has := given["finals"]; has && p.Finals != nil && reflect.DeepEqual(*p.Finals, p.Runner) {
		at.Fail(document.Error{Problem: "names the server that runner names", Hint: "remove it: the finals run there anyway"})
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
			at.Fail(document.Error{Problem: "is another server than the bundled engine, and only that one honours the options of deploy_target: tuner (spinning, session entries, several runtimes)",
				Hint: "remove deploy_target"})
		}
		if space, has := given["space"]; has && s.name == "runner" && p.Runtimes() != nil {
			space.Child(search.KnobRuntime).Fail(document.Error{Problem: "cannot be chosen on another server than the bundled engine: it has its own ONNX Runtime", Hint: "remove the line"})
		}
	}
}

// WithoutSecrets hides possible secrets in a runner as package secrets does in its text, for the
// comparison of two runners.
func (r Runner) WithoutSecrets() Runner {
	r.Args = secrets.Arguments(r.Args)
	if len(r.Args) == 0 {
		r.Args = nil
	}
	if r.Environment != nil {
		variables := make(map[string]string, len(r.Environment))
		for name, value := range r.Environment {
			variables[name] = secrets.Variable(name, value)
		}
		r.Environment = variables
	}
	return r
}
