package wire

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"tuner/engine/api"
)

// jsonTensor is an input, requested output or output in the JSON of HTTP.
type jsonTensor struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype,omitempty"`
	Shape      []int64         `json:"shape,omitzero"`
	Parameters map[string]any  `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// encodeHTTP encodes an infer request for HTTP, with head and body.
func encodeHTTP(o Options, r api.InferRequest, f Format) ([]byte, error) {
	parameters, err := requestParameters(o, r)
	if err != nil {
		return nil, err
	}
	message := struct {
		ID         string         `json:"id,omitempty"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Inputs     []jsonTensor   `json:"inputs"`
		Outputs    []jsonTensor   `json:"outputs,omitempty"`
	}{ID: r.ID, Parameters: parameters, Inputs: []jsonTensor{}}
	var tensors []byte
	for _, in := range r.Inputs {
		t := jsonTensor{Name: in.Name, Datatype: in.Datatype, Shape: append([]int64{}, in.Shape...)}
		if f.JSONInputs {
			if t.Data, err = jsonData(in); err != nil {
				return nil, err
			}
		} else {
			t.Parameters = map[string]any{"binary_data_size": len(in.Data)}
			tensors = append(tensors, in.Data...)
		}
		message.Inputs = append(message.Inputs, t)
	}
	for _, name := range r.Outputs {
		message.Outputs = append(message.Outputs, jsonTensor{Name: name, Parameters: map[string]any{"binary_data": !f.JSONOutputs}})
	}
	if len(r.Outputs) == 0 {
		message.Parameters["binary_data_output"] = !f.JSONOutputs
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request of model %q: %w", r.Model, err)
	}
	head, err := requestHead(o, r, len(text), len(tensors))
	if err != nil {
		return nil, err
	}
	return append(append(head, text...), tensors...), nil
}

// requestParameters returns the parameters of the request, and those that the options add.
func requestParameters(o Options, r api.InferRequest) (map[string]any, error) {
	parameters := map[string]any{}
	if r.Priority != 0 {
		parameters["priority"] = r.Priority
	}
	if r.Timeout != 0 {
		parameters["timeout"] = r.Timeout
	}
	for _, p := range o.Parameters {
		switch p.Value.(type) {
		case int64, string, bool:
			parameters[p.Name] = p.Value
		default:
			return nil, &InputError{fmt.Sprintf("request parameter %q is %T: expected int64, string or bool", p.Name, p.Value)}
		}
	}
	return parameters, nil
}

// framing are the fields that mark the end of a request, which the user may not set. Expect would
// make the server answer before it has the request.
var framing = []string{"Content-Length", "Transfer-Encoding", "Expect", api.HeaderLength}

// requestHead writes the request line and the header fields. The user's fields replace ours.
func requestHead(o Options, r api.InferRequest, text, tensors int) ([]byte, error) {
	path := "/v2/models/" + url.PathEscape(r.Model)
	if r.Version != "" {
		path += "/versions/" + url.PathEscape(r.Version)
	}
	fields := []Header{{"Host", o.Address}}
	if tensors > 0 {
		fields = append(fields, Header{"Content-Type", api.ContentTypeBytes}, Header{api.HeaderLength, strconv.Itoa(text)})
	} else {
		fields = append(fields, Header{"Content-Type", api.ContentTypeJSON})
	}
	fields = append(fields, Header{"Content-Length", strconv.Itoa(text + tensors)})
	for _, h := range o.Headers {
		for _, name := range framing {
			if strings.EqualFold(name, h.Name) {
				return nil, &InputError{fmt.Sprintf("header %q cannot be set: it marks the end of the request", h.Name)}
			}
		}
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) {
			return nil, &InputError{fmt.Sprintf("header %q with value %q is not allowed in HTTP", h.Name, h.Value)}
		}
		fields = replace(fields, h)
	}
	head := append([]byte("POST "), path+"/infer HTTP/1.1\r\n"...)
	for _, f := range fields {
		head = append(head, f.Name+": "+f.Value+"\r\n"...)
	}
	return append(head, "\r\n"...), nil
}

// replace replaces the fields Host or Content-Type. It adds other fields at the end.
func replace(fields []Header, h Header) []Header {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, h.Name) && (strings.EqualFold(h.Name, "Host") || strings.EqualFold(h.Name, "Content-Type")) {
			fields[i] = h
			return fields
		}
	}
	return append(fields, h)
}

// decodeHTTP reads the outputs of an answer. The first jsonLength bytes are JSON; a negative number
// means all. The tensors in binary form follow.
func decodeHTTP(body []byte, jsonLength int64) ([]api.Tensor, error) {
	text, rest := body, []byte(nil)
	if jsonLength > int64(len(body)) {
		return nil, fmt.Errorf("cannot read an inference's answer: %d bytes of JSON in a body of %d bytes", jsonLength, len(body))
	}
	if jsonLength >= 0 {
		text, rest = body[:jsonLength], body[jsonLength:]
	}
	var message struct {
		Outputs []struct {
			jsonTensor
			Parameters struct {
				Size *int64 `json:"binary_data_size"`
			} `json:"parameters"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(text, &message); err != nil {
		return nil, fmt.Errorf("cannot read an inference's answer: %w", err)
	}
	var out []api.Tensor
	for _, o := range message.Outputs {
		t := api.Tensor{Name: o.Name, Datatype: o.Datatype, Shape: o.Shape}
		if o.Parameters.Size == nil {
			data, err := parseData(t, o.Data)
			if err != nil {
				return nil, err
			}
			t.Data = data
		} else if size := *o.Parameters.Size; size < 0 || size > int64(len(rest)) {
			return nil, fmt.Errorf("cannot read an inference's answer: output %q has %d bytes, %d are left", o.Name, size, len(rest))
		} else {
			t.Data, rest = rest[:size:size], rest[size:]
		}
		out = append(out, t)
	}
	return out, nil
}
