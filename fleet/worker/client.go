package worker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tuner/fleet/record"
)

// accountDir is where Kubernetes mounts the token of a pod's account. The token is read for every
// request, since the kubelet renews it.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// longestAnswer bounds what is read of an answer.
const longestAnswer = 64 << 10

// longestRequest bounds one request, so that a silent API server is tried again.
const longestRequest = 30 * time.Second

// client makes the only call of a worker: it creates ConfigMaps in its own namespace, or tries to.
type client struct {
	url    string
	folder string // accountDir
	http   *http.Client
}

// newClient finds the API server as every client in a pod does.
func newClient(environment func(string) string, folder string) (*client, error) {
	host, port := environment("KUBERNETES_SERVICE_HOST"), environment("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("cannot find the API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; `tuner fleet worker` runs in a pod only")
	}
	namespace, err := os.ReadFile(filepath.Join(folder, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("cannot find this pod's account: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the authority of the API server: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("cannot use %q: it has no certificate", filepath.Join(folder, "ca.crt"))
	}
	return &client{
		url:    "https://" + net.JoinHostPort(host, port) + "/api/v1/namespaces/" + strings.TrimSpace(string(namespace)) + "/configmaps",
		folder: folder,
		http:   &http.Client{Timeout: longestRequest, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
	}, nil
}

// errExists means that an object of that name is there already.
var errExists = errors.New("it exists already")

// refusedError is an answer that another attempt would not change.
type refusedError struct {
	status int
	text   string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the API server refuses it: %s (status %d)", e.text, e.status)
}

// create creates a ConfigMap. The error is errExists, a *refusedError, or one that may pass.
func (c *client) create(ctx context.Context, m record.ConfigMap) error { return c.post(ctx, c.url, m) }

// exists reports whether a ConfigMap of that name is there. A worker may not read, so it asks for a
// creation that the API server only tries (dryRun). An answer that does not come is no answer.
func (c *client) exists(ctx context.Context, m record.ConfigMap) bool {
	return errors.Is(c.post(ctx, c.url+"?dryRun=All", m), errExists)
}

// post asks the API server to create a ConfigMap.
func (c *client) post(ctx context.Context, url string, m record.ConfigMap) error {
	body, err := json.Marshal(m)
	if err != nil {
		return &refusedError{text: err.Error()}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return &refusedError{text: err.Error()}
	}
	token, err := os.ReadFile(filepath.Join(c.folder, "token"))
	if err != nil {
		return fmt.Errorf("cannot read this pod's token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestAnswer))
	if err != nil {
		return err
	}
	return outcome(answer.StatusCode, text)
}

// outcome judges an answer. 401 may pass with the next token, 429 and 5xx with time.
func outcome(status int, text []byte) error {
	switch {
	case status < 300:
		return nil
	case status == http.StatusConflict:
		return errExists
	case status == http.StatusUnauthorized, status == http.StatusTooManyRequests, status >= 500:
		return fmt.Errorf("the API server answers with status %d", status)
	}
	var answer struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Message == "" {
		answer.Message = strings.TrimSpace(string(text))
	}
	return &refusedError{status, answer.Message}
}

// The times between attempts to send something.
const (
	firstWait = time.Second
	lastWait  = 10 * time.Second
)

// insist calls send until it succeeds, is refused, or the context ends.
func insist(ctx context.Context, send func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := send()
		if err == nil || errors.Is(err, errExists) || errors.As(err, new(*refusedError)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (the last of many attempts)", err)
		case <-time.After(wait):
		}
	}
}
