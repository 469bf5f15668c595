// Package triton is a Triton in another process as a server whose configuration changes: by Triton's
// HTTP interface, with the model repository and statistics extensions. The server must run with
// --model-control-mode=explicit. The package decides nothing.
package triton

import (
	"context"
	"fmt"
	"time"

	"tuner/engine/api"
)

// patience is the longest time of a question.
const patience = 10 * time.Second

// longestLoad is the longest time of a load: large models take minutes.
const longestLoad = 10 * time.Minute

// Server implements steering.Server. It is for one model and one goroutine.
type Server struct {
	client *api.HTTPClient
	sum    uint64 // requests of all loads so far
	last   uint64 // those of the present load
	isOwn  bool   // Reconfigure has loaded the model since the last count
}

// Open returns a client of the server at an address (host:port).
func Open(address string, a api.Access) *Server { return &Server{client: api.OpenHTTP(address, a)} }

// Close releases the connections.
func (s *Server) Close() error { return s.client.Close() }

// Arrived implements steering.Server: the answered and failed requests of all versions. Triton counts from 0
// again when it loads a model, so a smaller number is of a new load.
func (s *Server) Arrived(ctx context.Context, model string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	statistics, err := s.client.Statistics(ctx, model)
	if err != nil {
		return 0, fmt.Errorf("cannot count the requests of the model %q: %w", model, err)
	}
	now := uint64(0)
	for _, m := range statistics.ModelStats {
		now += m.InferenceStats.Success.Count + m.InferenceStats.Fail.Count
	}
	isNew, isOwn := now < s.last, s.isOwn
	if isNew {
		s.last = 0
	}
	s.sum, s.last, s.isOwn = s.sum+now-s.last, now, false
	if isNew && !isOwn {
		return 0, fmt.Errorf("the model %q was loaded by somebody else: its counts begin anew", model)
	}
	return s.sum, nil
}

// Reconfigure implements steering.Server: it loads the model with another configuration. The server
// answers with the old one until the new one is ready.
func (s *Server) Reconfigure(ctx context.Context, model, config string) error {
	ctx, cancel := context.WithTimeout(ctx, longestLoad)
	defer cancel()
	err := s.client.LoadModel(ctx, model, config)
	s.isOwn = s.isOwn || err == nil
	return err
}
