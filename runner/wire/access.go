package wire

import "tuner/engine/api"

// Access returns the options for package api to reach the same server.
func (o Options) Access() api.Access {
	access := api.Access{TLS: o.TLS, Headers: map[string][]string{}}
	for _, h := range o.Headers {
		access.Headers[h.Name] = append(access.Headers[h.Name], h.Value)
	}
	return access
}
