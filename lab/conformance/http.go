package conformance

import (
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// requestTime is the longest time of one request. Loading MiniLM on a busy machine takes most of
// it.
const requestTime = 60 * time.Second

// maxAnswer is the largest number of bytes that are read from an answer.
const maxAnswer = 64 << 20

// jsonLength is the header with the length of the JSON, after which binary tensors begin. In a
// request, "auto" stands for the length of the first part.
const jsonLength = "Inference-Header-Content-Length"

// cloudLength stands before the same length in the Content-Type of clouds.
const cloudLength = ";json-header-size="

// compared are the headers of an answer that belong to the protocol.
var compared = []string{"Content-Type", jsonLength, "Content-Encoding", "Accept-Encoding"}

// HTTPClient makes requests exactly as written: it adds no compression and follows no redirects.
type HTTPClient struct{ client http.Client }

// NewHTTPClient makes a client.
func NewHTTPClient() *HTTPClient {
	return &HTTPClient{http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections, since Triton does not end while one is open.
func (h *HTTPClient) Close() { h.client.CloseIdleConnections() }

// Do sends a request to the server at address. An error means that there is no readable answer.
func (h *HTTPClient) Do(ctx context.Context, address string, c Case) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := newRequest(ctx, address, c)
	if err != nil {
		return Answer{}, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	data, err := unpacked(response)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(io.LimitReader(data, maxAnswer))
	if err != nil {
		return Answer{}, fmt.Errorf("cannot read the answer: %w", err)
	}
	return httpAnswer(response, body), nil
}

func newRequest(ctx context.Context, address string, c Case) (*http.Request, error) {
	body := strings.Join(c.Parts, "")
	request, err := http.NewRequestWithContext(ctx, c.Verb, "http://"+address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	path, query, _ := strings.Cut(c.Target, "?")
	// opaque: escapes stay as written
	request.URL = &url.URL{Scheme: "http", Host: address, Opaque: path, RawQuery: query}
	for _, h := range c.Headers {
		switch {
		case h.Key == jsonLength && h.Value == "auto":
			request.Header.Set(h.Key, strconv.Itoa(len(c.Parts[0])))
		case h.Key == "Transfer-Encoding":
			request.ContentLength = -1
		default:
			request.Header.Add(h.Key, h.Value)
		}
	}
	return request, nil
}

// unpacked returns a reader of an answer's body without its compression.
func unpacked(response *http.Response) (io.Reader, error) {
	var data io.Reader = response.Body
	var err error
	switch response.Header.Get("Content-Encoding") {
	case "gzip":
		data, err = gzip.NewReader(data)
	case "deflate":
		data, err = zlib.NewReader(data)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot decompress the answer: %w", err)
	}
	return data, nil
}

// httpAnswer splits an answer into the parts that are compared as JSON and as bytes.
func httpAnswer(response *http.Response, body []byte) Answer {
	a := Answer{Status: strconv.Itoa(response.StatusCode)}
	for _, key := range compared {
		if key == "Content-Type" && (len(body) == 0 || response.StatusCode >= http.StatusBadRequest) {
			continue // no client reads the type of an empty answer or an error; Triton's is text/plain for some
		}
		if value := response.Header.Get(key); value != "" && key != jsonLength {
			value, _, _ = strings.Cut(value, cloudLength)
			a.Headers = append(a.Headers, key+": "+value)
		}
	}
	length := len(body)
	value := response.Header.Get(jsonLength)
	if _, size, isCloud := strings.Cut(response.Header.Get("Content-Type"), cloudLength); isCloud {
		value = size
	}
	if value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > len(body) {
			a.Headers = append(a.Headers, fmt.Sprintf("%s: %s, wrong for %d bytes", jsonLength, value, len(body)))
		} else {
			a.Headers = append(a.Headers, jsonLength+": as it should be")
			length = n
		}
	}
	a.Text, a.Binary = normalize(body[:length]), body[length:]
	return a
}
