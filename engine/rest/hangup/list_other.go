//go:build !linux

package hangup

import "syscall"

// List works on Linux only. On other systems the request of a client that has gone is still
// executed.
type List struct{}

func (*List) add(syscall.RawConn, *Watch) uint64 { return 0 }

func (*List) remove(syscall.RawConn, uint64) {}

func (*List) Close() {}
