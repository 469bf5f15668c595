package modelanalyzer

import (
	"maps"
	"slices"
	"strings"

	"tuner/spec"
	"tuner/spec/document"
)

// tlsFlags maps runner.tls's names to perf_analyzer's flags for the files of a TLS connection.
func tlsFlags(protocol string) map[string]string {
	if protocol == spec.ProtocolHTTP {
		return map[string]string{"ca": "ssl-https-ca-certificates-file", "certificate": "ssl-https-client-certificate-file", "key": "ssl-https-private-key-file"}
	}
	return map[string]string{"ca": "ssl-grpc-root-certifications-file", "certificate": "ssl-grpc-certificate-chain-file", "key": "ssl-grpc-private-key-file"}
}

// secureFlag requests TLS over gRPC. Over HTTP the scheme of the address does.
const secureFlag = "ssl-grpc-use-ssl"

// connection converts header fields and TLS files for a remote server. It returns the scheme of its
// address; "" for the default.
func (r *reader) connection(n *native, flags map[string]value, protocol string) string {
	if v, has := flags["http-header"]; has {
		for _, e := range v.elements() {
			name, text, found := strings.Cut(e.node.Value, ":")
			if !found || strings.TrimSpace(name) == "" {
				r.fail(e, document.Error{Problem: "is not a header field", Allowed: "NAME: VALUE, or a list of such"})
				continue
			}
			n.text(e, strings.TrimSpace(text), "runner", "headers", strings.TrimSpace(name))
		}
	}
	r.checkTLS(flags, protocol)
	secure, has := flags[secureFlag]
	isAsked := protocol == spec.ProtocolHTTP || has && secure.isSaid()
	r.unusedTLS(flags, protocol, isAsked)
	if !isAsked {
		return ""
	}
	files := tlsFlags(protocol)
	for _, name := range []string{"ca", "certificate", "key"} {
		if v, has := flags[files[name]]; has && v.isSaid() {
			n.text(v, r.relativePath(v.node.Value), "runner", "tls", name)
		}
	}
	if protocol == spec.ProtocolGRPC {
		return "grpcs://"
	}
	return ""
}

// unusedTLS reports flags of TLS that have no effect: those of the other protocol, and files for
// gRPC without a request for TLS. perf_analyzer ignores these too.
func (r *reader) unusedTLS(flags map[string]value, protocol string, isAsked bool) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		v := flags[name]
		isHTTP, isGRPC := strings.HasPrefix(name, "ssl-https-"), strings.HasPrefix(name, "ssl-grpc-")
		switch {
		case !v.isSaid():
		case isHTTP && protocol != spec.ProtocolHTTP:
			r.warn(v, "is for client_protocol: http, and the protocol is %s", protocol)
		case isGRPC && protocol == spec.ProtocolHTTP:
			r.warn(v, "is for client_protocol: grpc, and the protocol is %s", protocol)
		case isGRPC && !isAsked:
			r.warn(v, "has no effect without %s: true, and nothing is encrypted", secureFlag)
		}
	}
}

// checkTLS reports unsupported requests: unchecked certificates, and files in other formats.
func (r *reader) checkTLS(flags map[string]value, protocol string) {
	if protocol != spec.ProtocolHTTP {
		return
	}
	for _, name := range []string{"ssl-https-verify-peer", "ssl-https-verify-host"} {
		if v, has := flags[name]; has && v.node.Value == "0" {
			r.fail(v, document.Error{Problem: "turns off the check of the server's certificate, which tuner always makes", Hint: "remove the line, and name the authority with ssl-https-ca-certificates-file"})
		}
	}
	for _, name := range []string{"ssl-https-client-certificate-type", "ssl-https-private-key-type"} {
		if v, has := flags[name]; has && v.node.Value != "PEM" {
			r.fail(v, document.Error{Problem: "is not a format that is read", Allowed: "PEM"})
		}
	}
}

// unconnected reports flags for the connection to a server that tuner starts itself, on loopback.
func (r *reader) unconnected(flags map[string]value) {
	const text = "is for a remote server: those that tuner starts are on loopback"
	if v, has := flags["http-header"]; has && v.isSaid() {
		r.warn(v, "%s", text)
	}
	files := slices.Concat([]string{secureFlag}, tlsNames(spec.ProtocolGRPC), tlsNames(spec.ProtocolHTTP))
	for _, name := range files {
		if v, has := flags[name]; has && v.isSaid() {
			r.fail(v, document.Error{Problem: text + ", without TLS", Hint: "remove the line, or use triton_launch_mode: remote"})
		}
	}
}

func tlsNames(protocol string) []string {
	var list []string
	for _, flag := range tlsFlags(protocol) {
		list = append(list, flag)
	}
	slices.Sort(list)
	return list
}
