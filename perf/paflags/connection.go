package paflags

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"tuner/internal/hostinfo"
	"tuner/internal/problems"
	"tuner/runner/meter"
	"tuner/runner/wire"
)

// checkConnection reads address, protocol and options of the connection.
func (o *Options) checkConnection(p *problems.List, plan *Plan) {
	protocol, w := strings.ToLower(o.protocol), &plan.Wire
	port := "8000"
	switch {
	case protocol == "grpc":
		w.Protocol, port = wire.GRPC, "8001"
		if o.streaming {
			w.Protocol = wire.GRPCStream
		}
	case protocol != "http":
		p.Addf("-i %q: allowed are http and grpc", o.protocol)
	case o.streaming:
		p.Addf("--streaming needs gRPC: add -i grpc")
	}
	address, secure, err := parseURL(o.url, port)
	p.Add(err)
	w.Address = address
	plan.Settings.URL, plan.Settings.Protocol = cmp.Or(o.url, address), protocol
	w.Headers, err = parseHeaders(o.headers)
	p.Add(err)
	w.Parameters, err = parseParameters(o.parameters)
	p.Add(err)
	switch o.compression {
	case "none":
	case "gzip", "deflate":
		w.Compression = o.compression
		if protocol != "grpc" {
			p.Addf("--grpc-compression-algorithm needs gRPC: add -i grpc")
		}
	default:
		p.Addf("--grpc-compression-algorithm %q: allowed are none, gzip and deflate", o.compression)
	}
	w.DialTimeout = o.timeout
	w.Share, err = parseConnectionShare(os.Getenv(shareVariable))
	p.Add(err)
	if address != "" {
		w.TLS, err = o.tlsConfig(protocol, address, secure)
		p.Add(err)
	}
	o.checkGauge(plan)
}

// shareVariable is perf_analyzer's environment variable for the number of requests in flight that
// share a connection over gRPC.
const shareVariable = "TRITON_CLIENT_GRPC_CHANNEL_MAX_SHARE_COUNT"

// parseConnectionShare reads the variable. 0: it is not set.
func parseConnectionShare(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("environment variable %s=%q: want the number of requests in flight that share a connection over gRPC, 1 or more", shareVariable, text)
	}
	return n, nil
}

// checkGauge decides which figures are read in addition to the server's statistics.
func (o *Options) checkGauge(plan *Plan) {
	host, _, _ := net.SplitHostPort(plan.Wire.Address)
	plan.Gauge.Remote = !hostinfo.IsLocal(host)
	plan.Gauge.GPUs = !plan.Gauge.Remote
	if !o.metrics {
		return
	}
	plan.Gauge.Metrics = "http://" + net.JoinHostPort(host, "8002") + "/metrics"
	if o.metricsURL != "" {
		plan.Gauge.Metrics = meter.PageURL(o.metricsURL)
	}
}

// parseURL reads [SCHEME://]HOST[:PORT].
func parseURL(text, port string) (address string, secure bool, err error) {
	host := strings.TrimSuffix(text, "/")
	if scheme, rest, found := strings.Cut(host, "://"); found {
		switch strings.ToLower(scheme) {
		case "http", "grpc":
		case "https", "grpcs":
			secure = true
		default:
			return "", false, fmt.Errorf("-u %q: the scheme %q is not known: want HOST:PORT or https://HOST:PORT", text, scheme)
		}
		host = rest
	}
	if host == "" {
		host = "localhost"
	}
	if name, number, err := net.SplitHostPort(host); err == nil {
		if n, err := strconv.Atoi(number); err != nil || n < 1 || n > 65535 || name == "" {
			return "", false, fmt.Errorf("-u %q: want HOST:PORT", text)
		}
		return host, secure, nil
	}
	if strings.ContainsAny(host, "/?#") || strings.Count(host, ":") == 1 {
		return "", false, fmt.Errorf("-u %q: want HOST:PORT, without a path", text)
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port), secure, nil
}

// parseHeaders reads NAME:VALUE.
func parseHeaders(list []string) ([]wire.Header, error) {
	var headers []wire.Header
	for _, text := range list {
		name, value, found := strings.Cut(text, ":")
		if !found || name == "" {
			return nil, fmt.Errorf("-H %q: want NAME:VALUE", text)
		}
		headers = append(headers, wire.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	return headers, nil
}

// parseParameters reads NAME:VALUE:TYPE. The value may contain colons.
func parseParameters(list []string) ([]wire.Parameter, error) {
	var parameters []wire.Parameter
	for _, text := range list {
		first, last := strings.Index(text, ":"), strings.LastIndex(text, ":")
		if first <= 0 || last == first {
			return nil, fmt.Errorf("--request-parameter %q: want NAME:VALUE:TYPE", text)
		}
		name, value, kind := text[:first], text[first+1:last], text[last+1:]
		var parsed any = value
		var err error
		switch kind {
		case "string":
		case "int":
			parsed, err = strconv.ParseInt(value, 10, 64)
		case "bool":
			parsed, err = strconv.ParseBool(value)
		default:
			return nil, fmt.Errorf("--request-parameter %q: the type is %q, allowed are int, string and bool", text, kind)
		}
		if err != nil {
			return nil, fmt.Errorf("--request-parameter %q: %q is not a value of type %s", text, value, kind)
		}
		parameters = append(parameters, wire.Parameter{Name: name, Value: parsed})
	}
	return parameters, nil
}

// tlsConfig makes the TLS configuration of connections. nil: they are not encrypted.
func (o *Options) tlsConfig(protocol, address string, secure bool) (*tls.Config, error) {
	t := o.tls
	if protocol == "grpc" {
		if !t.useGRPC && !secure {
			if t.grpcRoots+t.grpcKey+t.grpcChain != "" {
				return nil, fmt.Errorf("--ssl-grpc-… files need --ssl-grpc-use-ssl")
			}
			return nil, nil
		}
		return wire.TLSOptions{CA: t.grpcRoots, Key: t.grpcKey, Certificate: t.grpcChain}.Config(address)
	}
	if !secure {
		for _, flag := range []string{"verify-peer", "verify-host", "ca-certificates-file", "client-certificate-file", "private-key-file"} {
			if o.given("ssl-https-" + flag) {
				return nil, fmt.Errorf("--ssl-https-%s: HTTP goes over TLS with -u https://HOST:PORT", flag)
			}
		}
		return nil, nil
	}
	if t.verifyPeer != 0 && t.verifyPeer != 1 || t.verifyHost < 0 || t.verifyHost > 2 {
		return nil, fmt.Errorf("--ssl-https-verify-peer must be 0 or 1, --ssl-https-verify-host 0, 1 or 2")
	}
	return wire.TLSOptions{
		SkipPeer: t.verifyPeer == 0, SkipHost: t.verifyHost == 0, CA: t.ca,
		Certificate: t.certificate, CertificateType: strings.ToUpper(t.certificateType), Key: t.key, KeyType: strings.ToUpper(t.kt),
	}.Config(address)
}
