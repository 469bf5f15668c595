package modelanalyzer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tuner/spec"
	"tuner/spec/document"
)

// campaigns returns the campaigns of a model: one for each client batch.
func (r *reader) campaigns(m model) []Campaign {
	batches := r.batches(m)
	var list []Campaign
	for i, folder := range folders(m, batches) {
		if c, ok := r.campaign(m, batches[i], folder); ok {
			list = append(list, c)
		}
	}
	return list
}

// batchMark separates a model's name and the client batch in the folder of one of several campaigns.
const batchMark = "-b"

// folders returns the folders of a model's campaigns, by client batch.
func folders(m model, batches []value) []string {
	list := make([]string, len(batches))
	for i, batch := range batches {
		if list[i] = m.name; len(batches) > 1 {
			list[i] += batchMark + batch.node.Value
		}
	}
	return list
}

// batches returns the client batches of a model. The search uses one per campaign.
func (r *reader) batches(m model) []value {
	at, list := r.batchValues(m)
	if len(list) > 1 {
		r.warn(at, "each of the %d client batches is a campaign of its own, in %s and so on; the names of configurations are counted in each",
			len(list), r.campaignFolder(m.name+batchMark+list[0].node.Value))
	}
	return list
}

// batchValues lists the client batches of a model, at least one, and their place.
func (r *reader) batchValues(m model) (at value, list []value) {
	one := value{scalar(m.at, "1", false), m.at.path}
	v, has := r.parameter(m, "batch_sizes")
	flags := r.clientFlags(m)
	for _, name := range []string{"batch-size", "b"} {
		if flag, given := flags[name]; given && flag.isSaid() {
			v, has = flag, true
		}
	}
	if !has {
		return m.at, []value{one}
	}
	list = r.numbers(v)
	if len(list) == 0 { // a mistake, which was reported
		return m.at, []value{one}
	}
	return v, list
}

// campaignFolder returns the folder of a campaign, relative to the working folder.
func (r *reader) campaignFolder(name string) string { return filepath.Join(r.checkpoints(), name) }

// parameter returns a load parameter: the model's own, or else the file's.
func (r *reader) parameter(m model, name string) (value, bool) {
	if own, has := m.given["parameters"]; has {
		if v, given := r.mapping(own, Parameters)[name]; given && v.isSaid() {
			return v, true
		}
	}
	return r.said(name)
}

// clientFlags returns the perf_analyzer flags of a model.
func (r *reader) clientFlags(m model) map[string]value {
	v, has := r.of(m, "perf_analyzer_flags")
	if !has {
		return nil
	}
	return r.mapping(v, ClientFlags)
}

// campaign translates the file for one model, and has the result read.
func (r *reader) campaign(m model, batch value, folder string) (Campaign, bool) {
	if stages := r.stagesOf(m); len(stages) > 0 {
		return r.pipeline(m, stages, batch, folder)
	}
	before := len(r.errors)
	n := newNative()
	r.modelFile(n, m)
	n.text(m.at, m.name, "name")
	n.text(m.at, r.relativePath(r.campaignFolder(folder)), "output")
	r.runner(n, m)
	r.search(n, m)
	r.space(n, m)
	r.load(n, m, batch)
	r.goal(n, m)
	return r.finish(n, analysis{at: m.at, folder: folder}, before)
}

// finish has a translated file read. before is the number of mistakes before its translation; it returns
// false if there are more.
func (r *reader) finish(n *native, a analysis, before int) (Campaign, bool) {
	r.checkGPUs()
	text, err := n.print()
	var p spec.Profile
	if err == nil {
		p, err = spec.ParseProfile(r.path, text)
	}
	r.translate(n, err)
	analyzed := r.results(a)
	return Campaign{p, analyzed}, len(r.errors) == before
}

// modelFile writes the folder of a model.
func (r *reader) modelFile(n *native, m model) {
	repository, dir := r.text("model_repository", "")
	if dir == "" {
		repository = m.at
		r.fail(m.at, document.Error{Problem: "is in no model_repository", Hint: "add model_repository: FOLDER; tuner reads the model's inputs there, " +
			"also of one that a remote server serves"})
	}
	n.text(repository, r.relativePath(filepath.Join(dir, m.name)), "model")
}

// The modes of triton_launch_mode.
const (
	launchLocal   = "local"
	launchDocker  = "docker"
	launchRemote  = "remote"
	launchLibrary = "c_api"
)

// launchMode returns the way in which the server is started. It returns "" for tuner's own engine,
// which is used if the file names none and this machine has none.
func (r *reader) launchMode() (value, string) {
	v, mode := r.text("triton_launch_mode", "")
	_, hasPath := r.said("triton_server_path")
	switch {
	case mode == launchRemote, mode == launchLocal && (hasPath || r.machine.Server != ""):
	case mode == launchLocal:
		r.fail(v, document.Error{Problem: "finds no tritonserver in PATH", Hint: "add triton_server_path: PROGRAM, or remove the line to measure tuner's own engine"})
	case mode == launchDocker:
		r.fail(v, document.Error{Problem: "starts no container", Allowed: "local, remote",
			Hint: "write triton_launch_mode: local and triton_server_path: ./tritonserver-docker.sh, a script of one line:\n" +
				`        exec docker run --rm --network=host -v "$PWD:$PWD" -w "$PWD" IMAGE tritonserver "$@"`})
	case mode == launchLibrary:
		r.fail(v, document.Error{Problem: "loads no server as a library: an abort in it would end the campaign", Allowed: "local, remote"})
	case mode != "":
		r.fail(v, document.Error{Problem: "is not known", Allowed: "local, remote"})
	case hasPath || r.machine.Server != "":
		mode = launchLocal
	default:
		r.warnFile("no tritonserver is in PATH, so tuner's own engine is measured; triton_server_path names another server")
	}
	return v, mode
}

// warnFile adds a warning about the whole file.
func (r *reader) warnFile(text string) {
	w := Warning{File: r.path, Line: 1, Path: "triton_launch_mode", Text: text}
	for _, other := range r.warnings {
		if other == w {
			return
		}
	}
	r.warnings = append(r.warnings, w)
}

// runner writes which server is measured.
func (r *reader) runner(n *native, m model) {
	at, mode := r.launchMode()
	if at.node == nil {
		at = m.at
	}
	protocolAt, protocol := r.text("client_protocol", "grpc")
	if protocolAt.node != nil {
		n.word(protocolAt, protocol, "runner", "protocol")
	}
	switch mode {
	case launchRemote:
		r.remote(n, m, at, protocol)
	case launchLocal:
		r.local(n, m, at)
	default:
		r.warnUnused(m, "is for a tritonserver, and tuner's own engine is measured", "triton_server_flags", "triton_server_environment", "triton_output_path")
	}
	if mode != launchRemote {
		r.unconnected(r.clientFlags(m))
		r.warnUnused(m, "tuner chooses free ports for the servers that it starts", "triton_http_endpoint", "triton_grpc_endpoint", "triton_metrics_url")
	}
}

// warnUnused warns about fields of a model or the file without an effect in a mode.
func (r *reader) warnUnused(m model, text string, names ...string) {
	for _, name := range names {
		if v, has := r.of(m, name); has {
			r.warn(v, "%s", text)
		}
	}
}

// remote writes a server that is running already.
func (r *reader) remote(n *native, m model, at value, protocol string) {
	n.word(at, spec.RunnerRemote, "runner", "mode")
	field, usual := "triton_grpc_endpoint", "localhost:8001"
	if protocol == spec.ProtocolHTTP {
		field, usual = "triton_http_endpoint", "localhost:8000"
	}
	urlAt, url := r.text(field, usual)
	if urlAt.node == nil {
		urlAt = at
	}
	n.text(urlAt, r.connection(n, r.clientFlags(m), protocol)+url, "runner", "url")
	if v, has := r.said("triton_metrics_url"); has {
		n.text(v, v.node.Value, "runner", "metrics_url")
	}
	r.warnUnused(m, "is for a server that is started; the remote one has its own", "triton_server_flags", "triton_server_environment", "triton_output_path",
		"triton_server_path")
}

// local writes a tritonserver that is started for each pool.
func (r *reader) local(n *native, m model, at value) {
	n.word(at, spec.RunnerLocal, "runner", "mode")
	if v, path := r.text("triton_server_path", r.machine.Server); v.node == nil {
		n.text(at, path, "runner", "server")
	} else {
		if strings.ContainsRune(path, '/') {
			path = r.relativePath(path)
			if !strings.ContainsRune(path, '/') {
				path = "./" + path // names without a slash are searched in PATH
			}
		}
		n.text(v, path, "runner", "server")
	}
	if v, path := r.text("triton_output_path", ""); path != "" {
		n.text(v, r.relativePath(path), "runner", "log")
	}
	if v, has := r.of(m, "triton_server_environment"); has {
		for _, e := range r.texts(v) {
			n.text(e.value, e.node.Value, "runner", "environment", e.name)
		}
	}
	if v, has := r.of(m, "triton_server_flags"); has {
		r.serverFlags(n, v)
	}
}

// serverFlags passes flags to the server, except those that tuner sets itself. Their names may have
// underscores, as in Model Analyzer.
func (r *reader) serverFlags(n *native, v value) {
	args := sequence(v)
	for _, e := range r.texts(v) {
		name := strings.ReplaceAll(e.name, "_", "-")
		if slices.Contains(spec.OwnOptions(), name) || slices.Contains([]string{"allow-http", "allow-grpc", "allow-metrics"}, name) {
			r.warn(e.value, "tuner sets it itself: each server is on free ports, and loads what is measured")
			continue
		}
		args.Content = append(args.Content, scalar(e.value, fmt.Sprintf("--%s=%s", name, e.node.Value), true))
	}
	if len(args.Content) > 0 {
		n.set(v, args, "runner", "args")
	}
}

// isOnCPU reports whether a model is profiled on the CPU. Either the file says so, or this machine
// runs the server and has no GPU.
func (r *reader) isOnCPU(m model) bool {
	v, has := m.given["cpu_only"]
	_, mode := r.text("triton_launch_mode", "")
	return has && v.isSaid() || r.machine.GPUs == 0 && mode != launchRemote
}

// checkGPUs reports the effect of the choice of GPUs.
func (r *reader) checkGPUs() {
	v, has := r.said("gpus")
	if !has {
		return
	}
	if words := v.words(); len(words) == 1 && (words[0].node.Value == "all" || words[0].node.Value == "[]") {
		return
	}
	if r.machine.GPUs == 0 {
		r.warn(v, "there is no GPU on this machine")
		return
	}
	r.warn(v, "it has no effect: CUDA_VISIBLE_DEVICES in tuner's own environment chooses the GPUs")
}
