// Package mcp is `tuner mcp`: verbs of tuner as tools of the Model Context Protocol, for assistants
// that talk to a program over its standard input and output. The official SDK speaks the protocol.
// This package has the tools: what they take, what they answer, and what they refuse.
//
// A tool that measures or writes runs the verb as a child process of the same program (verb.go,
// campaign.go). So its messages are the verb's, nothing else prints to the protocol's output, and a
// crash ends one call. Tools that only read do so here. Package roots decides which files a client
// may name. No tool runs a command of the client, opens a port for others, or sends anything away.
//
// One campaign runs at a time, since two would disturb each other's figures. Campaigns end with this
// process, even if that is killed.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tuner/mcp/roots"
)

// longestMessage is the size of the largest message of a client, in bytes. Those of the tools here
// have some hundred.
const longestMessage = 1 << 20

// Options describe a server.
type Options struct {
	Roots    []string  // folders below which clients may name files; empty: the working folder
	Program  string    // path of the program whose verbs are run
	Version  string    // of the program
	In       io.Reader // messages of the client
	Out      io.Writer // messages to the client, and nothing else
	Messages io.Writer // messages for people
}

// server has the state of a session.
type server struct {
	Options
	roots  roots.Roots
	closed chan struct{} // closed when the client has gone, or the session ends

	mu        sync.Mutex
	campaigns []*campaign // all that were started, in their order; the last one may be running
}

// instructions tell an assistant how the tools belong together.
const instructions = `tuner finds the fastest way to serve an ONNX model on this machine, within limits on latency and accuracy, by measuring.
Usual order: inspect_model, start_campaign, campaign_status until its state is "ended", read_answer, then export.
A campaign takes the whole machine for its budget of minutes. Other work at the same time spoils its figures, so wait with campaign_status and its wait_seconds.
Report figures with their intervals, and say so where the answer is unfinished or nothing is shown (~).`

// Serve answers a client until it closes its side, or ctx ends. It then ends what it started.
func Serve(ctx context.Context, o Options) error {
	folders, err := roots.Open(o.Roots)
	if err != nil {
		return err
	}
	s := &server{Options: o, roots: folders, closed: make(chan struct{})}
	closeOnce := sync.OnceFunc(func() { close(s.closed) })
	stop := context.AfterFunc(ctx, closeOnce)
	defer stop()
	protocol := sdk.NewServer(&sdk.Implementation{Name: "tuner", Title: "tuner", Version: o.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	s.addTools(protocol)
	fmt.Fprintf(o.Messages, "serving the Model Context Protocol on standard input and output; open folders: %s\n", folders)
	err = protocol.Run(ctx, &transport{
		sdk.IOTransport{Reader: io.NopCloser(o.In), Writer: unclosed{o.Out}, MaxLineLength: longestMessage}, closeOnce,
	})
	closeOnce()
	s.endCampaigns()
	if err != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("cannot read a message of the client: %w", err)
	}
	return nil
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// isClosed reports whether the client has gone.
func (s *server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}
