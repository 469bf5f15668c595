// Package target has the servers that are measured. They are tuner's own engine, a tritonserver (or
// another program with its options) that is launched on this machine, and a server that runs
// already. Package runner gets them as its launchers. For the servers that a profile names, it
// describes them, lets them load the model, and restores the state of remote ones. It measures
// nothing.
package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"tuner/engine/api"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/ort/addon"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/meter"
	"tuner/runner/wire"
	"tuner/search"
	"tuner/spec"
)

// Model is a model as servers load it first: the original file with the default configuration.
type Model struct {
	Name   string
	Source modelrepo.Source
	Config *modelconfig.Config
}

// Servers holds the server of a campaign's search, and the server of its finals if that is another
// one.
type Servers struct {
	search *server
	finals *server // nil: the server of the search
}

// server is a server on which trials run.
type server struct {
	runner  spec.Runner
	field   string // field of the profile that names it
	options runner.Options
	info    *journal.ServerInfo // name and version are set once it was asked
	remote  *Remote             // nil unless it runs already
	before  *RemoteState        // its state of the model; nil until it was asked
}

// Open prepares the servers of a profile. It neither starts nor asks them. Warnings go to the
// writer.
func Open(p spec.Profile, warnings io.Writer) (Servers, error) {
	var s Servers
	var err error
	if s.search, err = open(p, p.Runner, "runner", warnings); err != nil || p.Finals == nil {
		return s, err
	}
	s.finals, err = open(p, *p.Finals, "finals.runner", warnings)
	return s, err
}

func open(p spec.Profile, r spec.Runner, field string, warnings io.Writer) (*server, error) {
	libraries, err := p.Model.Libraries.Resolve(addon.InFile())
	if err != nil {
		return nil, exit.Usagef("%s: %v", p.Path, err)
	}
	options, err := Engine("", libraries, warnings)
	if err != nil {
		return nil, err
	}
	s := &server{runner: r, field: field, options: options, info: &journal.ServerInfo{Mode: r.Mode}}
	s.options.Reloads = !r.IsBundled()
	if r.Protocol == spec.ProtocolHTTP {
		s.options.Dial, s.options.Wire = runner.HTTP, runner.Over(runner.OverHTTP)
	}
	switch r.Mode {
	case spec.RunnerLocal:
		err = s.openLocal()
	case spec.RunnerRemote:
		err = s.openRemote(p.Name)
	}
	if err != nil {
		return nil, exit.Usagef("%s: %s.%v", p.Path, field, err)
	}
	return s, nil
}

// openLocal finds the program of a server that is launched.
func (s *server) openLocal() error {
	program, err := exec.LookPath(s.runner.Server)
	if err != nil {
		return fmt.Errorf("server: cannot launch %q: %w\n    hint: name a tritonserver, or another program that takes its options; paths are relative to the file's folder",
			s.runner.Server, durable.Cause(errors.Unwrap(err)))
	}
	if program, err = filepath.Abs(program); err != nil {
		return fmt.Errorf("server: cannot resolve %q: %w", s.runner.Server, err)
	}
	s.info.Where = program
	s.options.Launcher = Local{
		Program: program, Args: s.runner.Args, Environment: s.runner.Environment, Log: s.runner.Log, Dial: s.options.Dial,
		Warn: func(err error) { s.options.Log.Warn("the output of the server is not kept", "cause", err) },
	}
	return nil
}

// openRemote prepares the connection to a server that runs already.
func (s *server) openRemote(model string) error {
	r := s.runner
	address, isSecure, err := r.Address()
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
	if isSecure {
		files := wire.TLSOptions{CA: r.TLS.CA, Certificate: r.TLS.Certificate, Key: r.TLS.Key}
		if over.TLS, err = files.Config(address); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	access := over.Access()
	s.remote = &Remote{
		At: api.Announcement{GRPC: address}, Model: model, Place: r.Repository,
		Connect: func(at api.Announcement) (api.Client, error) { return api.OpenGRPC(at.GRPC, access) },
	}
	if r.Protocol == spec.ProtocolHTTP {
		over.Protocol = wire.HTTP
		s.remote.At = api.Announcement{HTTP: address}
		s.remote.Connect = func(at api.Announcement) (api.Client, error) { return api.OpenHTTP(at.HTTP, access), nil }
	}
	host, _, _ := net.SplitHostPort(address) // valid, since Address has made it
	s.info.Where = address
	s.options.Launcher, s.options.Dial = s.remote, s.remote.Dial
	s.options.Wire = runner.Over(func(api.Announcement) wire.Options { return over })
	s.options.Elsewhere, s.options.Metrics = !hostinfo.IsLocal(host), meter.PageURL(s.runner.MetricsURL)
	s.options.Group, s.options.Refuses = 0, false // it is in no control group of this program
	return nil
}

// expand replaces $NAME and ${NAME} by environment variables, so that profiles and journals hold no
// secrets.
func expand(text string) (string, error) {
	var missing error
	expanded := os.Expand(text, func(name string) string {
		value, isSet := os.LookupEnv(name)
		if !isSet {
			missing = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	})
	return expanded, missing
}

// all lists the servers.
func (s Servers) all() []*server {
	if s.finals == nil {
		return []*server{s.search}
	}
	return []*server{s.search, s.finals}
}

// Infos returns descriptions of the servers for the journal's header. search is nil for the bundled
// engine. finals is nil if the finals use the server of the search.
func (s Servers) Infos() (search, finals *journal.ServerInfo) {
	if !s.search.runner.IsBundled() {
		search = s.search.info
	}
	if s.finals != nil {
		finals = s.finals.info
	}
	return search, finals
}

// Runners makes the runners of a campaign with past events. finals is nil if the finals use the
// server of the search. The caller closes them.
func (s Servers) Runners(past []search.Event) (search, finals *runner.Runner) {
	search = s.search.runnerAfter(past)
	if s.finals != nil {
		finals = s.finals.runnerAfter(past)
	}
	return search, finals
}

func (s *server) runnerAfter(past []search.Event) *runner.Runner {
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

// restoreTime bounds the restoring of a server's state.
const restoreTime = 2 * time.Minute

// Restore restores the state of the remote servers, if they were asked to load the model. It also
// does so after ctx has ended.
func (s Servers) Restore(ctx context.Context) error {
	var failed error
	for _, one := range s.all() {
		if one.remote == nil || one.before == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		failed = errors.Join(failed, one.remote.Restore(ctx, *one.before))
		cancel()
	}
	return failed
}
