package rest

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"

	"github.com/valyala/fasthttp"
)

// Browsers send requests for any page that its user opens, to this machine's own addresses as well. Two rules keep such pages
// out; neither touches programs, which do not send what browsers add.

// foreign refuses a request with effects that a page of another site has made a browser send. All calls with effects are POST,
// and browsers name the page's site in each POST: with some bodies they send it without asking the server first. The rule is
// that of net/http, by the headers Sec-Fetch-Site and Origin.
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

// misnamed refuses a request that names another host than the one that it has reached. In the absolute form, target and Host
// must agree; as in Triton, another host has nothing here. A server that only this machine reaches has only the names of this machine. Under any other name it is called by
// a page whose name leads here, to pass for the server's own (DNS rebinding).
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
	if !f.isLocal || string(host) == f.address || len(host) == 0 || f.isOwnName(withoutPort(host)) { // every browser sends Host
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

// isOwnName reports whether a host can mean only this machine, to whoever sends it from here. Names that end in .localhost never
// leave it (RFC 6761, section 6.3); its own name often stands in its list of hosts as a loopback address.
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

// isLoopback reports whether only this machine reaches an address.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
