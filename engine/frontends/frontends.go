// Package frontends puts an engine.Server on the network: it opens the listeners of HTTP, gRPC and
// metrics, reports their addresses, and ends them in order. `tuner serve` and tests use it.
package frontends

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/grpcapi"
	"tuner/engine/metrics"
	"tuner/engine/rest"
	"tuner/engine/sharedmemory"
)

// Listen is the address of one front end. The zero value is not served.
type Listen struct {
	Enabled bool
	Address string      // host
	Port    int         // 0: the kernel chooses one
	Flag    string      // flag for the port, for messages
	TLS     *tls.Config // nil: clear text
}

// DefaultMaxMemory is the default of Options.MaxMemory.
const DefaultMaxMemory = budget.DefaultMax

// Options of all front ends.
type Options struct {
	HTTP, GRPC, Metrics Listen
	Clouds              []Cloud
	// bytes that clients may make all front ends hold together; 0: DefaultMaxMemory
	MaxMemory    int64
	SharedMemory bool // clients may register regions
	REST         rest.Options
	RPC          grpcapi.Options
	Figures      metrics.Options
	// time for which new connections are accepted after the server is asked to end
	DrainDelay time.Duration
	Log        *slog.Logger
}

// Addresses are host:port of each front end, "" if it is not served.
type Addresses struct{ HTTP, GRPC, Metrics string }

// frontend is one of the front ends.
type frontend struct {
	title    string // name in the start line
	listener net.Listener
	serve    func(net.Listener) error
	shutdown func(context.Context) error
}

// Frontends are open listeners of a server.
type Frontends struct {
	server    *engine.Server
	all       []frontend
	addresses Addresses
	room      room     // for connections
	drain     []func() // tell clients to come back over another connection
	clouds    []Cloud
	delay     time.Duration
	regions   *sharedmemory.Regions
	pause     func(time.Duration)
	log       *slog.Logger
}

// Open opens the listeners, so that clients can connect. Serve answers them. Errors name the port
// and the remedy.
func Open(s *engine.Server, o Options) (*Frontends, error) {
	o.REST.Memory = budget.New(o.MaxMemory)
	o.RPC.Memory = o.REST.Memory
	if o.SharedMemory {
		o.REST.Regions = sharedmemory.New()
		o.RPC.Regions = o.REST.Regions
	}
	r, g, m := rest.New(s, o.REST), grpcapi.New(s, o.RPC), metrics.New(s, o.Figures)
	f := &Frontends{
		server: s, regions: o.REST.Regions, drain: []func(){r.Drain}, clouds: o.Clouds, delay: o.DrainDelay, pause: time.Sleep, log: o.Log,
	}
	f.room.left.Store(connectionsOf(descriptors(), 3+len(o.Clouds)))
	errs := []error{
		f.open(o.GRPC, "GRPC", "GRPCInferenceService", &f.addresses.GRPC, g.Serve, g.Shutdown),
		f.open(o.HTTP, "HTTP", "HTTPService", &f.addresses.HTTP, r.Serve, r.Shutdown),
	}
	for _, c := range o.Clouds {
		cloud := o.REST
		cloud.Dialect, cloud.Metrics = c.Routes, pageOf(m.Handler)
		r, address := rest.New(s, cloud), ""
		f.drain = append(f.drain, r.Drain)
		errs = append(errs, f.open(c.Listen, c.Name, c.Name+" HTTPService", &address, r.Serve, r.Shutdown))
	}
	errs = append(errs, f.open(o.Metrics, "Metrics", "Metrics Service", &f.addresses.Metrics, m.Serve, m.Shutdown))
	if err := errors.Join(errs...); err != nil {
		for _, one := range f.all {
			_ = one.listener.Close() // the first error matters
		}
		return nil, err
	}
	return f, nil
}

// open opens a listener. Its errors name the service as tritonserver's do.
func (f *Frontends) open(at Listen, service, title string, address *string, serve func(net.Listener) error, shutdown func(context.Context) error) error {
	if !at.Enabled {
		return nil
	}
	host := net.JoinHostPort(at.Address, strconv.Itoa(at.Port))
	l, err := net.Listen("tcp", host)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("failed to start %s service: Unavailable - Socket '%s' already in use: end the process that uses it, or choose another port with --%s (0: any free one)",
			service, host, at.Flag)
	}
	if err != nil {
		return fmt.Errorf("failed to start %s service: %w", service, err)
	}
	*address = l.Addr().String()
	l = newListener(l, &f.room, f.log)
	if at.TLS != nil {
		l = tls.NewListener(l, at.TLS)
	}
	f.all = append(f.all, frontend{title, l, serve, shutdown})
	return nil
}

// Addresses returns the addresses of the front ends.
func (f *Frontends) Addresses() Addresses { return f.addresses }

// Started logs the addresses of the front ends, with tritonserver's messages after the loading of
// its models.
func (f *Frontends) Started() {
	for _, one := range f.all {
		f.log.Info("Started " + one.title + " at " + one.listener.Addr().String())
	}
}

// Serve answers clients until ctx ends. From then on the server is not ready, so that load
// balancers send clients elsewhere. It still serves new clients for Options.DrainDelay. Then it
// accepts no more, gives accepted requests at most drain to finish, and returns. A front end that
// fails ends the others.
func (f *Frontends) Serve(ctx context.Context, drain time.Duration) error {
	group, running := errgroup.WithContext(ctx)
	for _, one := range f.all {
		group.Go(func() error {
			// After ctx has ended, errors of the end do not matter.
			if err := one.serve(one.listener); err != nil && !errors.Is(err, http.ErrServerClosed) && running.Err() == nil {
				return fmt.Errorf("%s failed: %w", one.title, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-running.Done()
		f.log.Info("Waiting for in-flight requests to complete.") // Triton's text
		f.server.Drain()
		for _, drain := range f.drain {
			drain()
		}
		if ctx.Err() != nil { // otherwise a front end has failed, and clients may not be able to come back
			f.pause(f.delay)
		}
		return f.stop(context.WithoutCancel(ctx), drain)
	})
	return group.Wait()
}

// stop ends the front ends. Metrics are last, so that they can be read until the last request is
// answered.
func (f *Frontends) stop(ctx context.Context, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	inference, metrics := f.all, []frontend(nil)
	if last := len(f.all) - 1; f.addresses.Metrics != "" { // opened last
		inference, metrics = f.all[:last], f.all[last:]
	}
	err := errors.Join(shutDown(ctx, inference), shutDown(ctx, metrics))
	f.regions.Close()
	return err
}

func shutDown(ctx context.Context, all []frontend) error {
	var group errgroup.Group
	for _, one := range all {
		group.Go(func() error {
			err := one.shutdown(ctx)
			// a front end that has not begun yet would not notice the end; otherwise it is closed
			// already
			_ = one.listener.Close()
			return err
		})
	}
	return group.Wait()
}
