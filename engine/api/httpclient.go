package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tuner/model/modelconfig"
)

// maxReply bounds the bytes of an answer other than an inference.
const maxReply = 64 << 20

// HTTPClient is a Client over HTTP/REST. Inferences use separate connections, see Infer.
type HTTPClient struct {
	base    string // http://host:port
	address string
	control *http.Client
	lanes   lanes
}

var _ Client = (*HTTPClient)(nil)

// NewHTTP returns a client of the server at address (host:port). It connects when it is first used.
func NewHTTP(address string) *HTTPClient {
	transport := &http.Transport{DisableCompression: true}
	return &HTTPClient{base: "http://" + address, address: address, control: &http.Client{Transport: transport}}
}

// Close closes all connections.
func (c *HTTPClient) Close() error {
	c.control.CloseIdleConnections()
	return c.lanes.close()
}

// ServerReady gets /v2/health/ready.
func (c *HTTPClient) ServerReady(ctx context.Context) (bool, error) {
	return c.ready(ctx, "/v2/health/ready")
}

// ModelReady gets /v2/models/M/ready.
func (c *HTTPClient) ModelReady(ctx context.Context, model string) (bool, error) {
	return c.ready(ctx, modelPath(model)+"/ready")
}

func (c *HTTPClient) ready(ctx context.Context, path string) (bool, error) {
	_, err := c.call(ctx, http.MethodGet, path, nil)
	var answered *StatusError
	if errors.As(err, &answered) {
		return false, nil
	}
	return err == nil, err
}

// ServerMetadata gets /v2.
func (c *HTTPClient) ServerMetadata(ctx context.Context) (m ServerMetadata, err error) {
	return m, c.get(ctx, "/v2", &m)
}

// ModelMetadata gets /v2/models/M.
func (c *HTTPClient) ModelMetadata(ctx context.Context, model string) (m ModelMetadata, err error) {
	return m, c.get(ctx, modelPath(model), &m)
}

// ModelConfig gets /v2/models/M/config.
func (c *HTTPClient) ModelConfig(ctx context.Context, model string) (*modelconfig.Config, error) {
	text, err := c.call(ctx, http.MethodGet, modelPath(model)+"/config", nil)
	if err != nil {
		return nil, err
	}
	config, err := modelconfig.ParseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the server's configuration of model %q: %w", model, err)
	}
	return config, nil
}

// Statistics gets /v2/models/M/stats.
func (c *HTTPClient) Statistics(ctx context.Context, model string) (s Statistics, err error) {
	path := "/v2/models/stats"
	if model != "" {
		path = modelPath(model) + "/stats"
	}
	return s, c.get(ctx, path, &s)
}

// Index gets /v2/repository/index.
func (c *HTTPClient) Index(ctx context.Context) ([]IndexEntry, error) {
	text, err := c.call(ctx, http.MethodPost, "/v2/repository/index", nil)
	if err != nil {
		return nil, err
	}
	var out []IndexEntry
	return out, decodeJSON("/v2/repository/index", text, &out)
}

// LoadModel posts to /v2/repository/models/M/load.
func (c *HTTPClient) LoadModel(ctx context.Context, model, configJSON string, files ...File) error {
	r := LoadRequest{Parameters: map[string]any{}}
	if configJSON != "" {
		r.Parameters["config"] = configJSON
	}
	for _, f := range files {
		r.Parameters["file:"+f.Path] = base64.StdEncoding.EncodeToString(f.Data)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot encode the load request of model %q: %w", model, err)
	}
	_, err = c.call(ctx, http.MethodPost, "/v2/repository/models/"+url.PathEscape(model)+"/load", body)
	return err
}

// UnloadModel posts to /v2/repository/models/M/unload.
func (c *HTTPClient) UnloadModel(ctx context.Context, model string) error {
	_, err := c.call(ctx, http.MethodPost, "/v2/repository/models/"+url.PathEscape(model)+"/unload", nil)
	return err
}

func modelPath(model string) string { return "/v2/models/" + url.PathEscape(model) }

func (c *HTTPClient) get(ctx context.Context, path string, out any) error {
	text, err := c.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return decodeJSON(path, text, out)
}

func decodeJSON(path string, text []byte, out any) error {
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("cannot read the answer to %s: %w", path, err)
	}
	return nil
}

// call makes one request and returns the body of the answer.
func (c *HTTPClient) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return roundTrip(ctx, c.control, method, c.base+path, body)
}

func roundTrip(ctx context.Context, client *http.Client, method, address string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot make a request of %q: %w", address, err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the server: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxReply))
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer to %s: %w", address, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, statusError(answer.StatusCode, text)
	}
	return text, nil
}

func statusError(status int, body []byte) error {
	var e Error
	if json.Unmarshal(body, &e) != nil || e.Text == "" {
		e.Text = string(body)
		if strings.HasPrefix(e.Text, "<") { // a page of another web server
			e.Text = http.StatusText(status)
		}
	}
	return &StatusError{status, e.Text}
}

// Metrics fetches the metrics page of a server, in Prometheus' text format. address is the
// host:port of its metrics listener.
func Metrics(ctx context.Context, address string) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return roundTrip(ctx, client, http.MethodGet, "http://"+address+"/metrics", nil)
}

// Encode writes the request with binary tensors, and asks for binary outputs.
func (c *HTTPClient) Encode(r InferRequest) (*Encoded, error) {
	body, header, err := EncodeHTTP(r)
	if err != nil {
		return nil, err
	}
	path := modelPath(r.Model)
	if r.Version != "" {
		path += "/versions/" + url.PathEscape(r.Version)
	}
	return &Encoded{path: path + "/infer", body: body, header: header}, nil
}

// EncodeHTTP writes the body of an infer request with binary tensors, and asks for all outputs in
// binary form. header is the length of its JSON part, for the header HeaderLength.
func EncodeHTTP(r InferRequest) (body []byte, header int, err error) {
	type parameters = map[string]any
	type tensor struct {
		Name       string     `json:"name"`
		Datatype   string     `json:"datatype,omitempty"`
		Shape      []int64    `json:"shape,omitzero"`
		Parameters parameters `json:"parameters,omitempty"`
	}
	message := struct {
		ID         string     `json:"id,omitempty"`
		Parameters parameters `json:"parameters,omitempty"`
		Inputs     []tensor   `json:"inputs"`
		Outputs    []tensor   `json:"outputs,omitempty"`
	}{ID: r.ID, Parameters: parameters{}, Inputs: []tensor{}}
	for _, in := range r.Inputs {
		message.Inputs = append(message.Inputs, tensor{in.Name, in.Datatype, in.Shape, parameters{"binary_data_size": len(in.Data)}})
	}
	for _, name := range r.Outputs {
		message.Outputs = append(message.Outputs, tensor{Name: name, Parameters: parameters{"binary_data": true}})
	}
	if len(r.Outputs) == 0 {
		message.Parameters["binary_data_output"] = true
	}
	if r.Priority != 0 {
		message.Parameters["priority"] = r.Priority
	}
	if r.Timeout != 0 {
		message.Parameters["timeout"] = r.Timeout
	}
	if body, err = json.Marshal(message); err != nil {
		return nil, 0, fmt.Errorf("cannot encode the request of model %q: %w", r.Model, err)
	}
	header = len(body)
	for _, in := range r.Inputs {
		body = append(body, in.Data...)
	}
	return body, header, nil
}

// decodeHTTP reads the outputs of an answer with binary tensors.
func decodeHTTP(r *InferResponse) ([]Tensor, error) {
	var message struct {
		Outputs []struct {
			Name       string  `json:"name"`
			Datatype   string  `json:"datatype"`
			Shape      []int64 `json:"shape"`
			Parameters struct {
				Size *int `json:"binary_data_size"`
			} `json:"parameters"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(r.body[:r.header], &message); err != nil {
		return nil, fmt.Errorf("cannot read an inference's answer: %w", err)
	}
	rest := r.body[r.header:]
	var out []Tensor
	for _, o := range message.Outputs {
		size := 0
		if o.Parameters.Size != nil {
			size = *o.Parameters.Size
		}
		if size < 0 || size > len(rest) {
			return nil, fmt.Errorf("cannot read an inference's answer: output %q has %s bytes, %d are left", o.Name, strconv.Itoa(size), len(rest))
		}
		out = append(out, Tensor{Name: o.Name, Datatype: o.Datatype, Shape: o.Shape, Data: rest[:size:size]})
		rest = rest[size:]
	}
	return out, nil
}
