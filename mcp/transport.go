package mcp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// transport is the SDK's, except at the end of the input. The SDK drops calls that were read and not
// yet answered then. Here they are answered first, so that a file of messages can be piped in.
type transport struct {
	sdk.IOTransport
	end func() // called at the end of the input; calls should then end soon
}

// Connect implements sdk.Transport.
func (t *transport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return newConnection(c, t.end), nil
}

func newConnection(c sdk.Connection, end func()) *connection {
	return &connection{Connection: c, end: end, idle: make(chan struct{}, 1), open: map[jsonrpc.ID]bool{}}
}

// connection knows the calls that have no answer yet.
type connection struct {
	sdk.Connection
	end  func()
	idle chan struct{} // told when a call was answered

	mu   sync.Mutex
	open map[jsonrpc.ID]bool
}

// Read implements sdk.Connection.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if request, is := message.(*jsonrpc.Request); is && err == nil && request.IsCall() {
		c.mu.Lock()
		c.open[request.ID] = true
		c.mu.Unlock()
	}
	if err != nil {
		c.end()
	}
	if errors.Is(err, io.EOF) {
		c.settle(ctx)
	}
	return message, err
}

// Write implements sdk.Connection.
func (c *connection) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if response, is := message.(*jsonrpc.Response); is {
		c.mu.Lock()
		delete(c.open, response.ID)
		c.mu.Unlock()
		select {
		case c.idle <- struct{}{}:
		default: // told already
		}
	}
	return err
}

// settle waits until every call is answered, but not for ever.
func (c *connection) settle(ctx context.Context) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		c.mu.Lock()
		isIdle := len(c.open) == 0
		c.mu.Unlock()
		if isIdle {
			return
		}
		select {
		case <-c.idle:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
