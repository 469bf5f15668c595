package frontends

import (
	"bytes"
	"net/http"

	"tuner/engine/api"
	"tuner/engine/rest"
)

// Cloud is a listener on which a cloud calls Triton's inference under its own paths.
type Cloud struct {
	Listen
	Name   string // in messages
	Routes rest.Dialect
	Loaded func(ready []api.IndexEntry) error // called once the models are loaded; nil: not called
}

// Loaded tells the clouds that the models are loaded. An error means that one of them cannot be served.
func (f *Frontends) Loaded() error {
	for _, c := range f.clouds {
		if c.Loaded == nil || !c.Enabled {
			continue
		}
		ready, err := f.server.Index(true)
		if err == nil {
			err = c.Loaded(ready)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pageOf returns a function that makes the page of the metrics.
func pageOf(metrics http.Handler) func() []byte {
	return func() []byte {
		var w page
		r, err := http.NewRequest(http.MethodGet, "/metrics", nil)
		if err == nil { // it never fails
			metrics.ServeHTTP(&w, r)
		}
		return w.Bytes()
	}
}

// page is an http.ResponseWriter in memory.
type page struct {
	bytes.Buffer
	header http.Header
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

// WriteHeader implements http.ResponseWriter.
func (*page) WriteHeader(int) {}
