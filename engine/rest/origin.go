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
	return &refusal{status: fasthttp.StatusForbidden, text: "a web page of another site may not call this server: its Origin is not the server's Host"}
}

// misnamed refuses a request that names another host than the one that it has reached. In the absolute form, target and Host
// must agree. A server that only this machine reaches has only the names of this machine. Under any other name it is called by
// a page whose name leads here, to pass for the server's own (DNS rebinding).
func (f *Frontend) misnamed(head *fasthttp.RequestHeader) *refusal {
	host := head.Host()
	if rest, isAbsolute := bytes.CutPrefix(head.RequestURI(), []byte("http://")); isAbsolute {
		if end := bytes.IndexAny(rest, "/?"); end >= 0 {
			rest = rest[:end]
		}
		if !bytes.EqualFold(rest, host) {
			return malformed("its target names another host than its Host")
		}
	}
	if !f.isLocal || len(host) == 0 || isLocalName(host) { // every browser sends Host
		return nil
	}
	return &refusal{status: fasthttp.StatusForbidden, text: "this server listens on loopback, where Host must be localhost or a loopback address: " +
		"let a proxy in front send Host: localhost, or listen on another address (--http-address)"}
}

// isLocalName reports whether a Host, with or without a port, can mean only the machine of who sends it. Names that end in
// .localhost never leave it (RFC 6761, section 6.3).
func isLocalName(host []byte) bool {
	name := host
	if at := bytes.LastIndexByte(name, ':'); at >= 0 && bytes.IndexByte(name[at:], ']') < 0 {
		name = name[:at]
	}
	const localhost = ".localhost"
	if bytes.EqualFold(name, []byte(localhost[1:])) || len(name) > len(localhost) && bytes.EqualFold(name[len(name)-len(localhost):], []byte(localhost)) {
		return true
	}
	ip, err := netip.ParseAddr(string(bytes.Trim(name, "[]")))
	return err == nil && ip.IsLoopback()
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
