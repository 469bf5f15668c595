package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/internal/durable"
	"tuner/journal"
	"tuner/meter"
	"tuner/modelrepo"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
	"tuner/wire"
)

// campaignServer is a server that a campaign's trials run on.
type campaignServer struct {
	runner  spec.Runner
	field   string // of the profile that names it
	options runner.Options
	info    *journal.ServerInfo // name and version are filled in when it was asked
	remote  *runner.Remote      // nil unless it runs already
	state   *runner.RemoteState // what it had of the model before; nil as long as it was not asked
}

// campaignServers are the server of the search and, where it is another one, that of the finals.
type campaignServers struct {
	search *campaignServer
	finals *campaignServer // nil: search
}

// all lists the servers.
func (s campaignServers) all() []*campaignServer {
	if s.finals == nil {
		return []*campaignServer{s.search}
	}
	return []*campaignServer{s.search, s.finals}
}

// newServers wires the servers of a profile; none of them is started or asked.
func newServers(con console, p spec.Profile) (campaignServers, error) {
	var s campaignServers
	var err error
	if s.search, err = newServer(con, p, p.Runner, "runner"); err != nil || p.Finals == nil {
		return s, err
	}
	s.finals, err = newServer(con, p, *p.Finals, "finals.runner")
	return s, err
}

func newServer(con console, p spec.Profile, r spec.Runner, field string) (*campaignServer, error) {
	options, err := bundled(con)
	if err != nil {
		return nil, err
	}
	s := &campaignServer{runner: r, field: field, options: options, info: &journal.ServerInfo{Mode: r.Mode}}
	s.options.Reloads = !r.IsBundled()
	if r.Protocol == spec.ProtocolHTTP {
		s.options.Dial, s.options.Wire = runner.HTTP, runner.Over(runner.OverHTTP)
	}
	switch r.Mode {
	case spec.RunnerLocal:
		err = s.wireLocal()
	case spec.RunnerRemote:
		err = s.wireRemote(p)
	}
	if err != nil {
		return nil, usageErrorf("%s: %s.%v", p.Path, field, err)
	}
	return s, nil
}

// wireLocal finds the program of a server that is launched.
func (s *campaignServer) wireLocal() error {
	program, err := exec.LookPath(s.runner.Server)
	if err != nil {
		return fmt.Errorf("server: cannot launch %q: %w\n    hint: name a tritonserver, or another program that takes its options; paths are relative to the file's folder",
			s.runner.Server, durable.Cause(errors.Unwrap(err)))
	}
	if program, err = filepath.Abs(program); err != nil {
		return fmt.Errorf("server: cannot resolve %q: %w", s.runner.Server, err)
	}
	s.info.Where = program
	s.options.Launcher = runner.Local{Program: program, Args: s.runner.Args, Environment: s.runner.Environment, Log: s.runner.Log, Dial: s.options.Dial,
		Warn: func(err error) { s.options.Log.Warn("the output of the server is not kept", "cause", err) }}
	return nil
}

// wireRemote settles how a server that runs already is reached.
func (s *campaignServer) wireRemote(p spec.Profile) error {
	r := s.runner
	address, secure, err := r.Address()
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	over := wire.Options{Address: address, Protocol: wire.GRPC}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		value, err := expand(r.Headers[name])
		if err != nil {
			return fmt.Errorf("headers.%s: %w", name, err)
		}
		over.Headers = append(over.Headers, wire.Header{Name: name, Value: value})
	}
	if secure {
		if over.TLS, err = (wire.TLSOptions{CA: r.TLS.CA, Certificate: r.TLS.Certificate, Key: r.TLS.Key}).Config(address); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	access := over.Access()
	s.remote = &runner.Remote{
		At: api.Announcement{GRPC: address}, Model: p.Name, Place: r.Repository,
		Connect: func(at api.Announcement) (api.Client, error) { return api.OpenGRPC(at.GRPC, access) },
	}
	if r.Protocol == spec.ProtocolHTTP {
		over.Protocol = wire.HTTP
		s.remote.At = api.Announcement{HTTP: address}
		s.remote.Connect = func(at api.Announcement) (api.Client, error) { return api.OpenHTTP(at.HTTP, access), nil }
	}
	host, _, _ := net.SplitHostPort(address) // Address has made it
	s.info.Where = address
	s.options.Launcher, s.options.Dial = s.remote, s.remote.Dial
	s.options.Wire = runner.Over(func(api.Announcement) wire.Options { return over })
	s.options.Elsewhere, s.options.Metrics = !isLocal(host), s.metricsURL()
	return nil
}

// metricsURL is that of the metrics page; "" for none.
func (s *campaignServer) metricsURL() string {
	if url := s.runner.MetricsURL; url != "" && !strings.Contains(url, "://") {
		return "http://" + url
	}
	return s.runner.MetricsURL
}

// expand replaces $NAME and ${NAME} by environment variables, which keeps secrets out of profiles and journals.
func expand(text string) (string, error) {
	var missing error
	expanded := os.Expand(text, func(name string) string {
		value, set := os.LookupEnv(name)
		if !set {
			missing = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	})
	return expanded, missing
}

// checkMetrics finds the metrics of a goal that nobody tells of one of the servers, before anything is launched.
func (s campaignServers) checkMetrics(ctx context.Context, file string, goal search.Goal) error {
	for _, one := range s.all() {
		sources, where := meter.ReadSources, "on this machine"
		if one.remote != nil {
			page, err := meter.ReadPage(ctx, one.metricsURL())
			if err != nil {
				return usageErrorf("%s: %s.metrics_url: %v", file, one.field, err)
			}
			sources, where = func() meter.Sources { return page }, "on the server at "+one.info.Where
		}
		if err := checkMetrics(file, goal, sources(), where); err != nil {
			return err
		}
	}
	return nil
}

// askTime bounds a question to a remote server.
const askTime = 10 * time.Second

// inspect asks a remote server what it has of the model, once, and settles which files travel with a load: those that it does not have.
func (s *campaignServer) inspect(ctx context.Context, subject profile.Subject) error {
	if s.remote == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("it gave no answer within %v", askTime))
	defer cancel()
	state, err := s.remote.Inspect(ctx)
	if err != nil {
		return err
	}
	s.state, s.info.Name, s.info.Version = &state, state.Server.Name, state.Server.Version
	place := s.remote.Place
	if place != "" && modelrepo.Wrote(place, subject.Name) { // what a campaign that was killed has left
		state.Known = false
	}
	if state.Known { // its folder is not tuner's to replace
		s.remote.Place = ""
	}
	original, err := subject.OriginalDigest()
	if err != nil {
		return err
	}
	isKnown := state.Known
	s.remote.Sends = func(repository string) bool { return !isKnown || filepath.Base(repository) != original }
	return nil
}

// ask has the servers load the model, and returns the facts with what they cannot load. What is wrong is the user's to mend.
func (s campaignServers) ask(ctx context.Context, p spec.Profile, subject profile.Subject, facts search.Facts) (search.Facts, error) {
	for _, one := range s.all() {
		if one.runner.IsBundled() {
			continue
		}
		err := one.inspect(ctx, subject)
		var about api.ServerMetadata
		if err == nil {
			facts, about, err = profile.TryServer(ctx, p, subject, facts, runner.New(one.options))
		}
		if err != nil {
			return facts, interruptedOr(ctx, usageErrorf("%s: %s: cannot measure the server %s: %v\n    hint: %s", p.Path, one.field, one.info.Where, err, one.hint()))
		}
		one.info.Name, one.info.Version = about.Name, about.Version
	}
	return facts, nil
}

// hint says what a server must be like.
func (s *campaignServer) hint() string {
	if s.remote == nil {
		return "it must take tritonserver's options and have a backend for ONNX models; its own options go into args: [--backend-directory=DIR]"
	}
	return fmt.Sprintf("it must run there in explicit model control (--model-control-mode=explicit), speak %s, and let this client load models (headers, tls)",
		map[string]string{spec.ProtocolHTTP: "HTTP", spec.ProtocolGRPC: "gRPC"}[s.runner.Protocol])
}

// restoreTime bounds giving a server back what it had of the model.
const restoreTime = 2 * time.Minute

// restore gives the remote servers back what they had of the model, as far as they were asked to load it.
func (s campaignServers) restore(ctx context.Context) error {
	var failed error
	for _, one := range s.all() {
		if one.remote == nil || one.state == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		failed = errors.Join(failed, one.remote.Restore(ctx, *one.state))
		cancel()
	}
	return failed
}

// infos are the servers as the journal's header has them; nil for the bundled engine, and for finals on the same.
func (s campaignServers) infos() (search, finals *journal.ServerInfo) {
	if !s.search.runner.IsBundled() {
		search = s.search.info
	}
	if s.finals != nil {
		finals = s.finals.info
	}
	return search, finals
}

// plan says for people which servers a campaign would be measured on, and what would be done to them; nothing for the bundled engine.
// Remote servers are asked what they have of the model.
func (s campaignServers) plan(ctx context.Context, p spec.Profile, subject profile.Subject) ([]string, error) {
	var lines []string
	for _, one := range s.all() {
		if err := one.inspect(ctx, subject); err != nil {
			return nil, interruptedOr(ctx, usageErrorf("%s: %s: cannot measure the server %s: %v\n    hint: %s", p.Path, one.field, one.info.Where, err, one.hint()))
		}
		if text := one.planText(p.Name); text != "" {
			lines = append(lines, one.field+": "+text)
		}
	}
	return lines, nil
}

func (s *campaignServer) planText(model string) string {
	switch {
	case s.runner.IsBundled():
		return ""
	case s.remote == nil:
		return s.info.Where + " is launched for each engine process, on ports of loopback; which execution providers it has is found out then"
	}
	files := "its files are sent with each load"
	switch {
	case s.state.Known:
		files = "it has the model's files; those of other precisions are sent with each load"
	case s.remote.Place != "":
		files = "its files are put into " + s.remote.Place + " and removed at the end"
	}
	after := "not loaded, as it is now"
	if s.state.Config != nil {
		after = "loaded, as it is now"
	}
	return fmt.Sprintf("%s: model %q is loaded with one configuration after the other; %s; in the end it is %s", s.info, model, files, after)
}

// newRunner makes the runner of a server for a campaign with past events. It must be closed.
func (s *campaignServer) newRunner(past []search.Event) *runner.Runner {
	options := s.options
	options.Epoch = time.Now()
	if n := len(past); n > 0 {
		options.Epoch = options.Epoch.Add(-past[n-1].Elapsed)
	}
	for _, e := range past {
		options.Launches = max(options.Launches, e.Measurement.Launch)
	}
	return runner.New(options)
}
