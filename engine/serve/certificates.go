package serve

import (
	"context"
	"log/slog"
	"sync"

	"tuner/engine/certificates"
	"tuner/engine/flags"
	"tuner/engine/frontends"
	"tuner/internal/exit"
)

// encrypted has the certificates of the listeners that have some.
type encrypted []*certificates.Certificates

// openCertificates reads the certificates, and gives them to the listeners.
func openCertificates(o *flags.Options, listeners *frontends.Options) (encrypted, error) {
	var all encrypted
	http, grpc := o.Certificates()
	for _, one := range []struct {
		files    *certificates.Files
		protocol string
		at       *frontends.Listen
	}{{http, "http/1.1", &listeners.HTTP}, {grpc, "h2", &listeners.GRPC}} {
		if one.files == nil {
			continue
		}
		c, err := certificates.Open(*one.files, one.protocol)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		one.at.TLS = c.Config()
		all = append(all, c)
	}
	return all, nil
}

// watch looks at the files until ctx ends or stop is called.
func (e encrypted) watch(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, c := range e {
		group.Go(func() { c.Watch(ctx, log) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// reload reads the files again.
func (e encrypted) reload(log *slog.Logger) {
	for _, c := range e {
		c.Reload(log)
	}
}
