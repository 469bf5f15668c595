package hostinfo

import (
	"net"
	"slices"
)

// IsLocal reports whether a host, given by name or address, is this machine.
func IsLocal(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	own, _ := net.InterfaceAddrs() // without them only loopback is known
	return ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
