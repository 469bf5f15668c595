package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// API asks an API server.
type API struct {
	address string // https://host:port
	token   string
	client  *http.Client
}

// newAPI trusts whoever answers: the server is this process's own, on the loopback device.
func newAPI(address, token string) API {
	return API{address, token, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

// StatusError is an answer of the API server that is not a success.
type StatusError struct {
	Status int
	Text   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Text) }

// IsStatus reports whether an error is an answer with a status.
func IsStatus(err error, status int) bool {
	answer := new(StatusError)
	return errors.As(err, &answer) && answer.Status == status
}

// The types of patches.
const (
	strategic = "application/strategic-merge-patch+json"
	plain     = "application/json"
)

// do sends a request with a JSON body, unless that is nil, and decodes the answer into a value, unless
// that is nil.
func (a API) do(ctx context.Context, method, path, kind string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.address+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", kind)
	answer, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	out, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= http.StatusMultipleChoices:
		return &StatusError{answer.StatusCode, string(out)}
	case into == nil:
		return nil
	}
	return json.Unmarshal(out, into)
}

// Get reads an object.
func (a API) Get(ctx context.Context, path string, into any) error {
	return a.do(ctx, http.MethodGet, path, plain, nil, into)
}

// Create creates an object.
func (a API) Create(ctx context.Context, path string, body, into any) error {
	return a.do(ctx, http.MethodPost, path, plain, body, into)
}

// Patch changes fields of an object.
func (a API) Patch(ctx context.Context, path string, body any) error {
	return a.do(ctx, http.MethodPatch, path, strategic, body, nil)
}

// Delete deletes an object.
func (a API) Delete(ctx context.Context, path string, options any) error {
	return a.do(ctx, http.MethodDelete, path, plain, options, nil)
}

// As returns the same server asked with another token.
func (a API) As(token string) API { return API{a.address, token, a.client} }
