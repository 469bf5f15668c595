package wire

import "tuner/engine/api"

// Access says how package api reaches the server of these options, for questions.
func (o Options) Access() api.Access {
	access := api.Access{TLS: o.TLS, Headers: map[string][]string{}}
	for _, h := range o.Headers {
		access.Headers[h.Name] = append(access.Headers[h.Name], h.Value)
	}
	return access
}
