package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"tuner/fleet/record"
)

// Request is a worker's question to the API server: to create a record, or whether it is there.
type Request struct {
	record.ConfigMap
	IsTried bool // the worker only asks whether the record is there
}

// IsSegment reports whether a segment is created, of a number from 0.
func (r Request) IsSegment(ordinal string) bool {
	return !r.IsTried && r.Metadata.Labels[record.LabelKind] == record.KindSegment && strings.HasSuffix(r.Metadata.Name, ordinal)
}

// IsResult reports whether a result is created.
func (r Request) IsResult() bool {
	return !r.IsTried && r.Metadata.Labels[record.LabelKind] == record.KindResult
}

// Attempt returns the UID of the pod that asks with a result.
func (r Request) Attempt() string {
	var result record.Result
	_ = json.Unmarshal([]byte(r.Data["result.json"]), &result) // "" if it is none
	return result.Attempt
}

// Wire lets the later pods of a namespace ask the API server through around. It gets each request, and a function that passes it
// on and returns the status of the answer. If it returns false, the connection ends without an answer. It may block, and is
// called from several goroutines. close ends the wire.
func (c *ControlPlane) Wire(namespace string, around func(r Request, pass func() int) bool) (close func(), err error) {
	pair, err := tls.LoadX509KeyPair(c.authority, strings.TrimSuffix(c.authority, ".crt")+".key")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		asked := Request{IsTried: r.URL.Query().Get("dryRun") != ""}
		_ = json.Unmarshal(body, &asked.ConfigMap) // the API server judges what is none
		var answer *http.Response
		var text []byte
		isAnswered := around(asked, func() int {
			if answer, text, err = c.pass(r, body); err != nil {
				return 0
			}
			return answer.StatusCode
		})
		if !isAnswered || answer == nil {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(text) // the pod may be gone
	})}
	c.mu.Lock()
	c.wires[namespace] = listener.Addr().String()
	c.mu.Unlock()
	go func() { _ = server.ServeTLS(listener, "", "") }() // it ends with close
	return func() { _ = server.Close() }, nil
}

// pass passes a request on, also if the one who sent it is gone.
func (c *ControlPlane) pass(r *http.Request, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, c.address+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", r.Header.Get("Authorization"))
	request.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer, text, err
}

// serverOf returns the address that pods of a namespace find as the API server's: host:port.
func (c *ControlPlane) serverOf(namespace string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wire := c.wires[namespace]; wire != "" {
		return wire
	}
	return strings.TrimPrefix(c.address, "https://")
}
