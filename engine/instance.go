package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"tuner/engine/fault"
	"tuner/engine/hostpolicy"
	"tuner/engine/ragged"
	"tuner/engine/ratelimit"
	"tuner/engine/request"
	"tuner/engine/served"
	"tuner/engine/statistics"
	"tuner/engine/warmup"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// bound runs f on a thread that is bound by a policy and ends with f. Threads of ONNX Runtime that
// f starts are bound with it.
func bound(p hostpolicy.Policy, f func() error) error {
	if p.IsAny() {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that no other goroutine runs on this thread
		err := p.Bind()
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// instances lists the places of the instances in a configuration, without passive groups.
func (s *Server) instances(c *modelconfig.Config) []Instance {
	var out []Instance
	for _, g := range c.GetInstanceGroup() {
		if g.GetPassive() {
			continue
		}
		policy := func(byDefault string) hostpolicy.Policy {
			if g.GetHostPolicy() != "" {
				return hostpolicy.Find(s.options.HostPolicies, g.GetHostPolicy())
			}
			return hostpolicy.Find(s.options.HostPolicies, byDefault)
		}
		first := len(out)
		for range g.GetCount() {
			switch g.GetKind() {
			case configpb.ModelInstanceGroup_KIND_GPU:
				for _, gpu := range g.GetGpus() {
					out = append(out, Instance{OnGPU: true, GPU: int(gpu), Policy: policy(fmt.Sprintf("gpu_%d", gpu))})
				}
			case configpb.ModelInstanceGroup_KIND_MODEL:
				out = append(out, Instance{Policy: policy("model")})
			default:
				out = append(out, Instance{Policy: policy("cpu")})
			}
		}
		for i := first; i < len(out); i++ {
			out[i].limit = g.GetRateLimiter()
		}
	}
	for i := range out {
		out[i].Number = i
	}
	return out
}

// claim has instances in places claim what their groups share with other models.
func (s *Server) claim(places []Instance, made []served.Instance) error {
	if s.options.Limiter == nil {
		return nil
	}
	for i, place := range places {
		var needs []ratelimit.Need
		for _, r := range place.limit.GetResources() {
			needs = append(needs, ratelimit.Need{Name: r.GetName(), IsGlobal: r.GetGlobal(), Count: int(r.GetCount())})
		}
		var err error
		if made[i].Claim, err = s.options.Limiter.Add(needs, place.limit.GetPriority(), place.GPU); err != nil {
			return err
		}
	}
	return nil
}

// newModel makes the sessions of a version. It replaces old, if there is one.
func (s *Server) newModel(ctx context.Context, src *source, number int64, old *served.Model, unchanged bool) (*served.Model, error) {
	files := ModelFiles{Name: src.Name, Version: number}
	var err error
	if modelconfig.HasFile(src.Config) {
		if files.Path, err = src.File(number, src.Config.GetDefaultModelFilename()); err != nil {
			return nil, err
		}
	}
	m := &served.Model{Name: src.Name, Namespace: src.namespace, Version: number}
	var made []served.Instance
	var samples []warmup.Sample
	places := s.instances(src.Config)
	for _, in := range places {
		err = bound(in.Policy, func() error {
			session, err := s.newSession(ctx, files, src.Config, in, made)
			if err != nil {
				return err
			}
			made = append(made, served.Instance{Session: session, Policy: in.Policy})
			if m.Config == nil { // the first session has the model's inputs and outputs
				if samples, err = s.describe(m, src, session.IO(), old, unchanged); err != nil {
					return err
				}
			}
			return warmup.Run(ctx, session, samples, m.Stats, func(sample string, iteration int) { // Triton's text
				s.options.Log.Debug(fmt.Sprintf("model '%s' instance %s_%d is running warmup sample '%s' for iteration %d", src.Name, src.Name, len(made)-1, sample, iteration))
			})
		})
		if err != nil {
			break
		}
	}
	if err == nil && len(made) == 0 {
		err = fault.Errorf(fault.InvalidArgument, "model '%s' has no instance: all of its instance groups are passive", src.Name)
	}
	if err == nil {
		err = s.claim(places, made)
	}
	if err != nil {
		return nil, errors.Join(err, served.CloseInstances(made))
	}
	m.Pool = served.NewPool(m.Config, m.Added, made, served.Waiting{Hold: s.options.Hold, HoldBacklog: s.options.HoldBacklog, Timer: s.options.Timer})
	m.Pool.Keep(src.temp)
	return m, nil
}

// newSession makes an instance: on the session of one that was made before in the same place, if the
// model's instances share it.
func (s *Server) newSession(ctx context.Context, files ModelFiles, c *modelconfig.Config, in Instance, made []served.Instance) (Session, error) {
	for _, before := range made {
		sharing, can := before.Session.(Sharing)
		if !can || !before.Policy.Equal(in.Policy) {
			continue
		}
		if shared := sharing.Share(); shared != nil {
			return shared, nil
		}
	}
	return s.options.Backend.NewSession(ctx, files, c, in)
}

// describe sets m's configuration, the values derived from it, and its counters. It returns the
// samples of its warm-up.
func (s *Server) describe(m *served.Model, src *source, io modelconfig.ModelIO, old *served.Model, unchanged bool) ([]warmup.Sample, error) {
	c, err := s.finish(src, &io)
	if err == nil {
		m.Labels, err = src.Labels(c)
	}
	if err != nil {
		return nil, err
	}
	m.Config, m.Signature = c, request.NewSignature(c)
	if m.Added, err = s.newAdded(src, c); err != nil {
		return nil, err
	}
	if m.Ragged, err = newRagged(c); err != nil {
		return nil, err
	}
	s.count(m, old, unchanged)
	return warmup.New(src.Name, src.warmupFile, m.Signature, warmup.Joining{Added: m.Added, Ragged: m.Ragged}, c.GetModelWarmup())
}

// newRagged says how requests of different shapes form a batch. nil: they do not, or the backend takes
// each request by itself.
func newRagged(c *modelconfig.Config) (*ragged.Spec, error) {
	if !modelconfig.HasFile(c) {
		return nil, nil
	}
	spec, err := ragged.New(c)
	if err != nil {
		return nil, invalid(err)
	}
	return spec, nil
}

// count gives a model its counters. old is the model that it replaces, nil if none.
func (s *Server) count(m, old *served.Model, unchanged bool) {
	switch {
	case old == nil:
		m.Stats = statistics.New(s.observer(m))
	case unchanged:
		m.Stats = inherit(old, m.Config)
	default:
		m.Stats = old.Stats.Successor()
	}
}

// observer returns the observer of a version whose counters begin at zero; nil: none.
func (s *Server) observer(m *served.Model) statistics.Observer {
	if s.options.Observe == nil {
		return nil
	}
	return s.options.Observe(m.Namespace, m.Name, m.Version, m.Config)
}

// tryModel is newModel, and again as often as the server was asked to.
func (s *Server) tryModel(ctx context.Context, src *source, number int64, old *served.Model, unchanged bool) (*served.Model, error) {
	for tries := 0; ; tries++ {
		m, err := s.newModel(ctx, src, number, old, unchanged)
		if err == nil || tries >= s.options.LoadRetries || ctx.Err() != nil {
			return m, err
		}
		s.options.Log.Warn("cannot load model, so it is tried again", "model", src.Name, "version", number, "error", err)
	}
}
