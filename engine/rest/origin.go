package rest

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"

	"github.com/valyala/fasthttp"
)

// Browsers send requests for any page that their user opens, also to this machine's own addresses.
// Two rules keep such pages out. Neither affects programs, which do not send the headers that
// browsers add.

// foreign refuses a request with effects that a browser sent for a page of another site. All calls
// with effects are POST, and browsers name the page's site in each POST. With some bodies they send
// it without asking the server first. The rule is that of net/http, by the headers Sec-Fetch-Site
// and Origin.
func foreign(head *fasthttp.RequestHeader) *refusal {
	origin, site := head.Peek(fasthttp.HeaderOrigin), head.Peek("Sec-Fetch-Site")
	if len(origin) == 0 && len(site) == 0 {
		return nil
	}
	r := &http.Request{Method: string(head.Method()), Host: string(head.Host()), Header: http.Header{
		"Origin": {string(origin)}, "Sec-Fetch-Site": {string(site)},
	}}
	if http.NewCrossOriginProtection().Check(r) == nil {
		return nil
	}
	return &refusal{status: fasthttp.StatusForbidden, text: "a web page of another site may not call this server, its Origin is not the Host: " +
		"a proxy in front that allows the page must leave out Origin and Sec-Fetch-Site"}
}

// misnamed refuses a request that names a host other than this one.
//
// In the absolute form, target and Host must agree: as in Triton, no other host is served. A server
// that only this machine can reach has only the names of this machine. A request under any other
// name comes from a page whose name resolves to this machine, to pass as the server's own (DNS
// rebinding).
func (f *Frontend) misnamed(head *fasthttp.RequestHeader) *refusal {
	host := head.Host()
	if rest, isAbsolute := bytes.CutPrefix(head.RequestURI(), []byte("http://")); isAbsolute {
		if end := bytes.IndexAny(rest, "/?"); end >= 0 {
			rest = rest[:end]
		}
		if !bytes.EqualFold(rest, host) {
			return &refusal{fasthttp.StatusNotFound, "Not Found", true}
		}
	}
	// every browser sends Host
	if !f.isLocal || string(host) == f.address || len(host) == 0 || f.isOwnName(withoutPort(host)) {
		return nil
	}
	return &refusal{status: fasthttp.StatusForbidden, text: "this server listens on loopback, where Host must be localhost, a loopback address or this machine's name: " +
		"let a proxy in front send Host: localhost, or listen on another address (--http-address)"}
}

func withoutPort(host []byte) []byte {
	if at := bytes.LastIndexByte(host, ':'); at >= 0 && bytes.IndexByte(host[at:], ']') < 0 {
		return host[:at]
	}
	return host
}

// isOwnName reports whether a host can only mean this machine, for any sender on it. Names that end
// in .localhost never leave it (RFC 6761, section 6.3). The hosts file often lists the machine's
// own name with a loopback address.
func (f *Frontend) isOwnName(host []byte) bool {
	const below = ".localhost"
	switch {
	case bytes.EqualFold(host, []byte("localhost")), len(f.machine) > 0 && bytes.EqualFold(host, []byte(f.machine)):
		return true
	case len(host) > len(below) && bytes.EqualFold(host[len(host)-len(below):], []byte(below)):
		return true
	}
	ip, err := netip.ParseAddr(string(bytes.Trim(host, "[]")))
	return err == nil && ip.IsLoopback()
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
